import type { EventKind } from "@headworks/gateway-contract";

/** The outcomes that are counted. */
export type CountedOutcome = "delivered" | "failed" | "dropped";

/** One series of `gateway_webhook_events_total`. */
export interface DeliveryCount {
  readonly kind: EventKind;
  readonly outcome: CountedOutcome;
  readonly count: number;
}

/** Counts outcomes of deliveries by kind of event. */
export class DeliveryCounts {
  readonly #counts = new Map<EventKind, Record<CountedOutcome, number>>();

  add(kind: EventKind, outcome: CountedOutcome): void {
    const counts = this.#counts.get(kind) ?? { delivered: 0, failed: 0, dropped: 0 };
    counts[outcome] += 1;
    this.#counts.set(kind, counts);
  }

  /** Every series that has counted something. */
  list(): DeliveryCount[] {
    const outcomes: readonly CountedOutcome[] = ["delivered", "failed", "dropped"];
    return [...this.#counts].flatMap(([kind, counts]) =>
      outcomes.filter((outcome) => counts[outcome] > 0).map((outcome) => ({ kind, outcome, count: counts[outcome] })),
    );
  }
}
