import type { WebhookTarget } from "@headworks/gateway-contract";
import { EgressDialer, type NameLookup } from "#egress/egress-dialer.ts";
import { type DeliveryOutcome, EventBus, type SerialisedEvent } from "#events/event-bus.ts";
import { createWebhooks, type Webhooks } from "#slices/webhooks/webhooks.slice.ts";
import type { Outbox } from "#storage/state-store.ts";
import { documentWith, publish, realClock, type Secrets } from "../egress/documents.ts";
import { logLines, type LogLines } from "../egress/log-lines.ts";

/** The webhook part of a gateway with everything real but the store. */
export interface WebhookRig {
  readonly webhooks: Webhooks;
  readonly dialer: EgressDialer;
  readonly bus: EventBus;
  readonly logged: LogLines;
  publish(targets: readonly WebhookTarget[], secrets?: Secrets): void;
  /** Delivers one event to the one target that is published, and answers what became of it. */
  deliver(): Promise<DeliveryOutcome>;
  /** `kind outcome count` of every counted outcome. */
  counts(): string[];
  [Symbol.asyncDispose](): Promise<void>;
}

export interface WebhookRigOptions {
  readonly outbox?: Outbox;
  readonly lookup?: NameLookup;
  readonly roots?: readonly string[];
}

export const SAMPLE: SerialisedEvent = {
  id: "evt-19aa0000000-0000000000000000",
  kind: "breaker_half_open",
  envelope: Buffer.from(
    '{"id":"evt-19aa0000000-0000000000000000","kind":"breaker_half_open","payload":{"upstream":"ü"}}',
  ),
  isTooLarge: false,
};

export function webhookRig(options: WebhookRigOptions = {}): WebhookRig {
  const logged = logLines();
  const { outbox, lookup, roots } = options;
  const dialer = new EgressDialer({ log: logged.log, ...(lookup && { lookup }), ...(roots && { roots }) });
  const webhooks = createWebhooks({ dialer, clock: realClock, log: logged.log });
  const bus = new EventBus({ log: logged.log, clock: realClock, name: "edge", ...(outbox && { outbox }) });
  return {
    webhooks,
    dialer,
    bus,
    logged,
    publish: (targets, secrets) => void publish(webhooks, documentWith({ webhooks: targets }), logged.log, secrets),
    deliver: async () => {
      const [recipient] = webhooks.recipientsFor(SAMPLE.kind);
      if (recipient === undefined) throw new Error("no target wants the sample event");
      return await recipient.deliver(SAMPLE, "drop");
    },
    counts: () => webhooks.counts().map(({ kind, outcome, count }) => `${kind} ${outcome} ${count}`),
    [Symbol.asyncDispose]: async () => {
      webhooks.interrupt();
      await bus.stop(0);
    },
  };
}

/** A target for {@link SAMPLE} with short waits. */
export const target = (url: string, more: Partial<WebhookTarget> = {}): WebhookTarget => ({
  url,
  events: ["breaker_half_open"],
  backoff_base_ms: 1,
  backoff_cap_ms: 2,
  ...more,
});
