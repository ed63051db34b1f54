import type { EventKind } from "@headworks/gateway-contract";

/** An event with its envelope serialised once. */
export interface SerialisedEvent {
  readonly id: string;
  readonly kind: EventKind;
  /** The envelope as JSON in UTF-8. */
  readonly envelope: Buffer;
  /** Above the size limit: it is never sent. */
  readonly isTooLarge: boolean;
}

/**
 * Outcome of an event at one recipient. `dropped`: not tried, since too many deliveries are active or the envelope is
 * too large. `interrupted`: the gateway stops.
 */
export type DeliveryOutcome = "delivered" | "failed" | "dropped" | "interrupted";

export interface Recipient {
  /** Identifies the recipient across generations and restarts. */
  readonly url: string;
  /** Never rejects. `wait`: queue the event instead of dropping it when too many deliveries are active. */
  deliver(event: SerialisedEvent, whenBusy: "drop" | "wait"): Promise<DeliveryOutcome>;
}

/** The recipients of the running generation. */
export interface RecipientList {
  recipientsFor(kind: EventKind): readonly Recipient[];
  /** The gateway stops: active deliveries end as `interrupted` at once. */
  interrupt(): void;
}
