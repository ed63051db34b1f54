import type { Logger } from "pino";
import type { Analytics, ConfigDocument } from "@headworks/gateway-contract";
import { wireText } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { parseEgressUrl } from "#egress/egress-url.ts";
import { fieldNameIssue } from "#egress/post.ts";
import { systemTimer, type Timer } from "#egress/timer.ts";
import type { Tracer } from "#request/context.ts";
import type { Clock, CompileScope, GatewaySlice, IssueReport } from "#slice.ts";
import { RequestSpans } from "./request-spans.ts";
import { type ExportRules, type SpanCounts, SpanExporter } from "./span-exporter.ts";
import type { SpanSource } from "./span.ts";
import { traceParent } from "./trace-context.ts";

const DEFAULTS = { sampleRatio: 1, timeoutMs: 5000, buffer: 8192, flushMs: 1000, batchMax: 512 } as const;

export interface TracingHost {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Resource attributes of all spans. */
  readonly source: SpanSource;
  /** `GATEWAY_OTLP_ENDPOINT`: the collector without a path, used if the document names none. */
  readonly endpoint: string | undefined;
  /** 0 inclusive to 1 exclusive. */
  readonly random: () => number;
  /** Default: the system's timers. */
  readonly timer?: Timer;
}

export interface Tracing extends GatewaySlice {
  /** Spans since the start by outcome. */
  counts(): Readonly<SpanCounts>;
}

type Traces = NonNullable<Analytics["traces"]>;

const MAX_ATTEMPTS = 3;
const BACKOFF_BASE_MS = 250;
const BACKOFF_CAP_MS = 4000;

/** Exports spans of requests and upstream attempts to an OTLP collector. */
export function createTracing(host: TracingHost): Tracing {
  const counts: SpanCounts = { exported: 0, rejected: 0, failed: 0, dropped: 0 };
  const standing = tracesOf(host.endpoint, host.log);
  const tools = { timer: systemTimer, ...host, counts };
  let running: { readonly made: string; readonly exporter: SpanExporter } | undefined;
  return {
    name: "tracing",
    check: checkTracing,
    observer: {
      onFinished: (finished) => {
        const { trace } = finished.request;
        if (trace instanceof RequestSpans) trace.finished(finished);
      },
    },
    compile: (document, scope) => {
      const traces = document.analytics?.traces ?? standing;
      const rules = traces === undefined ? undefined : rulesOf(traces, scope);
      const made = JSON.stringify(rules);
      // Unchanged settings keep their queue.
      const isSame = rules === undefined || made === running?.made;
      const exporter = rules === undefined || isSame ? running?.exporter : new SpanExporter(rules, tools);
      const published = (): void => {
        const before = running?.exporter;
        running = rules === undefined || exporter === undefined ? undefined : { made, exporter };
        // Requests of the old generation may still end; their queued spans are flushed or dropped.
        if (before !== undefined && before !== running?.exporter) void before.close();
      };
      if (traces === undefined || exporter === undefined) return { published };
      const tracer: Tracer = {
        begin: (request) => {
          const parent = traceParent(request.fields);
          const isSampled = parent?.isSampled ?? host.random() < (traces.sample_ratio ?? DEFAULTS.sampleRatio);
          return isSampled ? new RequestSpans(request, parent, exporter) : undefined;
        },
      };
      return { published, tracer };
    },
    counts: () => counts,
    stop: async () => await running?.exporter.close(),
  };
}

function rulesOf(traces: Traces, scope: CompileScope): ExportRules | undefined {
  const url = parseEgressUrl(traces.url);
  if ("issue" in url) return undefined;
  const fields = ["Content-Type", "application/json", "User-Agent", "gateway-traces"];
  for (const [name, text] of Object.entries(traces.headers ?? {})) {
    fields.push(name, wireText(scope.secret(text).reveal()));
  }
  return {
    url,
    fields,
    timeoutMs: traces.timeout_ms ?? DEFAULTS.timeoutMs,
    buffer: traces.buffer ?? DEFAULTS.buffer,
    flushMs: traces.flush_ms ?? DEFAULTS.flushMs,
    batchMax: traces.batch_max ?? DEFAULTS.batchMax,
    maxAttempts: MAX_ATTEMPTS,
    backoffBaseMs: BACKOFF_BASE_MS,
    backoffCapMs: BACKOFF_CAP_MS,
  };
}

/** The standard OTLP path is appended; an invalid URL is logged and does not prevent the start. */
function tracesOf(endpoint: string | undefined, log: Logger): Traces | undefined {
  if (endpoint === undefined || endpoint === "") return undefined;
  const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
  const read = parseEgressUrl(url);
  if (!("issue" in read)) return { url };
  log.error({ code: "trace_endpoint_refused", why: read.issue }, "GATEWAY_OTLP_ENDPOINT is not used");
  return undefined;
}

function checkTracing({ analytics }: ConfigDocument, report: IssueReport): void {
  const traces = analytics?.traces;
  if (traces === undefined) return;
  const fieldPath = ["analytics", "traces"];
  const url = parseEgressUrl(traces.url);
  if ("issue" in url) report.error("bad_url", [...fieldPath, "url"], url.issue);
  for (const name of Object.keys(traces.headers ?? {})) {
    const issue = fieldNameIssue(name);
    if (issue !== undefined) report.error("bad_header", [...fieldPath, "headers", name], issue);
  }
  const { buffer = DEFAULTS.buffer, batch_max: batchMax = DEFAULTS.batchMax } = traces;
  if (batchMax > buffer) {
    const message = `batch_max (${batchMax}) must not be above buffer (${buffer}): a batch would never be full`;
    report.error("out_of_range", [...fieldPath, "batch_max"], message);
  }
}
