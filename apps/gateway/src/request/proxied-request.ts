import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  DEFAULT_REQUEST_BUFFER_BYTES,
  DEFAULT_RESPONSE_BUFFER_BYTES,
  type Retries,
  type Upstream,
} from "@headworks/gateway-contract";
import { isGrpc, reasonPhrase } from "@headworks/http-fields";
import { fieldValue, type Framing, hasBody, isIdempotent, type RawFields, type ResponseHead } from "@headworks/http1";
import { trackExternalMemory, type SharedBytes } from "@headworks/sockets";
import type { EndpointPools } from "#upstream/endpoint-pools.ts";
import type { UpstreamExchange, UpstreamFailure } from "#upstream/upstream-exchange.ts";
import type { Endpoint } from "#upstream/endpoint.ts";
import type { PickKey } from "#upstream/balancer.ts";
import type { UpstreamGroup } from "#upstream/upstream-registry.ts";
import { Attempt, type AttemptFailure, type AttemptOwner } from "./attempt.ts";
import type { ClientHandler, CompiledAction, Refusal, ResponseCapture, ResponseOrigin, TunnelEnd } from "./context.ts";
import {
  clientResponseFields,
  clientResponseTrailers,
  upstreamRequestFields,
  upstreamRequestTrailers,
} from "./forwarded-fields.ts";
import type { RequestIdField } from "./forwarding-rules.ts";
import type { ResponseSender } from "./response-sender.ts";
import { CheckedBody, UpstreamBody } from "./request-body.ts";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const NO_RETRIES: RetryRules = Object.freeze({
  attempts: 0,
  maxKeptBytes: 0,
  onTransport: false,
  statuses: [],
  baseMs: 0,
  capMs: 0,
  hedges: 0,
  hedgeAfterMs: 0,
});

const RETRYABLE_STATUSES: readonly number[] = [502, 503, 504];

/** Limit of a failure text in the access log. */
const MAX_NOTE_LENGTH = 200;

/** How often a request that an endpoint refused unprocessed is sent again. */
const MAX_RESENDS = 3;

type ProxyAction = Extract<CompiledAction, { kind: "proxy" }>;

/** The pools of all endpoints, and the memory for bodies buffered until a connection is available. */
export type ConnectionSource = Pick<EndpointPools, "poolOf" | "buffers">;

const NONE_TRIED: readonly Endpoint[] = [];

/** Sends one request to an endpoint of its upstream, retries where allowed, and passes the response on. */
export class ProxiedRequest implements ClientHandler, AttemptOwner {
  readonly #delivery: ResponseSender;
  readonly #action: ProxyAction;
  readonly #pools: ConnectionSource;
  readonly #group: UpstreamGroup;
  /** Fixed when the request arrived; reloads do not affect it. */
  readonly #document: Upstream;
  readonly #setCookie: string | undefined;
  readonly #host: string | undefined;
  readonly #target: string | undefined;
  readonly #rules: RetryRules;
  readonly #body: UpstreamBody | undefined;
  /** Attempts without a response head so far. */
  readonly #open: Attempt[] = [];
  #winner: Attempt | undefined;
  #tried = NONE_TRIED;
  #attempts = 0;
  #retriesLeft: number;
  #hedgesLeft: number;
  #resends = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #hedgeTimer: NodeJS.Timeout | undefined;
  #requestTimer: NodeJS.Timeout | undefined;
  #trailers: RawFields | undefined;
  #capture: ResponseCapture | undefined;
  #switchFields: RawFields | undefined;

  constructor(delivery: ResponseSender, action: ProxyAction, pools: ConnectionSource) {
    this.#delivery = delivery;
    this.#action = action;
    this.#pools = pools;
    const { request, stream } = delivery;
    const { group, host, setCookie } = action.choose(request);
    this.#group = group;
    this.#document = group.document;
    this.#setCookie = setCookie;
    this.#host = host === "endpoint" ? undefined : host === "preserve" ? request.authority : host.name;
    delivery.bufferBytes = group.document.response_buffer_bytes ?? DEFAULT_RESPONSE_BUFFER_BYTES;
    this.#target = action.rewrite(request);
    request.upstream = { upstream: group.name, endpoint: "", attempts: 0, failure: undefined };
    this.#rules = retryRules(group.document.retries, request);
    const { attempts, hedges } = this.#rules;
    this.#retriesLeft = attempts;
    this.#hedgesLeft = hedges;
    if (hasBody(request.framing)) {
      this.#body = new UpstreamBody(stream, { limitBytes: request.bodyLimitBytes, maxKeptBytes: this.#maxKeptBytes });
    }
  }

  start(): void {
    if (this.#target === undefined) return this.#refuse({ code: "bad_request" }, "short-circuit");
    const { request, stream } = this.#delivery;
    const { timeouts } = this.#document;
    // HTTP/2 streams cannot be upgraded.
    if (request.upgrade === "websocket" && this.#isHttp2) {
      return this.#refuse({ code: "upgrade_not_supported" }, "short-circuit");
    }
    stream.handler = CheckedBody.around(this, request.bodyCheck, request.framing);
    this.#delivery.onDrain = this.#onDrain;
    this.#group.countRequest();
    const requestMs = timeouts?.request_ms;
    if (requestMs !== undefined) {
      // A single attempt had all of this time; the last of several may have just begun.
      const timedOut = (): void => this.#fail({ code: "upstream_response_timeout" }, "action", this.#attempts === 1);
      this.#requestTimer = setTimeout(timedOut, requestMs);
    }
    if (this.#body === undefined) this.#attempt();
    else this.#startWithBody(this.#body);
  }

  /** Acquires a connection once the body, or the part that may be buffered, has arrived. */
  #startWithBody(body: UpstreamBody): void {
    const { request, stream } = this.#delivery;
    const { framing } = request;
    const maxBytes = this.#document.request_buffer_bytes ?? DEFAULT_REQUEST_BUFFER_BYTES;
    const hasLength = framing.kind === "length";
    const neededBytes = hasLength ? Math.min(framing.lengthBytes, maxBytes) : maxBytes;
    // A gRPC client may wait for a message before it sends the next.
    const goesAtOnce = stream.bodyBytesHere >= neededBytes || isGrpc(fieldValue(request.fields, "content-type"));
    if (goesAtOnce) return this.#attempt();
    body.fill({ maxBytes, hasLength, budget: this.#pools.buffers }, () => this.#attempt());
  }

  readonly #onDrain = (): void => this.#winner?.release();

  get #idField(): RequestIdField | undefined {
    return this.#delivery.request.generation.requestIdField;
  }

  get #isSecure(): boolean {
    const { protocol } = this.#document;
    return protocol === "https" || protocol === "http2";
  }

  get #isHttp2(): boolean {
    const { protocol } = this.#document;
    return protocol === "http2" || protocol === "h2c";
  }

  /** Retries may need the body again, and so may refused streams, if the first part has arrived anyway. */
  get #maxKeptBytes(): number {
    const { maxKeptBytes } = this.#rules;
    if (!this.#isHttp2) return maxKeptBytes;
    return Math.max(maxKeptBytes, this.#document.request_buffer_bytes ?? DEFAULT_REQUEST_BUFFER_BYTES);
  }

  #attempt(): void {
    const { request } = this.#delivery;
    const admission = this.#group.admit();
    if ("retryAfterS" in admission) {
      request.isBroken = true;
      const fields = ["Retry-After", String(admission.retryAfterS)];
      return this.#refuse({ code: "upstream_circuit_open", fields }, "short-circuit");
    }
    const { epoch } = admission;
    const endpoint = this.#group.pick(this.#pickKey(), this.#tried);
    if (endpoint === undefined) {
      this.#group.settle(epoch, undefined);
      return this.#refuse({ code: "upstream_unavailable" }, "action");
    }
    this.#begin(endpoint, epoch);
    if (this.#hedgesLeft > 0 && this.#open.length > 0) this.#hedgeLater();
  }

  #begin(endpoint: Endpoint, passEpoch: number): void {
    const { upstream } = this.#delivery.request;
    this.#attempts += 1;
    if (upstream !== undefined) {
      upstream.attempts = this.#attempts;
      upstream.endpoint = endpoint.key;
    }
    const { timeouts } = this.#document;
    const trace = this.#delivery.request.trace?.attempt(this.#group.name, endpoint.key, this.#isSecure);
    const attempt = new Attempt({ owner: this, group: this.#group, endpoint, passEpoch, timeouts, trace });
    this.#open.push(attempt);
    attempt.start(this.#pools.poolOf(this.#group, endpoint));
  }

  #pickKey(): PickKey {
    const { request } = this.#delivery;
    const name = this.#document.hash_header;
    return {
      clientAddress: request.clientAddress,
      headerValue: name === undefined ? undefined : fieldValue(request.fields, name.toLowerCase()),
    };
  }

  #hedgeLater(): void {
    clearTimeout(this.#hedgeTimer);
    this.#hedgeTimer = setTimeout(() => this.#hedge(), this.#rules.hedgeAfterMs);
  }

  /** Starts a second attempt at another endpoint beside a slow one, if the rules allow it. */
  #hedge(): void {
    if (this.#hedgesLeft === 0 || this.#open.length === 0) return;
    // A body that is still arriving can only be sent once.
    if (this.#body !== undefined && !(this.#body.isComplete && this.#body.canRepeat)) return;
    const admission = this.#group.admit();
    if ("retryAfterS" in admission) return;
    const { epoch } = admission;
    const busy = this.#open.map(({ endpoint }) => endpoint);
    const endpoint = this.#group.pick(this.#pickKey(), [...this.#tried, ...busy]);
    if (endpoint === undefined || !this.#group.spendHedge()) return this.#group.settle(epoch, undefined);
    this.#hedgesLeft -= 1;
    this.#begin(endpoint, epoch);
    if (this.#hedgesLeft > 0) this.#hedgeLater();
  }

  #takeRetry(): boolean {
    const body = this.#body;
    const canRepeat = body === undefined || (body.canRepeat && body.sizeBytes <= this.#rules.maxKeptBytes);
    if (this.#retriesLeft === 0 || !canRepeat || !this.#group.spendRetry()) return false;
    this.#retriesLeft -= 1;
    return true;
  }

  #retryLater(): void {
    this.#retryTimer = setTimeout(() => this.#attempt(), backoffMs(this.#rules, this.#attempts + 1));
  }

  /** The attempt ended without a response; its endpoint is avoided while there is another one. */
  #forget(attempt: Attempt, isItsFault: boolean): void {
    this.#open.splice(this.#open.indexOf(attempt), 1);
    if (isItsFault) this.#tried = [...this.#tried, attempt.endpoint];
    if (this.#open.length > 0) return;
    clearTimeout(this.#hedgeTimer);
    this.#body?.detach();
  }

  send(attempt: Attempt, exchange: UpstreamExchange): void {
    const { request } = this.#delivery;
    const fields = upstreamRequestFields(request, this.#isHttp2);
    attempt.trace?.send(fields, this.#target ?? "/");
    this.#action.changeFields?.(request, fields);
    exchange.send({
      method: request.method,
      target: this.#target ?? "/",
      host: this.#host,
      fields,
      framing: request.framing,
      upgrade: request.upgrade === "websocket" ? request.upgrade : undefined,
      handler: attempt,
    });
    this.#body?.attach(exchange);
  }

  /**
   * An idle connection was closed at the moment of its use: retried once, only for a request that may be sent twice.
   * A request that was refused unprocessed is sent again whatever its method, as long as its body is kept (RFC 9113,
   * 8.7).
   */
  canRetrySilently(failure: UpstreamFailure): boolean {
    const { method, upgrade } = this.#delivery.request;
    if (upgrade !== undefined) return false;
    if (failure === "refused") return this.#resends < MAX_RESENDS && (this.#body === undefined || this.#body.canRepeat);
    return this.#resends === 0 && this.#body === undefined && isIdempotent(method);
  }

  failed(attempt: Attempt, failure: AttemptFailure, detail: string): void {
    this.#note(failure, detail);
    this.#forget(attempt, failure !== "stale");
    if (this.#open.length > 0) return;
    switch (failure) {
      case "stale":
        this.#resends += 1;
        this.#attempts -= 1;
        return this.#attempt();
      case "saturated":
        return this.#refuse({ code: REFUSALS[failure], fields: ["Retry-After", "1"] }, "short-circuit");
      case "misconfigured":
        return this.#refuse({ code: REFUSALS[failure] }, "action");
      default:
        if (this.#rules.onTransport && this.#takeRetry()) return this.#retryLater();
        return this.#refuse({ code: REFUSALS[failure] }, "action");
    }
  }

  /** For the access log; `detail` may contain text from the peer. */
  #note(failure: string, detail: string): void {
    const { upstream } = this.#delivery.request;
    if (upstream !== undefined) upstream.failure = `${failure}: ${detail}`.slice(0, MAX_NOTE_LENGTH);
  }

  #refuse(refusal: Refusal, origin: ResponseOrigin): void {
    this.#end();
    this.#delivery.response(refusal, origin);
  }

  /** Cancels all open attempts; `hadItsTime` counts that against the endpoint. */
  #fail(refusal: Refusal, origin: ResponseOrigin, hadItsTime = false): void {
    if (this.#delivery.isEnded) return;
    this.#drop(hadItsTime);
    this.#end();
    if (this.#delivery.isStarted) this.#delivery.abort();
    else this.#delivery.response(refusal, origin);
  }

  #drop(hadItsTime = false): void {
    for (const attempt of this.#open.splice(0)) attempt.abandon(hadItsTime);
    this.#winner?.abandon();
    this.#capture?.abandon();
    this.#winner = undefined;
    this.#capture = undefined;
  }

  #end(): void {
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#hedgeTimer);
    clearTimeout(this.#requestTimer);
    this.#body?.forget();
  }

  onBodyData(piece: SharedBytes): void {
    const body = this.#body;
    if (body === undefined || body.data(piece)) return;
    // The upstream must not take the partial body for a complete one.
    const allowed = this.#delivery.request.bodyLimitBytes;
    const message = `The body is larger than allowed: ${body.sizeBytes} bytes so far, at most ${allowed}`;
    this.#fail({ code: "request_body_too_large", message }, "short-circuit");
  }

  onBodyTrailers(fields: RawFields): void {
    this.#body?.trailers(upstreamRequestTrailers(this.#delivery.request, fields));
  }

  onBodyEnd(): void {
    this.#body?.end();
  }

  onBodyBatch(): void {
    this.#body?.batch();
  }

  onClientDrain(): void {
    this.#delivery.clientDrained();
  }

  onClientGone(): void {
    this.#drop();
    this.#end();
    this.#delivery.clientGone();
  }

  onRefused(refusal: Refusal): void {
    // Only a slow upstream is a failure of the action; a missing or malformed body is the client's.
    this.#fail(refusal, refusal.code === "upstream_response_timeout" ? "action" : "short-circuit");
  }

  informed(head: ResponseHead): void {
    this.#delivery.stream.sendInformational(
      head.status,
      head.reason,
      clientResponseFields(head.fields, false, this.#idField),
    );
  }

  answered(attempt: Attempt, head: ResponseHead): void {
    if (this.#rules.statuses.includes(head.status) && (this.#open.length > 1 || this.#takeRetry())) {
      this.#forget(attempt, true);
      attempt.discard();
      if (this.#open.length === 0) this.#retryLater();
      return;
    }
    this.#wins(attempt);
    const { request } = this.#delivery;
    const isSwitch = head.status === 101;
    // A 204 has no Content-Length (RFC 9110, 8.6).
    const describesLength = head.framing.kind === "none" && !isSwitch && head.status !== 204;
    const fields = clientResponseFields(head.fields, describesLength, this.#idField);
    if (this.#setCookie !== undefined) fields.push("Set-Cookie", this.#setCookie);
    const marks = request.generation.via?.responses;
    if (marks !== undefined) fields.push("Via", marks[this.#isHttp2 ? "2" : head.version]);
    if (isSwitch) {
      this.#switchFields = fields;
      return;
    }
    const response = { status: head.status, reason: head.reason || reasonPhrase(head.status), fields };
    if (this.#delivery.capturesResponse) {
      const captured = request.route?.responseStore?.capture(request, response, head.framing);
      this.#delivery.wasCaptured = captured !== undefined;
      if (captured !== undefined && "status" in captured) return this.#delivery.respondAtEnd(captured);
      this.#capture = captured;
    }
    this.#delivery.head(response, head.framing, "upstream");
  }

  #wins(attempt: Attempt): void {
    this.#winner = attempt;
    clearTimeout(this.#hedgeTimer);
    // Nearly always it is the only one.
    if (this.#open.length === 1) this.#open.pop();
    else for (const other of this.#open.splice(0)) if (other !== attempt) other.abandon();
    this.#body?.forget();
    const { upstream } = this.#delivery.request;
    if (upstream !== undefined) upstream.endpoint = attempt.endpoint.key;
  }

  data(piece: SharedBytes): void {
    this.#capture?.data(piece);
    this.#delivery.data(piece);
  }

  trailers(fields: RawFields): void {
    this.#trailers = clientResponseTrailers(fields, this.#idField);
  }

  batch(): void {
    // The client side broke: the rest of the response has no reader.
    if (this.#delivery.isEnded) {
      this.#drop();
      this.#end();
    } else if (this.#delivery.isStarted && !this.#delivery.flush()) this.#winner?.hold();
  }

  ended(): void {
    this.#winner = undefined;
    this.#capture?.end();
    this.#end();
    this.#delivery.end(this.#trailers);
  }

  broke(detail: string): void {
    this.#note("broke", detail);
    this.#winner = undefined;
    this.#capture?.abandon();
    this.#end();
    if (this.#delivery.isStarted) return this.#delivery.abort();
    // The response arrived but could not be passed on: an internal error.
    this.#delivery.response({ code: "internal" }, "short-circuit");
  }

  drained(): void {
    this.#body?.drained();
  }

  evicted(): void {
    this.#note("evicted", "the client was slow while other requests were queued for a connection");
    this.#fail({ code: "request_timeout" }, "short-circuit");
  }

  switched(attempt: Attempt): void {
    const { stream, request } = this.#delivery;
    this.#winner = undefined;
    this.#end();
    const upstream = attempt.takeOver();
    if (upstream === undefined) return;
    const fields = this.#switchFields ?? [];
    // Over HTTP/2 the client sent no key, so only the gateway can verify the upstream's handshake.
    if (stream.version === "2" && !provesWebSocket(request.fields, fields)) {
      upstream.socket.destroy();
      return this.#refuse({ code: "upstream_unavailable" }, "action");
    }
    this.#delivery.switched(fields, request.upgrade ?? "");
    const client = stream.takeOver();
    if (client === undefined) {
      upstream.socket.destroy();
      return this.#delivery.tunnelEnded(0);
    }
    joinSockets(client, upstream, (bytes) => this.#delivery.tunnelEnded(bytes));
  }
}

const REFUSALS = {
  "connect-timeout": "upstream_connect_timeout",
  connect: "upstream_unavailable",
  "response-timeout": "upstream_response_timeout",
  reset: "upstream_unavailable",
  refused: "upstream_unavailable",
  protocol: "upstream_unavailable",
  saturated: "upstream_saturated",
  misconfigured: "upstream_unavailable",
} as const;

/** Retry and hedging limits of one request. */
interface RetryRules {
  /** Maximum number of further attempts. */
  readonly attempts: number;
  /** Limit of the body kept for retries. */
  readonly maxKeptBytes: number;
  /** Whether attempts without a response are retried. */
  readonly onTransport: boolean;
  /** Response statuses that are retried. */
  readonly statuses: readonly number[];
  readonly baseMs: number;
  readonly capMs: number;
  /** Maximum number of hedged attempts. */
  readonly hedges: number;
  readonly hedgeAfterMs: number;
}

/**
 * The rules for a request: no retries for methods that must not be repeated, upgrades, and bodies too large to keep.
 */
export function retryRules(
  retries: Retries | undefined,
  request: { readonly method: string; readonly framing: Framing; readonly upgrade: string | undefined },
): RetryRules {
  if (retries === undefined) return NO_RETRIES;
  const { attempts = 0, buffer_max_bytes: maxKeptBytes = 0, hedge } = retries;
  if (attempts === 0 && hedge === undefined) return NO_RETRIES;
  if (!isEligible(retries, request) || !fits(request.framing, maxKeptBytes)) return NO_RETRIES;
  return {
    attempts,
    maxKeptBytes,
    onTransport: retries.retry_transport ?? true,
    statuses: retries.retry_statuses ?? RETRYABLE_STATUSES,
    baseMs: retries.backoff_base_ms ?? 25,
    capMs: retries.backoff_cap_ms ?? 250,
    hedges: hedge === undefined ? 0 : (hedge.hedge_max ?? 1),
    hedgeAfterMs: hedge?.hedge_after_ms ?? 0,
  };
}

function isEligible(
  retries: Retries,
  { method, upgrade }: { readonly method: string; readonly upgrade: string | undefined },
): boolean {
  if (upgrade !== undefined) return false;
  return method === "POST" ? retries.retry_post === true : isIdempotent(method) && method !== "DELETE";
}

function fits(framing: Framing, maxBytes: number): boolean {
  if (!hasBody(framing)) return true;
  return framing.kind === "length" ? framing.lengthBytes <= maxBytes : maxBytes > 0;
}

/** The pause before attempt `next` (the first retry is 2): random, up to a capped, doubling ceiling. */
export function backoffMs({ baseMs, capMs }: RetryRules, next: number, random: () => number = Math.random): number {
  return random() * Math.min(capMs, baseMs * 2 ** Math.max(0, next - 2));
}

/** Whether a response proves that its server accepted the WebSocket handshake (RFC 6455, 4.2.2). */
function provesWebSocket(request: Readonly<RawFields>, response: Readonly<RawFields>): boolean {
  const key = fieldValue(request, "sec-websocket-key") ?? "";
  const proof = createHash("sha1").update(`${key}${MAGIC}`).digest("base64");
  return fieldValue(response, "sec-websocket-accept") === proof;
}

/** Time for the last bytes of one end to be written to the other. */
const LAST_BYTES_MS = 10_000;

/**
 * Forwards bytes in both directions, with back-pressure and half-closes, until both ends have ended or one broke. The
 * last bytes of an end still reach the other. `ended` is called once, with the number of bytes sent to the client.
 */
export function joinSockets(client: TunnelEnd, upstream: TunnelEnd, ended: (bytesToClient: number) => void): void {
  let isEnded = false;
  let sentBytes = 0;
  let lastBytes: NodeJS.Timeout | undefined;
  const end = (): void => {
    if (isEnded) return;
    isEnded = true;
    clearTimeout(lastBytes);
    client.socket.destroy();
    upstream.socket.destroy();
    ended(sentBytes);
  };
  const closed = (other: Duplex): void => {
    if (isEnded || other.destroyed || other.writableFinished) return end();
    other.once("finish", end);
    other.end();
    lastBytes ??= setTimeout(end, LAST_BYTES_MS);
  };
  client.socket.on("error", end);
  upstream.socket.on("error", end);
  client.socket.on("close", () => closed(upstream.socket));
  upstream.socket.on("close", () => closed(client.socket));
  pass(upstream, client.socket, (sizeBytes) => (sentBytes += sizeBytes));
  pass(client, upstream.socket);
}

function pass(from: TunnelEnd, to: Duplex, count?: (sizeBytes: number) => void): void {
  const { socket } = from;
  const send = (piece: Buffer): boolean => {
    count?.(piece.length);
    return to.write(piece);
  };
  const receiver = (piece: Buffer): void => {
    trackExternalMemory(piece.length);
    if (!send(piece)) socket.pause();
  };
  if (from.receive === undefined) socket.on("data", receiver);
  else from.receive(receiver);
  to.on("drain", () => socket.resume());
  socket.on("end", () => to.end());
  if (from.bytes !== undefined) send(from.bytes);
  if (from.hasEnded === true) to.end();
  socket.resume();
}
