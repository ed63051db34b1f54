import type { Logger } from "pino";
import type { EventKind } from "@headworks/gateway-contract";
import { fieldValue } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { post, type PostResult } from "#egress/post.ts";
import { systemTimer, type Timer } from "#egress/timer.ts";
import type { DeliveryOutcome, Recipient, RecipientList, SerialisedEvent } from "#events/recipient.ts";
import type { Clock, GatewaySlice } from "#slice.ts";
import type { DeliveryTarget } from "./delivery-target.ts";
import { type AttemptResult, nextStep } from "./retry-rule.ts";
import { signatureFields } from "./signature.ts";
import { checkWebhooks } from "./webhooks.check.ts";
import { compileTargets } from "./webhooks.compile.ts";

class DeliveryCounts {
  readonly #counts = new Map<EventKind, Record<CountedOutcome, number>>();

  add(kind: EventKind, outcome: CountedOutcome): void {
    const counts = this.#counts.get(kind) ?? { delivered: 0, failed: 0, dropped: 0 };
    counts[outcome] += 1;
    this.#counts.set(kind, counts);
  }

  list(): DeliveryCount[] {
    const outcomes: readonly CountedOutcome[] = ["delivered", "failed", "dropped"];
    return [...this.#counts].flatMap(([kind, counts]) =>
      outcomes.filter((outcome) => counts[outcome] > 0).map((outcome) => ({ kind, outcome, count: counts[outcome] })),
    );
  }
}

/** Maximum concurrent deliveries (delivery rule 6). */
export const MAX_DELIVERIES = 32;

/** Maximum concurrent queued deliveries, so that a replay to slow targets does not crowd out new events. */
const MAX_QUEUED = 8;

/** Limits concurrent deliveries, with a queue for those that may wait. */
export class DeliverySemaphore {
  readonly #capacity: number;
  readonly #queuedCapacity: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;
  #queuedTaken = 0;

  constructor(capacity: number = MAX_DELIVERIES, queuedCapacity: number = MAX_QUEUED) {
    this.#capacity = capacity;
    this.#queuedCapacity = queuedCapacity;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Acquires a permit if available; release it with {@link release}. */
  take(): boolean {
    if (this.#taken >= this.#capacity) return false;
    this.#taken += 1;
    return true;
  }

  /** Acquires a permit in FIFO order; release it with {@link releaseQueued}. */
  async acquireQueued(): Promise<void> {
    if (this.#waiting.length > 0 || !this.#tryAcquireQueued()) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      this.#waiting.push(() => resolve(undefined));
      await promise;
    }
  }

  release(): void {
    this.#taken -= 1;
    this.#admit();
  }

  releaseQueued(): void {
    this.#queuedTaken -= 1;
    this.release();
  }

  #tryAcquireQueued(): boolean {
    if (this.#queuedTaken >= this.#queuedCapacity || !this.take()) return false;
    this.#queuedTaken += 1;
    return true;
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#tryAcquireQueued()) this.#waiting.shift()?.();
  }
}

export interface WebhookParts {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: the system's timers. */
  readonly timer?: Timer;
}

/** A target in the admin API. */
export interface TargetStatus {
  /** Origin and path. */
  readonly url: string;
  readonly events: readonly EventKind[];
  readonly last:
    | (DeliveryReport & { readonly id: string; readonly kind: EventKind; readonly endedMs: number })
    | undefined;
}

export interface Webhooks extends GatewaySlice, RecipientList {
  /** `gateway_webhook_events_total`. */
  counts(): readonly DeliveryCount[];
  /** Number of deliveries in progress. */
  readonly active: number;
  /** Targets of the running generation. */
  targets(): readonly TargetStatus[];
  /**
   * Sends an event to one target of the running generation, regardless of its event types. `url` is the target's URL in
   * the document, or origin and path if unambiguous; undefined for an unknown target.
   */
  send(url: string, event: SerialisedEvent): Promise<DeliveryReport | undefined>;
}

/** Delivers events to the webhook targets of the running generation. */
export function createWebhooks(parts: WebhookParts): Webhooks {
  return new WebhookSlice(parts);
}

class WebhookSlice implements Webhooks {
  readonly name = "webhooks";
  readonly check = checkWebhooks;
  readonly #tools: DeliveryTools;
  readonly #log: Logger;
  readonly #places = new DeliverySemaphore();
  readonly #counts = new DeliveryCounts();
  readonly #last = new Map<string, NonNullable<TargetStatus["last"]>>();
  readonly #stop = new AbortController();
  #targets: readonly DeliveryTarget[] = [];

  constructor(parts: WebhookParts) {
    this.#log = parts.log;
    this.#tools = { dialer: parts.dialer, clock: parts.clock, timer: parts.timer ?? systemTimer };
  }

  compile: NonNullable<GatewaySlice["compile"]> = (document, scope) => {
    const targets = compileTargets(document, scope);
    return { published: () => this.#publish(targets) };
  };

  /** Deliveries in progress keep their target; later events use the new ones. */
  #publish(targets: readonly DeliveryTarget[]): void {
    this.#targets = targets;
    const keys = new Set(targets.map(({ key }) => key));
    for (const key of this.#last.keys()) if (!keys.has(key)) this.#last.delete(key);
  }

  recipientsFor(kind: EventKind): readonly Recipient[] {
    const wanting = this.#targets.filter(({ kinds }) => kinds.has(kind));
    return wanting.map((target) => ({
      url: target.key,
      deliver: async (event, whenBusy) => await this.#deliver(target, event, whenBusy),
    }));
  }

  interrupt(): void {
    this.#stop.abort();
  }

  async stop(): Promise<void> {
    this.interrupt();
  }

  counts(): readonly DeliveryCount[] {
    return this.#counts.list();
  }

  get active(): number {
    return this.#places.taken;
  }

  targets(): readonly TargetStatus[] {
    return this.#targets.map(({ key, url, kinds }) => ({
      url: url.shown,
      events: [...kinds],
      last: this.#last.get(key),
    }));
  }

  async send(url: string, event: SerialisedEvent): Promise<DeliveryReport | undefined> {
    const shown = this.#targets.filter((target) => target.url.shown === url);
    const target = this.#targets.find(({ key }) => key === url) ?? (shown.length === 1 ? shown[0] : undefined);
    return target === undefined ? undefined : await this.#runLater(target, event);
  }

  async #deliver(target: DeliveryTarget, event: SerialisedEvent, whenBusy: "drop" | "wait"): Promise<DeliveryOutcome> {
    if (this.#stop.signal.aborted) return "interrupted";
    if (event.isTooLarge) return this.#drop(target, event, "too_large");
    if (whenBusy === "wait") return (await this.#runLater(target, event)).outcome;
    if (!this.#places.take()) return this.#drop(target, event, "busy");
    try {
      return (await this.#run(target, event)).outcome;
    } finally {
      this.#places.release();
    }
  }

  async #runLater(target: DeliveryTarget, event: SerialisedEvent): Promise<DeliveryReport> {
    await this.#places.acquireQueued();
    try {
      return await this.#run(target, event);
    } finally {
      this.#places.releaseQueued();
    }
  }

  /** Delivers with an acquired permit. */
  async #run(target: DeliveryTarget, event: SerialisedEvent): Promise<DeliveryReport> {
    const report = await deliver(target, event, this.#tools, this.#stop.signal);
    if (report.outcome !== "interrupted") this.#counts.add(event.kind, report.outcome);
    // Status of a removed target would never be cleaned up.
    if (this.#targets.some(({ key }) => key === target.key)) {
      this.#last.set(target.key, { ...report, id: event.id, kind: event.kind, endedMs: this.#tools.clock.now() });
    }
    this.#tell(target, event, report);
    return report;
  }

  #drop(target: DeliveryTarget, event: SerialisedEvent, reason: "busy" | "too_large"): "dropped" {
    this.#counts.add(event.kind, "dropped");
    const { id, kind } = event;
    this.#log.warn(
      { code: "webhook_delivery_dropped", url: target.url.shown, id, kind, reason },
      "event not delivered",
    );
    return "dropped";
  }

  #tell(target: DeliveryTarget, event: SerialisedEvent, report: DeliveryReport): void {
    const facts = { url: target.url.shown, id: event.id, kind: event.kind, ...report };
    if (report.outcome === "failed") {
      this.#log.warn({ code: "webhook_delivery_failed", ...facts }, "event not delivered");
    } else {
      this.#log.debug({ code: "webhook_delivery_ended", ...facts }, "delivery ended");
    }
  }
}

type CountedOutcome = "delivered" | "failed" | "dropped";

/** One series of `gateway_webhook_events_total`. */
interface DeliveryCount {
  readonly kind: EventKind;
  readonly outcome: CountedOutcome;
  readonly count: number;
}

/** `reason` is for logs. */
interface DeliveryReport {
  readonly outcome: "delivered" | "failed" | "interrupted";
  readonly attempts: number;
  /** Of the last response; undefined if the last attempt got none. */
  readonly status: number | undefined;
  readonly reason: string;
}

interface DeliveryTools {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly timer: Timer;
}

/**
 * Delivers one event to one target until accepted, refused, or out of time or attempts (delivery rules 1 to 5). Never
 * rejects. `stop` ends it as `interrupted`.
 */
async function deliver(
  target: DeliveryTarget,
  event: SerialisedEvent,
  tools: DeliveryTools,
  stop: AbortSignal,
): Promise<DeliveryReport> {
  const endMs = tools.clock.monotonic() + target.timeoutMs;
  const over = new AbortController();
  const onStop = (): void => over.abort();
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) over.abort();
  const cancel = tools.timer(target.timeoutMs, () => over.abort());
  let status: number | undefined;
  let failure = "";
  try {
    for (let attempt = 1; ; attempt += 1) {
      const result = await attemptOnce(target, event, tools, over.signal);
      status = result.kind === "response" ? result.status : undefined;
      failure = result.kind === "failure" ? result.error.code : "";
      if (stop.aborted) return { outcome: "interrupted", attempts: attempt, status, reason: "stopped" };
      const leftMs = over.signal.aborted ? 0 : endMs - tools.clock.monotonic();
      const next = nextStep(asAttempt(result), attempt, target.retry, leftMs);
      if (next.step === "delivered") return { outcome: "delivered", attempts: attempt, status, reason: "" };
      if (next.step === "failed") {
        return { outcome: "failed", attempts: attempt, status, reason: failure === "" ? next.reason : failure };
      }
      await pause(next.waitMs, tools.timer, over.signal);
      if (stop.aborted) return { outcome: "interrupted", attempts: attempt, status, reason: "stopped" };
    }
  } finally {
    cancel();
    stop.removeEventListener("abort", onStop);
  }
}

async function attemptOnce(
  target: DeliveryTarget,
  event: SerialisedEvent,
  tools: DeliveryTools,
  signal: AbortSignal,
): Promise<PostResult> {
  const { signingKey } = target;
  const signature =
    signingKey === undefined ? [] : signatureFields(signingKey, event.id, event.envelope, tools.clock.now());
  const request = {
    url: target.url,
    purpose: "webhook",
    fields: [...target.fields, ...signature],
    body: event.envelope,
    maxBodyBytes: 0,
    needsBody: false,
    isLenient: true,
  } as const;
  return await post(tools.dialer, request, signal);
}

function asAttempt(result: PostResult): AttemptResult {
  if (result.kind === "failure") return { kind: "no-answer", isFinal: result.error.isFinal };
  return { kind: "response", status: result.status, retryAfter: fieldValue(result.fields, "retry-after") };
}

/** Waits at most until the delivery's deadline. */
async function pause(waitMs: number, timer: Timer, signal: AbortSignal): Promise<void> {
  if (waitMs <= 0 || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const done = (): void => resolve(undefined);
  const cancel = timer(waitMs, done);
  signal.addEventListener("abort", done, { once: true });
  await promise;
  cancel();
  signal.removeEventListener("abort", done);
}
