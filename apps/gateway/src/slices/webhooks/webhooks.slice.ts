import { createHmac } from "node:crypto";
import type { Logger } from "pino";
import { type ConfigDocument, EVENT_KINDS, type EventKind, type WebhookTarget } from "@headworks/gateway-contract";
import { fieldValue, type RawFields, wireText } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { type EgressUrl, parseEgressUrl } from "#egress/egress-url.ts";
import { fieldNameIssue, fieldValueIssue, post, type PostResult } from "#egress/post.ts";
import { systemTimer, type Timer } from "#egress/timer.ts";
import type { DeliveryOutcome, Recipient, RecipientList, SerialisedEvent } from "#events/event-bus.ts";
import type { CheckScope, Clock, CompileScope, GatewaySlice, IssueReport } from "#slice.ts";

const PREFIX = "whsec_";
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;
const RETRIED_STATUSES = new Set([429, 502, 503, 504]);

/** See decisions, webhook defaults. */
const DEFAULTS = { timeoutMs: 2000, maxAttempts: 3, backoffBaseMs: 100, backoffCapMs: 1000 } as const;
const known: ReadonlySet<string> = new Set(EVENT_KINDS);

/** Canonical form for duplicate detection. */
const sameEverywhere = (url: EgressUrl): string => `${String(url.isSecure)} ${url.host} ${url.port} ${url.target}`;

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
  readonly #semaphore = new DeliverySemaphore();
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
    return this.#semaphore.taken;
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
    if (!this.#semaphore.take()) return this.#drop(target, event, "busy");
    try {
      return (await this.#run(target, event)).outcome;
    } finally {
      this.#semaphore.release();
    }
  }

  async #runLater(target: DeliveryTarget, event: SerialisedEvent): Promise<DeliveryReport> {
    await this.#semaphore.acquireQueued();
    try {
      return await this.#run(target, event);
    } finally {
      this.#semaphore.releaseQueued();
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
    this.#notify(target, event, report);
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

  #notify(target: DeliveryTarget, event: SerialisedEvent, report: DeliveryReport): void {
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
  if (result.kind === "failure") return { kind: "no-response", isFinal: result.error.isFinal };
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

function checkWebhooks(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  const seen = new Map<string, number>();
  for (const [index, target] of document.webhooks.entries()) {
    const fieldPath = ["webhooks", index];
    checkUrl(target, fieldPath, seen, report);
    checkEvents(target, fieldPath, report);
    checkHeaders(target, fieldPath, report, scope);
    checkBackoff(target, fieldPath, report);
    checkSigning(target, fieldPath, report, scope);
  }
}

type FieldPath = readonly (string | number)[];

function checkUrl(target: WebhookTarget, fieldPath: FieldPath, seen: Map<string, number>, report: IssueReport): void {
  const url = parseEgressUrl(target.url);
  if ("issue" in url) {
    report.error("bad_url", [...fieldPath, "url"], url.issue);
    return;
  }
  const spelling = sameEverywhere(url);
  const first = seen.get(spelling);
  if (first === undefined) seen.set(spelling, fieldPath.length > 1 ? Number(fieldPath[1]) : 0);
  else report.error("duplicate_url", [...fieldPath, "url"], `The webhook number ${first + 1} has this URL already.`);
}

function checkEvents(target: WebhookTarget, fieldPath: FieldPath, report: IssueReport): void {
  if (target.events.length === 0) {
    report.error("empty_events", [...fieldPath, "events"], "A webhook must name at least one kind of event.");
  }
  for (const [index, kind] of target.events.entries()) {
    if (known.has(kind)) continue;
    const hint = kind === "quota_near_limit" ? "This kind is reserved for later. " : "";
    report.error(
      "unknown_event_kind",
      [...fieldPath, "events", index],
      `${hint}The kinds of events are ${EVENT_KINDS.join(", ")}.`,
    );
  }
}

function checkHeaders(target: WebhookTarget, fieldPath: FieldPath, report: IssueReport, scope: CheckScope): void {
  const names = new Set<string>();
  for (const [name, text] of Object.entries(target.headers ?? {})) {
    const field = [...fieldPath, "headers", name];
    const nameIssue = fieldNameIssue(name);
    if (nameIssue !== undefined) report.error("bad_header", field, nameIssue);
    const lower = name.toLowerCase();
    if (names.has(lower)) report.error("bad_header", field, "The header is named twice, in different letter case.");
    names.add(lower);
    if (target.signing !== undefined && /^webhook-(?:id|timestamp|signature)$/.test(lower)) {
      report.error("bad_header", field, "This header is set by the signature.");
    }
    const value = scope.secret(text);
    const valueIssue = value === undefined ? undefined : fieldValueIssue(value.reveal());
    if (valueIssue !== undefined) report.error("bad_header", field, valueIssue);
  }
}

function checkBackoff(target: WebhookTarget, fieldPath: FieldPath, report: IssueReport): void {
  const baseMs = target.backoff_base_ms ?? DEFAULTS.backoffBaseMs;
  const capMs = target.backoff_cap_ms ?? DEFAULTS.backoffCapMs;
  if (capMs >= baseMs) return;
  report.error(
    "out_of_range",
    [...fieldPath, "backoff_cap_ms"],
    `backoff_cap_ms (${capMs}) must not be below backoff_base_ms (${baseMs}).`,
  );
}

function checkSigning(target: WebhookTarget, fieldPath: FieldPath, report: IssueReport, scope: CheckScope): void {
  if (target.signing === undefined) return;
  const secret = scope.secret(target.signing.secret);
  if (secret === undefined || signingKey(secret.reveal()) !== undefined) return;
  report.error(
    "bad_value",
    [...fieldPath, "signing", "secret"],
    "The secret must be base64 of 24 to 64 bytes, with or without the prefix whsec_.",
  );
}

/** The targets of a valid document with newly resolved secrets. */
function compileTargets(document: ConfigDocument, scope: CompileScope): DeliveryTarget[] {
  return document.webhooks.map((target) => compileTarget(target, scope)).filter((target) => target !== undefined);
}

function compileTarget(target: WebhookTarget, scope: CompileScope): DeliveryTarget | undefined {
  const url = parseEgressUrl(target.url);
  if ("issue" in url) return undefined;
  const fields = ["Content-Type", "application/json", "User-Agent", "gateway-webhook"];
  for (const [name, text] of Object.entries(target.headers ?? {})) {
    fields.push(name, wireText(scope.secret(text).reveal()));
  }
  return {
    key: target.url,
    url,
    kinds: new Set(EVENT_KINDS.filter((kind) => target.events.includes(kind))),
    fields,
    timeoutMs: target.timeout_ms ?? DEFAULTS.timeoutMs,
    retry: {
      maxAttempts: target.max_attempts ?? DEFAULTS.maxAttempts,
      backoffBaseMs: target.backoff_base_ms ?? DEFAULTS.backoffBaseMs,
      backoffCapMs: target.backoff_cap_ms ?? DEFAULTS.backoffCapMs,
    },
    signingKey: target.signing === undefined ? undefined : signingKey(scope.secret(target.signing.secret).reveal()),
  };
}

/** A compiled webhook target of one generation. */
interface DeliveryTarget {
  /** The URL in the document; the target's key in the store. */
  readonly key: string;
  readonly url: EgressUrl;
  readonly kinds: ReadonlySet<EventKind>;
  /** Fields independent of the event. Contains resolved secrets; never log it. */
  readonly fields: Readonly<RawFields>;
  readonly timeoutMs: number;
  readonly retry: RetryRule;
  readonly signingKey: Buffer | undefined;
}

interface RetryRule {
  readonly maxAttempts: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
}

export type AttemptResult =
  | { readonly kind: "response"; readonly status: number; readonly retryAfter: string | undefined }
  | { readonly kind: "no-response"; readonly isFinal: boolean };

type NextStep =
  | { readonly step: "delivered" }
  | { readonly step: "failed"; readonly reason: "answer_not_retried" | "attempts_spent" | "time_spent" | "not_allowed" }
  | { readonly step: "retry"; readonly waitMs: number };

/**
 * Delivery rules 2 to 5 for attempt number `attempt`, from 1, with `leftMs` of the total time left. A delay that would
 * use up the remaining time fails at once.
 */
export function nextStep(result: AttemptResult, attempt: number, rule: RetryRule, leftMs: number): NextStep {
  if (result.kind === "response") {
    if (result.status >= 200 && result.status < 300) return { step: "delivered" };
    if (!RETRIED_STATUSES.has(result.status)) return { step: "failed", reason: "answer_not_retried" };
  } else if (result.isFinal) {
    return { step: "failed", reason: "not_allowed" };
  }
  if (attempt >= rule.maxAttempts) return { step: "failed", reason: "attempts_spent" };
  const requestedMs = result.kind === "response" ? retryAfterMs(result.retryAfter) : undefined;
  const waitMs = requestedMs ?? backoffMs(attempt, rule);
  return waitMs >= leftMs ? { step: "failed", reason: "time_spent" } : { step: "retry", waitMs };
}

/** Delay after attempt number `attempt`: the base, doubled per attempt, up to the cap. */
export function backoffMs(attempt: number, rule: RetryRule): number {
  return Math.min(rule.backoffCapMs, rule.backoffBaseMs * 2 ** (attempt - 1));
}

/** Retry-After in seconds; undefined for other forms, dates included. */
export function retryAfterMs(value: string | undefined): number | undefined {
  return value !== undefined && /^[0-9]+$/.test(value) ? Number(value) * 1000 : undefined;
}

/** Decodes a Standard Webhooks secret: base64 of 24 to 64 bytes, after an optional `whsec_`. */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  const key = Buffer.from(text, "base64");
  const isWhole = key.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "");
  return isWhole && key.length >= MIN_KEY_BYTES && key.length <= MAX_KEY_BYTES ? key : undefined;
}

/**
 * The three Standard Webhooks fields of one attempt, names and values alternating. The id is that of the event, equal
 * for all attempts; the timestamp is the attempt's, so that receivers can reject replays.
 */
export function signatureFields(key: Buffer, id: string, body: Buffer, nowMs: number): string[] {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return ["webhook-id", id, "webhook-timestamp", timestamp, "webhook-signature", `v1,${signature}`];
}
