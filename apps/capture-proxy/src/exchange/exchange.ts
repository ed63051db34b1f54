import { randomFillSync } from "node:crypto";
import type { RuleKind } from "@headworks/capture-contract";
import { hostPortText } from "@headworks/host-patterns";
import type { FieldLines, RawFields } from "@headworks/http1";
import type { ThrottledPace } from "./bandwidth-limiter.ts";
import type { BodyCapture, OpenFilter } from "./body.ts";
import type { Failure } from "./failure.ts";

export type Scheme = "http" | "https" | "ws" | "wss" | "tcp";
export type HttpVersion = "HTTP/1.0" | "HTTP/1.1" | "HTTP/2" | "SOCKS5";

export interface TlsFacts {
  readonly version: string;
  readonly cipher: string;
}

/** TLS facts of the upstream connection; `verified` is false if verification is switched off. */
export interface UpstreamTlsFacts extends TlsFacts {
  readonly verified: boolean;
  readonly subject: string | undefined;
  readonly issuer: string | undefined;
  readonly validToMs: number | undefined;
  /** Response to the upstream's request for a client certificate; undefined without such a request. */
  readonly clientCertificate: "sent" | "none" | undefined;
}

/** A client connection, shared by all its exchanges. */
export interface ClientFacts {
  /** `address:port`, IPv6 in brackets; undefined for Weir's own requests. */
  readonly address: string | undefined;
  /** Sequence number of the connection since start; undefined without an address. */
  readonly connection: number | undefined;
  /** Session in which its exchanges are recorded; undefined: the active one. */
  readonly session?: number | undefined;
  readonly sni: string | undefined;
  readonly tls: TlsFacts | undefined;
}

/** A request head as the client sent it, with the target resolved; fields keep case, order and duplicates. */
export interface RequestMessage {
  method: string;
  scheme: Scheme;
  /** Lower-case name or address without brackets. */
  host: string;
  port: number;
  /** Path and query exactly as sent, at least `/`; `*` for OPTIONS. */
  path: string;
  version: HttpVersion;
  fields: RawFields;
  /** Undefined once a rule changed the message. */
  fieldLines?: FieldLines;
  trailers: RawFields | undefined;
}

export interface ResponseMessage {
  status: number;
  reason: string;
  version: HttpVersion;
  fields: RawFields;
  /** Undefined once a rule changed the message. */
  fieldLines?: FieldLines;
  trailers: RawFields | undefined;
}

/**
 * Monotonic milliseconds; zero for steps that did not happen. With an upstream proxy, name resolution and connecting
 * refer to the proxy and include the tunnel through it; TLS refers to the origin, or to the proxy if that is the only
 * TLS connection.
 */
export interface Moments {
  started: number;
  requestEnded: number;
  resolveStarted: number;
  connectStarted: number;
  /** The upstream proxy was connected and sent the tunnel request. */
  tunnelStarted: number;
  tlsStarted: number;
  upstreamReady: number;
  sendStarted: number;
  sendEnded: number;
  firstByte: number;
  ended: number;
}

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

export interface TraceStep {
  readonly kind: RuleKind;
  readonly ruleId: string;
  readonly ruleName: string;
  readonly phase: "request" | "response";
  /** For people, in order: `set header X-A`, `status 200 to 404`, `body 120 to 98 bytes`. */
  readonly changes: readonly string[];
}

/** A whole content-coded body, or why it is not available. */
export type Content =
  | { readonly kind: "complete"; readonly bytes: Buffer }
  /** Larger than the limit: it is forwarded unchanged. */
  | { readonly kind: "too-large" }
  /** The exchange is over, so a decision has no effect. */
  | { readonly kind: "gone" };

/** A message before the first rule changed it; `body` only if the body was replaced. */
export interface Original<T> {
  readonly message: Readonly<T>;
  body: Buffer | undefined;
}

export type ExchangeState =
  | { readonly step: "receiving" }
  /** Paused for a person's decision; timeouts are suspended. */
  | { readonly step: "paused"; readonly at: "request" | "response" }
  | { readonly step: "forwarding" }
  | { readonly step: "responding" }
  | { readonly step: "completed" }
  | { readonly step: "failed"; readonly failure: Failure };

/** One request and its response, or one tunnel, in flight. Observers must not keep a reference after `onFinished`. */
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
  /** Content or trailers follow the request head; over HTTP/2 no field announces them (RFC 9113, 8.1). */
  readonly requestHasBody: boolean;
  readonly moments: Moments;
  state: ExchangeState;
  /** Origin of the response. */
  source: "upstream" | "slice";
  /** A tunnel: bytes are counted, not recorded. */
  passthrough: boolean;
  /** A rule changed the request or the response. */
  readonly modified: boolean;
  /** `address:port` that was dialled. */
  serverAddress: string | undefined;
  upstreamTls: UpstreamTlsFacts | undefined;
  /** False: not stored or shown (Passthrough mode, ignored domains). */
  readonly isRecorded: boolean;
  /** Rules applied, in order; undefined: none. */
  readonly trace: readonly TraceStep[] | undefined;
  readonly originalRequest: Original<RequestMessage> | undefined;
  readonly originalResponse: Original<ResponseMessage> | undefined;
  /** Bandwidth limits for bodies or tunnel bytes; undefined: unlimited. */
  pace: ThrottledPace | undefined;

  addTrace(step: TraceStep): void;
  /**
   * Returns the request for modification, in the request phase only; the original is kept. A new host, port or scheme
   * changes the destination, and Host with it if Host named the old one.
   */
  changeRequest(): RequestMessage;
  /** Returns the response for modification, in the response phase only; the original is kept. */
  changeResponse(): ResponseMessage;
  /**
   * Waits for the whole body, in its message's phase only; nothing is forwarded meanwhile. A body larger than
   * `limitBytes` (content-coded) is forwarded unchanged.
   */
  requestContent(limitBytes: number): Promise<Content>;
  responseContent(limitBytes: number): Promise<Content>;
  /** Replaces a body that was awaited or has not begun, and sets Content-Length. */
  setRequestContent(bytes: Buffer): void;
  setResponseContent(bytes: Buffer): void;
  /**
   * Forwards a body through a filter, which is opened when the body is forwarded; in its message's phase only, and once.
   * What leaves the filter is recorded instead of what came in.
   */
  filterBody(side: "request" | "response", open: OpenFilter): void;
}

/**
 * Whether the client ended the exchange during the response: a closed event stream or a cancelled download. This is no
 * failure, although the body is incomplete.
 */
export function isClosedByClient({ state, response }: Pick<ExchangeView, "state" | "response">): boolean {
  return state.step === "failed" && state.failure.code === "CLIENT_ABORTED" && response !== undefined;
}

/** The exchange as observers see it. */
export type ExchangeView = Readonly<Exchange>;

/** The parts of an exchange that are stored. */
export type ExchangeFacts = Pick<
  ExchangeView,
  | "id"
  | "startedAtMs"
  | "client"
  | "request"
  | "response"
  | "requestBody"
  | "responseBody"
  | "moments"
  | "state"
  | "source"
  | "passthrough"
  | "modified"
  | "serverAddress"
  | "upstreamTls"
  | "isRecorded"
  | "trace"
  | "originalRequest"
  | "originalResponse"
> & {
  /** Stored with the entry. */
  readonly note?: string | undefined;
};

/**
 * The absolute URL of a request, without default ports; a tunnel's URL always has its port: `https://host:443/`,
 * `tcp://host:22/` (specification, "SOCKS5 traffic entry").
 */
export function exchangeUrl(request: Readonly<RequestMessage>): string {
  const { scheme, host, port } = request;
  const path = request.path.startsWith("/") ? request.path : `/${request.path}`;
  // A WebSocket over HTTP/2 is also a CONNECT, with scheme wss.
  const isTunnel = request.method === "CONNECT" && scheme === "https";
  return `${scheme}://${hostPortText(host, port, isTunnel ? undefined : DEFAULT_PORTS[scheme])}${path}`;
}

const DEFAULT_PORTS: Readonly<Record<Scheme, number>> = { http: 80, ws: 80, https: 443, wss: 443, tcp: -1 };

/** Milliseconds per stage; null for stages that did not happen. */
export interface StageTimings {
  readonly blocked: number | null;
  readonly dns: number | null;
  readonly connect: number | null;
  readonly tls: number | null;
  readonly send: number | null;
  readonly wait: number | null;
  readonly receive: number | null;
}

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

/** More than two decimals would be noise. */
function between(from: number, to: number): number {
  return Math.max(0, Math.round((to - from) * 100) / 100);
}

const POOL_BYTES = 8192;
const pool = Buffer.allocUnsafe(POOL_BYTES);
let used = POOL_BYTES;
let lastMs = 0;
/** Text of `lastMs`, the prefix of its ids. */
let timeText = "";
let sequence = 0;

/**
 * A UUIDv7 (RFC 9562): 48 bits of milliseconds, a 12-bit counter within the millisecond, 62 random bits. Ids ascend in
 * time, so indexes on them grow only at the end.
 */
export function newExchangeId(nowMs: number): string {
  if (nowMs > lastMs) startMillisecond(nowMs);
  else if ((sequence += 1) > 0xfff) startMillisecond(lastMs + 1);
  if (used + 8 > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  pool[used] = ((pool[used] as number) & 0x3f) | 0x80;
  const random = pool.toString("hex", used, used + 8);
  used += 8;
  const counter = (0x7000 | sequence).toString(16);
  return `${timeText}-${counter}-${random.slice(0, 4)}-${random.slice(4)}`;
}

function startMillisecond(ms: number): void {
  const hex = ms.toString(16).padStart(12, "0");
  lastMs = ms;
  timeText = `${hex.slice(0, 8)}-${hex.slice(8)}`;
  sequence = 0;
}
