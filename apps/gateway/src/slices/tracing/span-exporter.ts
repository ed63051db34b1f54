import { fieldValue } from "@headworks/http1";
import type { Logger } from "pino";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import type { EgressUrl } from "#egress/egress-url.ts";
import { KeptConnections, post, type PostResult } from "#egress/post.ts";
import type { Timer } from "#egress/timer.ts";
import type { Clock } from "#slice.ts";
import type { SpanSink } from "./request-spans.ts";
import { exportBody, type Span, type SpanSource } from "./span.ts";

export interface ExportRules {
  readonly url: EgressUrl;
  /** Contains resolved secrets; never log it. */
  readonly fields: readonly string[];
  readonly timeoutMs: number;
  /** Maximum queued spans; more are dropped. */
  readonly buffer: number;
  readonly flushMs: number;
  readonly batchMax: number;
  readonly maxAttempts: number;
  readonly backoffBaseMs: number;
  readonly backoffCapMs: number;
}

export type SpanOutcome = "exported" | "rejected" | "failed" | "dropped";
export type SpanCounts = Record<SpanOutcome, number>;

export interface ExporterTools {
  readonly dialer: EgressDialer;
  readonly log: Logger;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly source: SpanSource;
  readonly counts: SpanCounts;
}

const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** A partial success contains a number and a message. */
const MAX_RESPONSE_BYTES = 65_536;
/** Minimum interval of log lines about a failing collector. */
const REPEAT_MS = 60_000;
/** Time limit of the final flush. */
const LAST_FLUSH_MS = 2000;

/**
 * Exports spans over OTLP/HTTP, one batch at a time. Never blocks: spans that exceed the queue are dropped, and batches
 * are abandoned after several attempts; both are counted.
 */
export class SpanExporter implements SpanSink {
  readonly #rules: ExportRules;
  readonly #tools: ExporterTools;
  readonly #kept = new KeptConnections(1);
  #queue: Span[] = [];
  #cancelFlush: (() => void) | undefined;
  #sending: Promise<void> | undefined;
  readonly #stop = new AbortController();
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor(rules: ExportRules, tools: ExporterTools) {
    this.#rules = rules;
    this.#tools = tools;
  }

  add(span: Span): void {
    if (this.#queue.length >= this.#rules.buffer || this.#stop.signal.aborted) {
      this.#tools.counts.dropped += 1;
      return;
    }
    this.#queue.push(span);
    if (this.#queue.length >= this.#rules.batchMax) this.#send();
    else this.#flushLater();
  }

  /** Flushes the queue within a time limit and drops the rest. */
  async close(): Promise<void> {
    const cancel = this.#tools.timer(LAST_FLUSH_MS, () => this.#stop.abort());
    this.#send();
    await this.#sending;
    cancel();
    this.#stop.abort();
    this.#tools.counts.dropped += this.#queue.length;
    this.#queue = [];
    this.#kept.close();
  }

  #flushLater(): void {
    this.#cancelFlush ??= this.#tools.timer(this.#rules.flushMs, () => this.#send());
  }

  #send(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    if (this.#sending !== undefined || this.#queue.length === 0) return;
    this.#sending = this.#drain().finally(() => {
      this.#sending = undefined;
      // Spans queued in the meantime wait for a full batch.
      if (this.#queue.length > 0 && !this.#stop.signal.aborted) this.#flushLater();
    });
  }

  async #drain(): Promise<void> {
    const { batchMax } = this.#rules;
    do {
      await this.#export(this.#queue.splice(0, batchMax));
    } while (this.#queue.length >= batchMax && !this.#stop.signal.aborted);
  }

  async #export(batch: readonly Span[]): Promise<void> {
    const { clock, counts, source } = this.#tools;
    const body = exportBody(batch, source, clock.now() - performance.now());
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.#post(body);
      if (result.kind === "response" && result.status >= 200 && result.status < 300) {
        const rejected = Math.min(batch.length, rejectedSpans(result.body));
        counts.exported += batch.length - rejected;
        counts.rejected += rejected;
        if (rejected > 0) this.#warn("rejected", rejected);
        return;
      }
      const why = result.kind === "response" ? `status_${result.status}` : result.error.code;
      const mayRetry = result.kind === "response" ? RETRIED_STATUSES.has(result.status) : !result.error.isFinal;
      if (!mayRetry || attempt >= this.#rules.maxAttempts || !(await this.#pause(attempt, result))) {
        counts.failed += batch.length;
        return this.#warn(why, batch.length);
      }
    }
  }

  async #post(body: Buffer): Promise<PostResult> {
    const { url, fields, timeoutMs } = this.#rules;
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(timeoutMs)]);
    const response = { maxBodyBytes: MAX_RESPONSE_BYTES, needsBody: true, isLenient: true };
    return await post(
      this.#tools.dialer,
      { url, purpose: "traces", fields, body, ...response, kept: this.#kept },
      signal,
    );
  }

  /** Resolves to false when closing. */
  async #pause(attempt: number, result: PostResult): Promise<boolean> {
    const { backoffBaseMs, backoffCapMs } = this.#rules;
    const retryAfter = result.kind === "response" ? fieldValue(result.fields, "retry-after") : undefined;
    const requestedMs =
      retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter)
        ? Number(retryAfter) * 1000
        : backoffBaseMs * 2 ** (attempt - 1);
    if (this.#stop.signal.aborted) return false;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#tools.timer(Math.min(requestedMs, backoffCapMs), resolve);
    this.#stop.signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    cancel();
    return !this.#stop.signal.aborted;
  }

  #warn(why: string, spans: number): void {
    const nowMs = this.#tools.clock.monotonic();
    if (nowMs - this.#toldMs < REPEAT_MS) return;
    this.#toldMs = nowMs;
    const facts = { code: "trace_export_failed", url: this.#rules.url.shown, why, spans };
    this.#tools.log.warn(facts, "Spans were not taken; gateway_trace_spans_total counts on");
  }
}

/** Number of spans rejected by the collector (OTLP partial success); 0 if unreadable. */
function rejectedSpans(body: Buffer): number {
  try {
    const response = JSON.parse(body.toString()) as { partialSuccess?: { rejectedSpans?: string | number } } | null;
    const count = Number(response?.partialSuccess?.rejectedSpans ?? 0);
    return Number.isInteger(count) && count > 0 ? count : 0;
  } catch {
    return 0;
  }
}
