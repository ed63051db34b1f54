import type { EventKind } from "@headworks/gateway-contract";

/** An event as it is sent: its envelope was serialised once. */
export interface SerialisedEvent {
  readonly id: string;
  readonly kind: EventKind;
  /** The envelope as JSON in UTF-8. */
  readonly envelope: Buffer;
  /** Above the cap of envelopes: it is never sent. */
  readonly isTooLarge: boolean;
}

/**
 * What became of an event at one recipient. `dropped`: never tried, since too much is under way or the envelope is too
 * large. `interrupted`: the gateway stops.
 */
export type DeliveryOutcome = "delivered" | "failed" | "dropped" | "interrupted";

/** Somebody who gets events. */
export interface Recipient {
  /** Names the recipient across generations and restarts. */
  readonly url: string;
  /** Never rejects. `wait`: instead of dropping the event when too much is under way, wait for a place. */
  deliver(event: SerialisedEvent, whenBusy: "drop" | "wait"): Promise<DeliveryOutcome>;
}

/** Knows who gets events of a kind in the running generation. */
export interface RecipientList {
  recipientsFor(kind: EventKind): readonly Recipient[];
  /** The gateway stops: what is under way ends as `interrupted` at once. */
  interrupt(): void;
}
