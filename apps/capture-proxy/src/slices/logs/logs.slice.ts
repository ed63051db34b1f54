import type { Settings, logsOperations } from "@headworks/capture-contract";
import { compileHostPatterns } from "@headworks/host-patterns";
import { fieldValues, type RawFields } from "@headworks/http1";
import type { BodyCapture } from "#exchange/body.ts";
import { exchangeUrl, type ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { createLogsOperations } from "./logs.operations.ts";
import { bodyNote, ByteBudget, type PendingBody, type TrafficEvent, TrafficLog, WatchedBody } from "./traffic-log.ts";

/** Log files over the API, and optional traffic logging. */
export function createLogsSlice(host: SliceHost): Slice<typeof logsOperations> {
  const { settings, log, logs } = host;
  const traffic = new TrafficLog(log, logs);
  let plan = compileTrafficLog(settings.running);
  settings.onChange((running) => {
    plan = compileTrafficLog(running);
  });
  return {
    name: "logs",
    operations: createLogsOperations(host, traffic),
    observer: createTrafficLogObserver(
      // The log level has precedence: at `warn` no traffic is logged.
      () => (plan !== undefined && log.isLevelEnabled("info") ? plan : undefined),
      (event) => traffic.add(event),
    ),
  };
}

/** Limit of all bodies queued for the log. */
const MAX_WAITING_BYTES = 67_108_864;

/** A logged exchange and the plan in force at its start. */
interface Followed {
  readonly plan: TrafficLogPlan;
  readonly request: WatchedBody | undefined;
  response: WatchedBody | undefined;
}

/** Logs requests at their start and responses at their end. */
function createTrafficLogObserver(
  plan: () => TrafficLogPlan | undefined,
  add: (event: TrafficEvent) => void,
): Observer {
  const budget = new ByteBudget(MAX_WAITING_BYTES);
  const followed = new WeakMap<ExchangeView, Followed>();
  const watch = (current: TrafficLogPlan, body: BodyCapture): WatchedBody | undefined => {
    if (!current.watchesBodies) return undefined;
    const watched = new WatchedBody(current.maxBodyBytes, budget);
    body.watch(watched);
    return watched;
  };
  return {
    name: "logs",
    onStarted: (exchange) => {
      const current = plan();
      if (current === undefined || !exchange.isRecorded || !current.matches(exchange.request.host)) return;
      followed.set(exchange, { plan: current, request: watch(current, exchange.requestBody), response: undefined });
      add(requestEvent(exchange, current));
    },
    onResponding: (exchange) => {
      const found = followed.get(exchange);
      if (found !== undefined) found.response ??= watch(found.plan, exchange.responseBody);
    },
    onFinished: (exchange) => {
      const found = followed.get(exchange);
      if (found === undefined) return;
      followed.delete(exchange);
      for (const event of endEvents(exchange, found)) add(event);
    },
  };
}

function requestEvent({ id, request, client }: ExchangeView, plan: TrafficLogPlan): TrafficEvent {
  return {
    facts: {
      target: "traffic",
      event: "request",
      id,
      client: client.address,
      ...(plan.level === "summary" ? {} : { headers: headers(request.fields, plan) }),
    },
    message: `> ${request.method} ${exchangeUrl(request)} ${request.version}`,
  };
}

function* endEvents(exchange: ExchangeView, { plan, request, response }: Followed): Generator<TrafficEvent> {
  const sent = bodyEvent(exchange, "request", plan, request);
  if (sent !== undefined) yield sent;
  yield responseEvent(exchange, plan);
  const received = bodyEvent(exchange, "response", plan, response);
  if (received !== undefined) yield received;
}

function responseEvent(exchange: ExchangeView, plan: TrafficLogPlan): TrafficEvent {
  const { id, request, response, moments, state, requestBody, responseBody, source } = exchange;
  const failure = state.step === "failed" ? state.failure : undefined;
  const status = response === undefined ? "no response" : `${response.status} ${response.reason}`.trimEnd();
  return {
    facts: {
      target: "traffic",
      event: "response",
      id,
      ms: moments.ended > 0 ? Math.round((moments.ended - moments.started) * 10) / 10 : null,
      sent: requestBody.sizeBytes,
      received: responseBody.sizeBytes,
      ...(source === "slice" ? { by: "weir" } : {}),
      ...(failure === undefined ? {} : { failure: failure.code, stage: failure.stage, reason: failure.message }),
      ...(plan.level === "summary" || response === undefined
        ? {}
        : { headers: [...headers(response.fields, plan), ...headers(response.trailers ?? [], plan, "trailer ")] }),
    },
    message: `< ${status} ${request.method} ${exchangeUrl(request)}`,
  };
}

/** Undefined at levels without bodies and for messages without a body. */
function bodyEvent(
  exchange: ExchangeView,
  event: "request" | "response",
  plan: TrafficLogPlan,
  watched: WatchedBody | undefined,
): TrafficEvent | undefined {
  const body = event === "request" ? exchange.requestBody : exchange.responseBody;
  if (plan.level !== "full" || body.sizeBytes === 0 || exchange.passthrough) {
    watched?.release();
    return undefined;
  }
  const fields = (event === "request" ? exchange.request : exchange.response)?.fields ?? [];
  const contentType = fieldValues(fields, "content-type")[0];
  const facts = { target: "traffic", event: `${event} body`, id: exchange.id };
  const mark = event === "request" ? ">" : "<";
  if (watched === undefined || watched.isGivenUp) {
    watched?.release();
    const why = watched === undefined ? "[REDACTED]" : "not logged: the queue is full";
    return { facts, message: `${mark} ${bodyNote(body.sizeBytes, contentType)}, ${why}` };
  }
  const input = {
    contentType,
    contentEncoding: fieldValues(fields, "content-encoding"),
    maxBytes: plan.maxBodyBytes,
  };
  const pending: PendingBody = { watched, input };
  return { facts, message: `${mark} `, body: pending };
}

function headers(fields: Readonly<RawFields>, plan: TrafficLogPlan, prefix = ""): [string, string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const isHidden = plan.redactedHeaders.has(name.toLowerCase());
    pairs.push([prefix + name, isHidden ? "[REDACTED]" : (fields[at + 1] ?? "")]);
  }
  return pairs;
}

/** Which parts of traffic are logged. */
interface TrafficLogPlan {
  readonly level: Settings["debug_logging"]["level"];
  readonly matches: (host: string) => boolean;
  /** Headers with hidden values, in lower case. */
  readonly redactedHeaders: ReadonlySet<string>;
  /** False at levels without bodies and while bodies are redacted. */
  readonly watchesBodies: boolean;
  /** Limit of logged bytes per body, before and after decoding. */
  readonly maxBodyBytes: number;
}

/** Redacted regardless of the settings. */
const ALWAYS_REDACTED = ["proxy-authorization", "x-api-key"];

/** Bodies are held in memory until they are logged. */
const MAX_BODY_BYTES = 33_554_432;

/** Undefined if traffic logging is off. */
function compileTrafficLog(settings: Settings): TrafficLogPlan | undefined {
  const { enabled, level, host_filter, redact_headers, redact_bodies } = settings.debug_logging;
  if (!enabled) return undefined;
  const hosts = host_filter.length === 0 ? undefined : compileHostPatterns(host_filter, "focus");
  return {
    level,
    matches: (host) => hosts === undefined || hosts.matches(host),
    redactedHeaders: new Set([...redact_headers.map((name) => name.toLowerCase()), ...ALWAYS_REDACTED]),
    watchesBodies: level === "full" && !redact_bodies,
    maxBodyBytes: Math.min(settings.max_body_size, MAX_BODY_BYTES),
  };
}
