// Tested by ../../test/pipeline.test.ts
import { reasonPhrase } from "@headworks/http-fields";
import { fieldValue, hasBody, isIdempotent, type Framing, type RawFields, type ResponseHead } from "@headworks/http1";
import type { Retries } from "@headworks/gateway-contract";
import type { AnswerHandler, EndpointPool, UpstreamExchange, UpstreamFailure } from "#upstream/upstream-exchange.ts";
import type { EndpointState, PickKey, UpstreamGroup } from "#upstream/upstream-group.ts";
import type { AnswerDelivery } from "./answer-delivery.ts";
import { CheckedBody, type RefusableHandler } from "./checked-body.ts";
import type { CompiledAction } from "./generation.ts";
import {
  clientAnswerFields,
  clientAnswerTrailers,
  upstreamRequestFields,
  upstreamRequestTrailers,
} from "./forwarded-fields.ts";
import { joinSockets } from "./join-sockets.ts";
import type { AnswerCapture, AnswerOrigin, Refusal } from "./phases.ts";

type ProxyAction = Extract<CompiledAction, { kind: "proxy" }>;

/** Where ways to endpoints come from. */
export interface EndpointPools {
  poolOf(group: UpstreamGroup, endpoint: EndpointState): EndpointPool;
}

const RETRYABLE_STATUSES: readonly number[] = [502, 503, 504];

/** Sends one request to an endpoint of its upstream, tries again where that is allowed, and passes the answer on. */
export class ProxiedRequest implements RefusableHandler, AnswerHandler {
  readonly #delivery: AnswerDelivery;
  readonly #action: ProxyAction;
  readonly #pools: EndpointPools;
  readonly #group: UpstreamGroup;
  readonly #setCookie: string | undefined;
  readonly #target: string | undefined;
  readonly #tried: EndpointState[] = [];
  #endpoint: EndpointState | undefined;
  #exchange: UpstreamExchange | undefined;
  #cancelWait: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #requestTimer: NodeJS.Timeout | undefined;
  #attempts = 0;
  #epoch = 0;
  #dispatch = 0;
  #retriesLeft: number;
  #wasStale = false;
  #dispatchedMs = 0;
  /** The request's body as far as it was read; kept only while a retry may need it. */
  #buffer: Buffer[] | undefined;
  #bufferedBytes = 0;
  #bodyBytes = 0;
  #bodyEnded = false;
  #bodyTrailers: RawFields | undefined;
  #isReading = false;
  #hasHead = false;
  #isDiscarding = false;
  #answerFraming: Framing | undefined;
  #trailers: RawFields | undefined;
  #capture: AnswerCapture | undefined;
  #switchFields: RawFields = [];

  constructor(delivery: AnswerDelivery, action: ProxyAction, pools: EndpointPools) {
    this.#delivery = delivery;
    this.#action = action;
    this.#pools = pools;
    const { request } = delivery;
    const choice = action.choose(request);
    this.#group = choice.group;
    this.#setCookie = choice.setCookie;
    this.#target = action.rewrite(request);
    request.upstream = { upstream: choice.group.name, endpoint: "", attempts: 0 };
    const { retries } = choice.group.document;
    this.#retriesLeft = this.#mayRetry(retries) ? (retries?.attempts ?? 0) : 0;
    if (hasBody(request.framing) && this.#retriesLeft > 0) this.#buffer = [];
    else this.#bodyEnded = !hasBody(request.framing);
  }

  start(): void {
    if (this.#target === undefined) return this.#refuse({ code: "bad_request" }, true);
    const { request, stream } = this.#delivery;
    const { protocol } = this.#group.document;
    // Streams of HTTP/2 cannot become another protocol.
    if (request.upgrade === "websocket" && (protocol === "http2" || protocol === "h2c")) {
      return this.#refuse({ code: "upgrade_not_supported" }, true);
    }
    stream.handler = CheckedBody.around(this, request.bodyCheck, request.framing);
    this.#delivery.onDrain = () => this.#exchange?.release();
    this.#group.countRequest();
    const requestMs = this.#group.document.timeouts?.request_ms;
    if (requestMs !== undefined) {
      this.#requestTimer = setTimeout(() => this.#giveUp({ code: "upstream_response_timeout" }), requestMs);
    }
    this.#attempt();
  }

  // Attempts

  #mayRetry(retries: Retries | undefined): boolean {
    if (retries === undefined || (retries.attempts ?? 0) === 0) return false;
    const { method, framing, upgrade } = this.#delivery.request;
    if (upgrade !== undefined) return false;
    const isEligible = method === "POST" ? retries.retry_post === true : isIdempotent(method) && method !== "DELETE";
    if (!isEligible) return false;
    if (!hasBody(framing)) return true;
    const mostBytes = retries.buffer_max_bytes ?? 0;
    return framing.kind === "length" ? framing.lengthBytes <= mostBytes : mostBytes > 0;
  }

  #attempt(): void {
    const { request } = this.#delivery;
    const admission = this.#group.admit();
    if ("retryAfterS" in admission) {
      request.isBroken = true;
      const fields = ["Retry-After", String(admission.retryAfterS)];
      return this.#refuse({ code: "upstream_circuit_open", fields }, true);
    }
    this.#epoch = admission.epoch;
    const endpoint = this.#group.pick(this.#pickKey(), this.#tried);
    if (endpoint === undefined) {
      this.#settle(undefined);
      return this.#refuse({ code: "upstream_unavailable" }, false);
    }
    this.#endpoint = endpoint;
    this.#attempts += 1;
    if (request.upstream !== undefined) {
      request.upstream.attempts = this.#attempts;
      request.upstream.endpoint = endpoint.key;
    }
    this.#dispatchedMs = performance.now();
    this.#dispatch = endpoint.dispatched();
    this.#hasHead = false;
    const readMs = this.#group.document.timeouts?.read_ms;
    if (readMs !== undefined) this.#timer = setTimeout(() => this.#headTimedOut(readMs), readMs);
    this.#cancelWait = this.#pools.poolOf(this.#group, endpoint).acquire({
      onExchange: (exchange) => this.#send(exchange),
      onUnavailable: (failure, detail) => this.#lost(failure, false, detail),
    });
  }

  #settle(ok: boolean | undefined): void {
    this.#group.settle(this.#epoch, ok);
  }

  #pickKey(): PickKey {
    const { request } = this.#delivery;
    const name = this.#group.document.hash_header;
    return {
      peerAddress: request.peer.address,
      headerValue: name === undefined ? undefined : fieldValue(request.fields, name.toLowerCase()),
    };
  }

  #send(exchange: UpstreamExchange): void {
    this.#cancelWait = undefined;
    this.#exchange = exchange;
    const { request, stream } = this.#delivery;
    const fields = upstreamRequestFields(request);
    this.#action.changeFields?.(request, fields);
    exchange.send({
      method: request.method,
      target: this.#target ?? "/",
      fields,
      framing: request.framing,
      upgrade: request.upgrade === "websocket" ? request.upgrade : undefined,
      handler: this,
    });
    if (!hasBody(request.framing)) return;
    for (const piece of this.#buffer ?? []) exchange.sendData(piece);
    if (this.#bodyEnded) exchange.sendEnd(this.#bodyTrailers);
    else if (!exchange.flush()) stream.pauseBody();
    if (this.#isReading) {
      if (!this.#bodyEnded) stream.resumeBody();
    } else {
      this.#isReading = true;
      stream.readBody();
    }
  }

  #headTimedOut(readMs: number): void {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    exchange?.abandon();
    this.#lost("response-timeout", false, `no answer within ${readMs} ms`);
  }

  /** An attempt ended without a head, or broke off in its body. */
  #lost(failure: UpstreamFailure, stale: boolean, _detail: string): void {
    clearTimeout(this.#timer);
    this.#exchange = undefined;
    this.#cancelWait = undefined;
    if (this.#delivery.isEnded) return;
    const endpoint = this.#endpoint;
    if (this.#hasHead) {
      endpoint?.bodyBroke();
      this.#capture?.abandon();
      if (this.#isDiscarding) return this.#retryLater();
      return this.#end(() => this.#delivery.abort());
    }
    if (failure === "saturated" || failure === "misconfigured") {
      endpoint?.abandoned(this.#dispatch);
      this.#settle(undefined);
      return this.#refuse({ code: REFUSALS[failure] }, failure === "saturated");
    }
    // The upstream closed an idle connection at the moment of its use: that says nothing about how it is.
    if (stale && !this.#wasStale && this.#canSendAgain()) {
      this.#wasStale = true;
      endpoint?.abandoned(this.#dispatch);
      this.#settle(undefined);
      this.#attempts -= 1;
      return this.#attempt();
    }
    endpoint?.failed(this.#dispatch);
    this.#settle(false);
    if (endpoint !== undefined) this.#tried.push(endpoint);
    const retryTransport = this.#group.document.retries?.retry_transport ?? true;
    if (retryTransport && this.#canSendAgain() && this.#takeRetry()) return this.#retryLater();
    this.#refuse({ code: REFUSALS[failure] }, false);
  }

  /** Whether all of the request that was sent can be sent once more. */
  #canSendAgain(): boolean {
    const { request } = this.#delivery;
    if (!hasBody(request.framing)) return isIdempotent(request.method) || this.#retriesLeft > 0;
    return this.#buffer !== undefined || !this.#isReading;
  }

  #takeRetry(): boolean {
    if (this.#retriesLeft === 0 || !this.#group.spendRetry()) return false;
    this.#retriesLeft -= 1;
    return true;
  }

  #retryLater(): void {
    this.#isDiscarding = false;
    const { backoff_base_ms: base = 25, backoff_cap_ms: cap = 250 } = this.#group.document.retries ?? {};
    const ceiling = Math.min(cap, base * 2 ** Math.max(0, this.#attempts - 1));
    this.#timer = setTimeout(() => this.#attempt(), Math.random() * ceiling);
  }

  #refuse(refusal: Refusal, isShortCircuit: boolean): void {
    this.#end(() => this.#delivery.answer(refusal, isShortCircuit ? "short-circuit" : "action"));
  }

  #giveUp(refusal: Refusal, origin: AnswerOrigin = "action"): void {
    if (this.#delivery.isEnded) return;
    this.#drop();
    this.#end(() => (this.#delivery.isStarted ? this.#delivery.abort() : this.#delivery.answer(refusal, origin)));
  }

  /** A body of unknown length turned out longer than allowed: what the upstream has of it must not look whole. */
  #bodyTooLarge(): void {
    const allowed = this.#delivery.request.bodyLimitBytes;
    const message = `The body is larger than allowed: ${this.#bodyBytes} bytes so far, at most ${allowed}`;
    this.#giveUp({ code: "request_body_too_large", message }, "short-circuit");
  }

  /** Lets go of the attempt that is under way. */
  #drop(): void {
    this.#cancelWait?.();
    this.#exchange?.abandon();
    this.#capture?.abandon();
    if ((this.#cancelWait ?? this.#exchange) !== undefined && !this.#hasHead) {
      this.#endpoint?.abandoned(this.#dispatch);
      this.#settle(undefined);
    }
    this.#cancelWait = undefined;
    this.#exchange = undefined;
  }

  #end(last: () => void): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#requestTimer);
    this.#buffer = undefined;
    last();
  }

  // The client's side

  onBodyData(piece: Buffer): void {
    this.#bodyBytes += piece.length;
    if (this.#bodyBytes > this.#delivery.request.bodyLimitBytes) return this.#bodyTooLarge();
    if (this.#buffer !== undefined) {
      const mostBytes = this.#group.document.retries?.buffer_max_bytes ?? 0;
      this.#bufferedBytes += piece.length;
      if (this.#bufferedBytes > mostBytes) {
        this.#buffer = undefined;
        this.#retriesLeft = 0;
      } else {
        this.#buffer.push(Buffer.from(piece));
      }
    }
    this.#exchange?.sendData(piece);
  }

  onBodyTrailers(fields: RawFields): void {
    this.#bodyTrailers = upstreamRequestTrailers(this.#delivery.request, fields);
  }

  onBodyEnd(): void {
    this.#bodyEnded = true;
    this.#exchange?.sendEnd(this.#bodyTrailers);
  }

  onBodyRefused(refusal: Refusal): void {
    this.#giveUp(refusal, "short-circuit");
  }

  onBodyBatch(): void {
    if (this.#exchange !== undefined && !this.#bodyEnded && !this.#exchange.flush()) {
      this.#delivery.stream.pauseBody();
    }
  }

  onClientDrain(): void {
    this.#delivery.clientDrained();
  }

  onClientGone(): void {
    this.#drop();
    this.#end(() => this.#delivery.clientGone());
  }

  // The upstream's side

  onInformational(head: ResponseHead): void {
    const fields = clientAnswerFields(head.fields, false);
    this.#delivery.stream.sendInformational(head.status, head.reason, fields);
  }

  onAnswerHead(head: ResponseHead): void {
    clearTimeout(this.#timer);
    this.#hasHead = true;
    this.#endpoint?.answered(this.#dispatch, head.status, performance.now() - this.#dispatchedMs);
    this.#settle(head.status < 500);
    if (head.status === 101) {
      this.#switchFields = clientAnswerFields(head.fields, false);
      return;
    }
    if (this.#isRetryable(head.status)) {
      this.#isDiscarding = true;
      return;
    }
    this.#buffer = undefined;
    const { request } = this.#delivery;
    const fields = clientAnswerFields(head.fields, head.framing.kind === "none");
    if (this.#setCookie !== undefined) fields.push("Set-Cookie", this.#setCookie);
    const answer = { status: head.status, reason: head.reason || reasonPhrase(head.status), fields };
    if (this.#delivery.capturesAnswer) {
      this.#capture = request.route?.answerStore?.capture(request, answer, head.framing);
      this.#delivery.wasCaptured = this.#capture !== undefined;
    }
    this.#answerFraming = this.#delivery.head(answer, head.framing, "upstream");
  }

  #isRetryable(status: number): boolean {
    if (this.#retriesLeft === 0) return false;
    const statuses = this.#group.document.retries?.retry_statuses ?? RETRYABLE_STATUSES;
    if (!statuses.includes(status) || !this.#canSendAgain() || !this.#takeRetry()) return false;
    if (this.#endpoint !== undefined) this.#tried.push(this.#endpoint);
    return true;
  }

  onAnswerData(piece: Buffer): void {
    if (this.#isDiscarding) return;
    this.#capture?.data(piece);
    this.#delivery.data(piece);
  }

  onAnswerTrailers(fields: RawFields): void {
    this.#trailers = clientAnswerTrailers(fields);
  }

  onAnswerBatch(): void {
    if (this.#isDiscarding || !this.#delivery.isStarted) return;
    if (!this.#delivery.flush()) this.#exchange?.hold();
  }

  onAnswerEnd(): void {
    this.#exchange = undefined;
    if (this.#isDiscarding) return this.#retryLater();
    this.#capture?.end();
    this.#end(() => this.#delivery.end(this.#answerFraming?.kind === "chunked" ? this.#trailers : undefined));
  }

  onUpstreamLost(failure: UpstreamFailure, stale: boolean, detail: string): void {
    this.#lost(failure, stale, detail);
  }

  onUpstreamDrain(): void {
    this.#delivery.stream.resumeBody();
  }

  onSwitched(): void {
    const exchange = this.#exchange;
    const { stream, request } = this.#delivery;
    this.#exchange = undefined;
    clearTimeout(this.#requestTimer);
    if (exchange === undefined) return;
    const upstream = exchange.takeOver();
    this.#switchFields.push("Connection", "Upgrade", "Upgrade", request.upgrade ?? "");
    this.#delivery.switched(this.#switchFields);
    const client = stream.takeOver();
    if (client === undefined) return void upstream.socket.destroy();
    joinSockets(client, upstream, (bytes) => this.#delivery.tunnelEnded(bytes));
  }
}

const REFUSALS = {
  "connect-timeout": "upstream_connect_timeout",
  connect: "upstream_unavailable",
  "response-timeout": "upstream_response_timeout",
  reset: "upstream_unavailable",
  protocol: "upstream_unavailable",
  saturated: "upstream_saturated",
  misconfigured: "upstream_unavailable",
} as const;
