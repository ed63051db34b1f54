import { fieldValue, type RawFields } from "@headworks/http1";
import type { AttemptTrace, FinishedRequest, RequestContext, RequestTrace } from "#request/context.ts";
import type { Attributes, Span } from "./span.ts";
import { randomId, setTraceParent, type TraceParent } from "./trace-context.ts";

/** Receives ended spans. */
export interface SpanSink {
  add(span: Span): void;
}

const METHODS: ReadonlySet<string> = new Set([
  "CONNECT",
  "DELETE",
  "GET",
  "HEAD",
  "OPTIONS",
  "PATCH",
  "POST",
  "PUT",
  "QUERY",
  "TRACE",
]);

/** Limits span names, since clients choose methods. */
const knownMethod = (method: string): string => (METHODS.has(method) ? method : "_OTHER");

/**
 * The spans of one request: a server span and a client span per upstream attempt. Attributes follow the semantic
 * conventions for HTTP; queries and field values except the user agent are omitted.
 */
export class RequestSpans implements RequestTrace {
  readonly #request: RequestContext;
  readonly #sink: SpanSink;
  readonly #parent: TraceParent | undefined;
  readonly traceId: string;
  readonly #spanId = randomId(8);
  #attempts = 0;

  constructor(request: RequestContext, parent: TraceParent | undefined, sink: SpanSink) {
    this.#request = request;
    this.#sink = sink;
    this.#parent = parent;
    this.traceId = parent?.traceId ?? randomId(16);
  }

  attempt(upstream: string, endpoint: string, isSecure: boolean): AttemptTrace {
    this.#attempts += 1;
    const attributes: Attributes = {
      ...methodOf(this.#request.method),
      ...addressOf(endpoint),
      "http.request.resend_count": this.#attempts === 1 ? undefined : this.#attempts - 1,
      "gateway.upstream": upstream,
    };
    const keepsState = this.#parent !== undefined;
    const origin = `${isSecure ? "https" : "http"}://${endpoint}`;
    const ids = { traceId: this.traceId, parentId: this.#spanId, state: this.#parent?.state ?? "" };
    return new AttemptSpan(
      ids,
      { name: knownMethod(this.#request.method), origin, attributes },
      keepsState,
      this.#sink,
    );
  }

  finished({ status, durationMs, code, isComplete }: FinishedRequest): void {
    const { route, consumer, method, startedMs } = this.#request;
    const template = route?.document.match.path.value;
    const isFailure = status >= 500 || (status !== 0 && !isComplete);
    this.#sink.add({
      traceId: this.traceId,
      spanId: this.#spanId,
      parentId: this.#parent?.spanId,
      state: this.#parent?.state ?? "",
      name: template === undefined ? knownMethod(method) : `${knownMethod(method)} ${template}`,
      kind: "server",
      startMs: startedMs,
      endMs: startedMs + durationMs,
      attributes: {
        ...methodOf(method),
        ...requestAttributes(this.#request),
        "http.route": template,
        "http.response.status_code": status === 0 ? undefined : status,
        "error.type": isFailure ? (code ?? (status >= 500 ? String(status) : "incomplete")) : undefined,
        "gateway.error_code": code,
        "gateway.client_gone": status === 0 ? true : undefined,
        "gateway.consumer": consumer?.name,
        "gateway.route": route?.name,
      },
      isError: isFailure,
    });
  }
}

interface SpanIds {
  readonly traceId: string;
  readonly parentId: string;
  readonly state: string;
}

interface AttemptFacts {
  readonly name: string;
  /** Scheme and endpoint. */
  readonly origin: string;
  readonly attributes: Attributes;
}

class AttemptSpan implements AttemptTrace {
  readonly #ids: SpanIds;
  readonly #spanId = randomId(8);
  readonly #facts: AttemptFacts;
  readonly #keepsState: boolean;
  readonly #sink: SpanSink;
  readonly #startMs = performance.now();
  #url: string | undefined;
  #status: number | undefined;
  #isEnded = false;

  constructor(ids: SpanIds, facts: AttemptFacts, keepsState: boolean, sink: SpanSink) {
    this.#ids = ids;
    this.#facts = facts;
    this.#keepsState = keepsState;
    this.#sink = sink;
  }

  send(fields: RawFields, target: string): void {
    const mark = target.indexOf("?");
    this.#url = this.#facts.origin + (mark === -1 ? target : target.slice(0, mark));
    setTraceParent(fields, this.#ids.traceId, this.#spanId, this.#keepsState);
  }

  answered(status: number): void {
    this.#status = status;
  }

  ended(failure?: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const status = this.#status;
    const isFailure = failure !== undefined || (status ?? 0) >= 400;
    this.#sink.add({
      ...this.#ids,
      spanId: this.#spanId,
      name: this.#facts.name,
      kind: "client",
      startMs: this.#startMs,
      endMs: performance.now(),
      attributes: {
        ...this.#facts.attributes,
        "url.full": this.#url,
        "http.response.status_code": status,
        "error.type": isFailure ? (failure ?? String(status)) : undefined,
      },
      isError: isFailure,
    });
  }
}

function methodOf(method: string): Attributes {
  const known = knownMethod(method);
  return { "http.request.method": known, "http.request.method_original": known === method ? undefined : method };
}

function requestAttributes(request: RequestContext): Attributes {
  const { listener, authority, version, requestId, path, fields, peer } = request;
  return {
    "url.path": path,
    "url.scheme": listener.isSecure ? "https" : "http",
    ...(authority === undefined ? {} : addressOf(authority, listener.isSecure ? 443 : 80)),
    "client.address": request.clientAddress,
    "network.peer.address": peer.address,
    "network.protocol.version": version,
    "user_agent.original": fieldValue(fields, "user-agent"),
    "gateway.listener": listener.name,
    "gateway.request_id": requestId,
  };
}

/** Parses `host:port`; IPv6 with brackets or, as in endpoint names, without. */
function addressOf(authority: string, defaultPort?: number): Attributes {
  const [, v6, host, digits] = /^(?:\[([^\]]*)\]|(.*?))(?::(\d{1,5}))?$/.exec(authority) ?? [];
  const port = digits === undefined ? defaultPort : Number(digits);
  return { "server.address": v6 ?? host ?? authority, "server.port": port };
}
