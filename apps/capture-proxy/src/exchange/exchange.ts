import type { RuleKind } from "@headworks/capture-contract";
import { hostPortText } from "@headworks/host-patterns";
import type { FieldLines, RawFields } from "@headworks/http1";
import type { BodyCapture } from "./body.ts";
import type { Failure } from "./failure.ts";
import type { ThrottledPace } from "./bandwidth-limiter.ts";

export type Scheme = "http" | "https" | "ws" | "wss" | "tcp";
export type HttpVersion = "HTTP/1.0" | "HTTP/1.1" | "HTTP/2" | "SOCKS5";

/** Facts about one side's TLS connection. */
export interface TlsFacts {
  readonly version: string;
  readonly cipher: string;
}

/** Facts about the upstream's TLS connection; `verified` is false where verification is switched off. */
export interface UpstreamTlsFacts extends TlsFacts {
  readonly verified: boolean;
  readonly subject: string | undefined;
  readonly issuer: string | undefined;
  readonly validToMs: number | undefined;
  /** The answer to an upstream that asked for a client certificate; undefined where it did not ask. */
  readonly clientCertificate: "sent" | "none" | undefined;
}

/** What is known of the client's connection; shared by all its exchanges. */
export interface ClientFacts {
  /** `address:port`, IPv6 in brackets; undefined for requests of Weir's own. */
  readonly address: string | undefined;
  /** Number of the connection since start; undefined where there is no address. */
  readonly connection: number | undefined;
  /** Number of the session that its exchanges belong to; undefined: the active one. */
  readonly session?: number | undefined;
  readonly sni: string | undefined;
  readonly tls: TlsFacts | undefined;
}

/** A request head as the client sent it; the target is resolved, fields keep case, order and duplicates. */
export interface RequestMessage {
  method: string;
  scheme: Scheme;
  /** Lower-case name or address without brackets. */
  host: string;
  port: number;
  /** Path and query exactly as sent, `/` at least; `*` for OPTIONS. */
  path: string;
  version: HttpVersion;
  fields: RawFields;
  /** Of `fields`, as long as no rule changed the message. */
  fieldLines?: FieldLines;
  trailers: RawFields | undefined;
}

export interface ResponseMessage {
  status: number;
  reason: string;
  version: HttpVersion;
  fields: RawFields;
  /** Of `fields`, as long as no rule changed the message. */
  fieldLines?: FieldLines;
  trailers: RawFields | undefined;
}

/**
 * Monotonic moments in milliseconds; zero where a step did not happen. With an upstream proxy name resolution and
 * connecting are those of the proxy, a tunnel through it is part of connecting, and TLS is that with the origin, or with
 * the proxy where that is the only one.
 */
export interface Moments {
  started: number;
  requestEnded: number;
  resolveStarted: number;
  connectStarted: number;
  /** The upstream proxy was connected and asked for a tunnel. */
  tunnelStarted: number;
  tlsStarted: number;
  upstreamReady: number;
  sendStarted: number;
  sendEnded: number;
  firstByte: number;
  ended: number;
}

/** Moments of an exchange that starts now. */
export function newMoments(): Moments {
  return {
    started: performance.now(),
    requestEnded: 0,
    resolveStarted: 0,
    connectStarted: 0,
    tunnelStarted: 0,
    tlsStarted: 0,
    upstreamReady: 0,
    sendStarted: 0,
    sendEnded: 0,
    firstByte: 0,
    ended: 0,
  };
}

/** What one rule did to an exchange. */
export interface TraceStep {
  readonly kind: RuleKind;
  readonly ruleId: string;
  readonly ruleName: string;
  readonly phase: "request" | "response";
  /** For people, in the order in which they were made: `set header X-A`, `status 200 to 404`, `body 120 to 98 bytes`. */
  readonly changes: readonly string[];
}

/** A whole body, content-coded as it came, or why there is none. */
export type Content =
  | { readonly kind: "complete"; readonly bytes: Buffer }
  /** Larger than asked for: it streams on untouched. */
  | { readonly kind: "too-large" }
  /** The exchange is over; whatever is decided now is not carried out. */
  | { readonly kind: "gone" };

/** A message as it was before the first rule changed it; `body` only when the body was replaced. */
export interface Original<T> {
  readonly message: Readonly<T>;
  body: Buffer | undefined;
}

export type ExchangeState =
  | { readonly step: "receiving" }
  /** A person decides; no time limit of the connection runs. */
  | { readonly step: "paused"; readonly at: "request" | "response" }
  | { readonly step: "forwarding" }
  | { readonly step: "responding" }
  | { readonly step: "completed" }
  | { readonly step: "failed"; readonly failure: Failure };

/** One request and its answer, or one tunnel, while it is in flight. Observers keep no reference after `onFinished`. */
export interface Exchange {
  /** UUID, ascending in time. */
  readonly id: string;
  /** Wall clock, milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly client: ClientFacts;
  request: RequestMessage;
  response: ResponseMessage | undefined;
  readonly requestBody: BodyCapture;
  readonly responseBody: BodyCapture;
  /** Content or trailers follow the request's head; over HTTP/2 no field has to say so (RFC 9113, 8.1). */
  readonly requestHasBody: boolean;
  readonly moments: Moments;
  state: ExchangeState;
  /** Who made the answer. */
  source: "upstream" | "slice";
  /** A tunnel: bytes are counted, not read. */
  passthrough: boolean;
  /** A rule changed the request or the answer. */
  readonly modified: boolean;
  /** `address:port` that was dialled. */
  serverAddress: string | undefined;
  upstreamTls: UpstreamTlsFacts | undefined;
  /** False: nothing of it is stored or shown (Passthrough mode, ignored domains). */
  readonly isRecorded: boolean;
  /** Rules that touched it, in the order in which they did; undefined: none. */
  readonly trace: readonly TraceStep[] | undefined;
  readonly originalRequest: Original<RequestMessage> | undefined;
  readonly originalResponse: Original<ResponseMessage> | undefined;
  /** The line its bodies, or the bytes of its tunnel, go over; undefined: none that could be limited. */
  pace: ThrottledPace | undefined;

  addTrace(step: TraceStep): void;
  /**
   * The request to be changed, in the request phase only; what it was is kept. A new host, port or scheme changes where
   * it is sent, and Host with it where Host said the old place.
   */
  changeRequest(): RequestMessage;
  /** The answer to be changed, in the answer phase only; what it was is kept. */
  changeResponse(): ResponseMessage;
  /**
   * Waits for the whole body, in the phase of its message only. Nothing of the message is passed on meanwhile; a body
   * larger than `limitBytes` (as it came, content-coded) streams on.
   */
  requestContent(limitBytes: number): Promise<Content>;
  responseContent(limitBytes: number): Promise<Content>;
  /** Replaces the body, which was waited for or has not begun; its length is stated in Content-Length. */
  setRequestContent(bytes: Buffer): void;
  setResponseContent(bytes: Buffer): void;
}

/**
 * Whether the client ended the exchange while the response was under way: a closed event stream, a cancelled download. That is
 * no failure, although the body is not whole.
 */
export function isClosedByClient({ state, response }: Pick<ExchangeView, "state" | "response">): boolean {
  return state.step === "failed" && state.failure.code === "CLIENT_ABORTED" && response !== undefined;
}

/** What observers see: the same object, which they must not change. */
export type ExchangeView = Readonly<Exchange>;

/**
 * The absolute URL of a request. Default ports are left out, as browsers show it; the URL of a tunnel always has its port:
 * `https://host:443/`, `tcp://host:22/` (specification, "SOCKS5 traffic entry").
 */
export function exchangeUrl(request: Readonly<RequestMessage>): string {
  const { scheme, host, port } = request;
  const path = request.path.startsWith("/") ? request.path : `/${request.path}`;
  // WebSocket over HTTP/2 is a CONNECT too; its scheme is wss.
  const isTunnel = request.method === "CONNECT" && scheme === "https";
  return `${scheme}://${hostPortText(host, port, isTunnel ? undefined : DEFAULT_PORTS[scheme])}${path}`;
}

const DEFAULT_PORTS: Readonly<Record<Scheme, number>> = { http: 80, ws: 80, https: 443, wss: 443, tcp: -1 };

/** Milliseconds of each stage, null where it did not happen. */
export interface StageTimings {
  readonly blocked: number | null;
  readonly dns: number | null;
  readonly connect: number | null;
  readonly tls: number | null;
  readonly send: number | null;
  readonly wait: number | null;
  readonly receive: number | null;
}

/** Stage durations from the moments of an exchange. */
export function stageTimings(moments: Readonly<Moments>): StageTimings {
  const {
    started,
    resolveStarted,
    connectStarted,
    tlsStarted,
    upstreamReady,
    sendStarted,
    sendEnded,
    firstByte,
    ended,
  } = moments;
  const firstStep = resolveStarted || connectStarted || sendStarted || ended;
  return {
    blocked: firstStep > 0 ? between(started, firstStep) : null,
    dns: resolveStarted > 0 && connectStarted > 0 ? between(resolveStarted, connectStarted) : null,
    connect: connectStarted > 0 && upstreamReady > 0 ? between(connectStarted, tlsStarted || upstreamReady) : null,
    tls: tlsStarted > 0 && upstreamReady > 0 ? between(tlsStarted, upstreamReady) : null,
    send: sendStarted > 0 ? between(sendStarted, sendEnded || firstByte || ended) : null,
    wait:
      sendStarted > 0 && firstByte > 0
        ? between(sendEnded > 0 && sendEnded < firstByte ? sendEnded : firstByte, firstByte)
        : null,
    receive: firstByte > 0 && ended > 0 ? between(firstByte, ended) : null,
  };
}

/** Microsecond resolution is noise here; two decimals keep records short. */
function between(from: number, to: number): number {
  return Math.max(0, Math.round((to - from) * 100) / 100);
}
