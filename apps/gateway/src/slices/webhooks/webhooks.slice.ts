import type { EventKind } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { systemTimer, type Timer } from "#egress/timer.ts";
import type { DeliveryOutcome, Recipient, RecipientList, SerialisedEvent } from "#events/recipient.ts";
import type { Clock, GatewaySlice } from "#slice.ts";
import { deliver, type DeliveryReport, type DeliveryTools } from "./delivery.ts";
import { DeliveryCounts, type DeliveryCount } from "./delivery-counts.ts";
import { DeliverySemaphore } from "./delivery-semaphore.ts";
import type { DeliveryTarget } from "./delivery-target.ts";
import { checkWebhooks } from "./webhooks.check.ts";
import { compileTargets } from "./webhooks.compile.ts";

export interface WebhookParts {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Instead of the system's timers. */
  readonly timer?: Timer;
}

/** What is known of a target, for the admin API. */
export interface TargetStatus {
  /** Origin and path. */
  readonly url: string;
  readonly events: readonly EventKind[];
  readonly last:
    | (DeliveryReport & { readonly id: string; readonly kind: EventKind; readonly endedMs: number })
    | undefined;
}

/** The slice, with what the event bus, metrics and the admin API ask it. */
export interface Webhooks extends GatewaySlice, RecipientList {
  /** `gateway_webhook_events_total`. */
  counts(): readonly DeliveryCount[];
  /** Deliveries under way. */
  readonly active: number;
  /** Targets of the running generation. */
  targets(): readonly TargetStatus[];
  /**
   * Sends an event to one target of the running generation now, whatever kinds it asks for. The target is named by its
   * URL as the document has it, or by origin and path if that names just one; undefined: there is no such target.
   */
  send(url: string, event: SerialisedEvent): Promise<DeliveryReport | undefined>;
}

/** Sends events to the webhook targets of the running generation. */
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

  /** Deliveries under way end with the target they began with; the next event finds these. */
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

  /** Delivers in a place that was taken. */
  async #run(target: DeliveryTarget, event: SerialisedEvent): Promise<DeliveryReport> {
    const report = await deliver(target, event, this.#tools, this.#stop.signal);
    if (report.outcome !== "interrupted") this.#counts.add(event.kind, report.outcome);
    // Of a target that left the configuration meanwhile nobody asks, and nobody would forget it.
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
