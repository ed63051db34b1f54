import { parseHostPort } from "@headworks/host-patterns";
import { reasonPhrase } from "@headworks/http-fields";
import {
  areSameFields,
  DownstreamState,
  type FieldLines,
  type Framing,
  type Http1Error,
  LAST_CHUNK,
  lastChunkWithTrailers,
  type RawFields,
  removeField,
  type RequestHead,
  RequestReader,
  responseHeadText,
  CHUNK_END,
  chunkPrefix,
  type ResponseStart,
  setFraming,
  withoutHopByHop,
} from "@headworks/http1";
import { beginsAsHttp2 } from "@headworks/http2";
import {
  BatchedWriter,
  type ByteSocket,
  cutConnection,
  Linger,
  NOT_IN_SET,
  SharedBytes,
  shareReadBuffer,
  type Timed,
  trackExternalMemory,
} from "@headworks/sockets";
import type { ClientFacts, ResponseMessage } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { CLIENT_GONE, failureResponse, internalFailure, invalidRequest, stalled } from "./client-failures.ts";
import { isForeignToHttp1 } from "./detect.ts";
import { type ClientSocket, type ExchangeClient, HttpExchange } from "./http-exchange.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { relay } from "./relay.ts";
import { planRequest, refusedRequest, type TunnelBase } from "./request-plan.ts";
import { UpstreamConnections } from "./upstream-connections.ts";

/**
 * A client that closed its sending side may still read or may be gone: TCP reports that only after a write.
 * It counts as gone after this time without a byte from the origin.
 */
const HALF_CLOSED_MS = 5000;

/** Repeated probes: soon enough for a local client, late enough for a distant one. */
const PROBE_DELAYS_MS: readonly number[] = [50, 500];

/** Parses Host, cached because most connections repeat the same value. */
class KnownHost {
  #text: string | undefined;
  #hostPort: { readonly host: string; readonly port: number | undefined } | undefined;

  /** Undefined for a missing or invalid host. */
  of(text: string | undefined): { readonly host: string; readonly port: number | undefined } | undefined {
    if (text === undefined) return undefined;
    if (text !== this.#text) {
      const parsed = parseHostPort(text);
      this.#text = text;
      this.#hostPort = "issue" in parsed ? undefined : parsed;
    }
    return this.#hostPort;
  }
}

/** Delay before an idle connection is destroyed at shutdown; a request may be in flight. */
const CLOSE_DELAY_MS = 250;

/** Takes over a connection that changes its protocol. The socket is paused and has no listeners. */
export interface Handover {
  /** `first`: bytes already read behind the CONNECT head. */
  onConnect(head: RequestHead, first: Buffer | undefined): void;
  /** HTTP/2 by prior knowledge; `first` are its first bytes. */
  onHttp2(first: Buffer): void;
}

/**
 * One HTTP/1.1 client connection: to the proxy itself, or inside an intercepted tunnel. Requests are served one at a
 * time in order; pipelined requests stay unread, which applies backpressure.
 */
export class HttpConnection implements ExchangeClient, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly services: ProxyServices;
  readonly facts: ClientFacts;
  readonly origins: UpstreamConnections;
  readonly #writer: BatchedWriter;
  readonly #state = new DownstreamState();
  /** Framing of the current response; undefined before its head. */
  #framing: Framing | undefined;
  readonly #knownHost = new KnownHost();
  readonly #socket: ClientSocket;
  readonly #base: TunnelBase | undefined;
  readonly #handover: Handover | undefined;
  readonly #reader: RequestReader;
  #exchange: HttpExchange | undefined;
  #connectHead: RequestHead | undefined;
  #held: SharedBytes | undefined;
  /** Set from the second request on: a reused connection is worth the set-up and rarely becomes a tunnel. */
  #stopSharing: (() => void) | undefined;
  #isWorking = false;
  readonly #linger = new Linger();
  #isHeadTimed = false;
  #hasClientEnded = false;
  /** The client closed its sending side while part of its request is still buffered. */
  #endsBehindHeld = false;
  #hasReceived = false;

  constructor(
    services: ProxyServices,
    socket: ClientSocket,
    facts: ClientFacts,
    base: TunnelBase | undefined,
    handover: Handover | undefined,
  ) {
    this.services = services;
    this.facts = facts;
    this.#writer = new BatchedWriter(socket);
    this.origins = new UpstreamConnections(services, facts.address, (origin) =>
      services.pipeline.closing(facts, origin),
    );
    this.#socket = socket;
    this.#base = base;
    this.#handover = handover;
    this.deadlineMs = performance.now() + services.policy().headTimeoutMs;
    this.#reader = new RequestReader(
      {
        onHead: (head) => this.#onHead(head),
        onData: (piece) => {
          this.#state.requestData();
          this.#exchange?.onRequestData(SharedBytes.copy(piece));
        },
        onTrailers: (fields) => this.#exchange?.onRequestTrailers(fields),
        onEnd: () => {
          this.#state.requestEnded();
          this.#exchange?.onRequestEnd();
        },
        onError: (error, headText) => this.#refuse(error, headText),
      },
      services.policy().headLimits,
      { tidiesAuthority: true },
    );
    services.deadlines.add(this);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("drain", this.#onDrain);
    socket.on("error", ignoreError);
    socket.on("close", this.#onClose);
  }

  get hasReceived(): boolean {
    return this.#hasReceived;
  }

  /** `first`: bytes read before this object existed. */
  begin(first: Buffer | undefined): void {
    if (first) this.#onData(first);
    else this.#socket.resume();
  }

  /** Makes the current exchange the last one; an idle connection closes soon. */
  drain(): void {
    this.#linger.shorten();
    if (this.#linger.isOn || this.#state.isTunnel || this.#state.drain() === "finish") return;
    this.#stopReading();
    // The last response may still be in flight. Bytes that the client sent before it saw our FIN would cause a reset,
    // which discards it.
    this.#socket.once("finish", () => setTimeout(() => this.#socket.destroy(), CLOSE_DELAY_MS).unref());
  }

  abort(failure: Failure): void {
    this.#exchange?.fail(failure);
    this.#socket.destroy();
  }

  get mayRespond(): boolean {
    return this.#state.mayRespond;
  }

  touch(): void {
    const { idleTimeoutMs } = this.services.policy();
    this.deadlineMs =
      performance.now() + (this.#hasClientEnded ? Math.min(HALF_CLOSED_MS, idleTimeoutMs) : idleTimeoutMs);
  }

  holdReading(): void {
    this.#reader.pause();
    this.#socket.pause();
  }

  releaseReading(): void {
    this.#reader.resume();
    if (!this.#isWorking) this.#work();
  }

  sendContinue(): void {
    if (!this.#state.bodyWanted()) return;
    this.#writer.text(responseHeadText(100, "Continue", []));
    this.#writer.flush();
  }

  sendInformational(status: number, reason: string, fields: RawFields): void {
    this.#informational(status, reason, fields);
  }

  /** Writes a 1xx response; false if the client may not get one now. */
  #informational(status: number, reason: string, fields: RawFields): boolean {
    if (!this.#state.informational(status)) return false;
    this.#writer.text(responseHeadText(status, reason, fields));
    return true;
  }

  /** After an Http1Error, another response may follow. */
  sendHead(response: Readonly<ResponseMessage>, framing: Framing): number {
    const start = this.#state.responseStarted(framing);
    const fields = responseFields(response.fields, start);
    // RFC 9110, 8.6: a 204 has no Content-Length.
    if (response.status === 204) removeField(fields, "content-length");
    const lines = areSameFields(fields, response.fields) ? response.fieldLines : undefined;
    const head = this.#headText(response, fields, lines);
    this.#framing = start.framing;
    this.#writer.text(head);
    return head.length;
  }

  #headText({ status, reason }: Readonly<ResponseMessage>, fields: RawFields, lines: FieldLines | undefined): string {
    try {
      return responseHeadText(status, reason, fields, lines);
    } catch (error) {
      this.#state.responseWithdrawn();
      throw error;
    }
  }

  sendData(piece: Buffer): void {
    if (this.#framing?.kind === "chunked") this.#writer.bytes(piece, chunkPrefix(piece.length), CHUNK_END);
    else this.#writer.bytes(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    if (this.#framing?.kind !== "chunked") return;
    this.#writer.text(trailers ? lastChunkWithTrailers(trailers) : LAST_CHUNK);
  }

  flush(): boolean {
    return this.#writer.flushSoon();
  }

  exchangeEnded(): void {
    this.#exchange = undefined;
    switch (this.#state.responseEnded()) {
      case "read":
        this.#reader.next();
        this.#reader.resume();
        this.#stopSharing ??= shareReadBuffer(this.#socket, this.#onData);
        this.touch();
        if (!this.#isWorking) this.#work();
        return;
      case "close":
        return this.#writer.end();
      case "linger":
        this.#endAndLinger();
    }
  }

  exchangeBroken(): void {
    this.#exchange = undefined;
    this.#writer.flush();
    // A close-delimited body would look complete after a clean close.
    if (this.#framing !== undefined && this.#framing.kind !== "until-close") this.#socket.destroySoon();
    else cutConnection(this.#socket);
  }

  switchProtocols(
    origin: { readonly socket: ByteSocket; readonly bytes: Buffer | undefined },
    exchange: HttpExchange,
  ): void {
    const { reason = "", fields = [] } = exchange.response ?? {};
    this.#writer.text(responseHeadText(101, reason, switchFields(fields)));
    this.#state.tunnelStarted();
    this.#writer.flush();
    const first = this.#held && SharedBytes.copyAlone(this.#held);
    this.#held = undefined;
    this.#exchange = undefined;
    this.#release();
    relay({
      client: this.#socket,
      upstream: origin.socket,
      fromClient: first,
      fromUpstream: origin.bytes,
      counts: exchange,
      services: this.services,
      onEnd: (failure) => exchange.tunnelEnded(failure),
    });
  }

  onDeadline(): void {
    if (this.#linger.isOn || this.#state.isIdle) {
      if (!this.#linger.isOn && this.#reader.hasPartialHead) return this.#respondWithTimeout();
      if (this.#linger.extend(this, this.#socket)) return;
      const mayWaitForServer = !this.#hasReceived && mayBeForeign(this.#base);
      if (mayWaitForServer) failTunnel(this.#base, invalidRequest("The client sent nothing"));
      return void this.#socket.destroy();
    }
    const exchange = this.#exchange;
    if (!exchange) return void this.#socket.destroy();
    if (this.#hasClientEnded) {
      this.#clientGone();
      this.#socket.destroy();
      return;
    }
    if (exchange.isDeciding) {
      this.touch();
      return;
    }
    const idleTimeoutMs = this.services.policy().idleTimeoutMs;
    this.touch();
    // A client that is paused by backpressure or awaits a 100 is not the slow side.
    const isAwaited = exchange.isReceiving && !this.#reader.isPaused && !this.#state.isAwaitingContinue;
    const waitsFor = this.#socket.writableNeedDrain ? "response-read" : isAwaited ? "body" : "origin";
    exchange.fail(stalled(exchange.request.host, waitsFor, idleTimeoutMs));
  }

  #onHead(head: RequestHead): void {
    this.#isHeadTimed = false;
    this.#state.requestStarted(head);
    this.#framing = undefined;
    if (head.method === "CONNECT" && this.#handover) {
      this.#connectHead = head;
      return;
    }
    const planned = planRequest(head, this.#base, this.#knownHost.of(head.host), this.services, this.#socket);
    if (planned.kind === "refused") {
      this.#respondWithError(planned.status, planned.failure, head);
      return;
    }
    // Malformed request: close after this response and ignore pipelined requests.
    if (planned.plan.kind === "failure" && planned.plan.failure.code === "CLIENT_PROTOCOL") this.#state.drain();
    this.#exchange = new HttpExchange(this, head, planned.request, planned.plan);
    this.#exchange.start();
  }

  readonly #onData = (chunk: SharedBytes): void => {
    if (this.#linger.isOn) return this.#linger.renew(this);
    if (this.#stopSharing === undefined) trackExternalMemory(chunk.length);
    this.#held = this.#held ? SharedBytes.concat(this.#held, chunk) : chunk;
    if (!this.#hasReceived) {
      const first = SharedBytes.copyAlone(this.#held);
      if (this.#handover && this.#mayBeHttp2(first, this.#handover)) return;
      this.#hasReceived = true;
      if (mayBeForeign(this.#base) && isForeignToHttp1(first)) return this.#endForeign();
    }
    if (!this.#isWorking) this.#work();
    if (this.#held !== undefined) this.#held = SharedBytes.copyAlone(this.#held);
    this.#setDeadline();
  };

  /** True: the connection was handed over, or more bytes are needed to decide. */
  #mayBeHttp2(first: Buffer, handover: Handover): boolean {
    const begins = beginsAsHttp2(first);
    if (begins === "yes") {
      this.#held = undefined;
      this.#release();
      this.#socket.pause();
      handover.onHttp2(first);
    }
    return begins !== "no";
  }

  /** Not HTTP/1: closed without a response, instead of waiting for the end of a head. */
  #endForeign(): void {
    failTunnel(this.#base, invalidRequest("The client's first bytes are not HTTP"));
    this.#held = undefined;
    this.#socket.destroySoon();
  }

  /** Parses buffered bytes, request after request, as far as responses allow. */
  #work(): void {
    this.#isWorking = true;
    while (this.#held !== undefined && this.#state.mayRead && !this.#reader.isPaused && !this.#isBackedUp) {
      const chunk = this.#held;
      this.#held = undefined;
      try {
        const at = this.#reader.read(chunk);
        if (at < chunk.length) this.#held = chunk.subarray(at);
        if (this.#connectHead) return this.#handOver(this.#connectHead);
        this.#exchange?.onRequestBatch();
      } catch (error) {
        this.#broken(error);
      }
    }
    this.#isWorking = false;
    if (this.#endsBehindHeld && this.#held === undefined) {
      this.#endsBehindHeld = false;
      this.#clientEnded();
    }
    if (this.#socket.destroyed || this.#state.isTunnel) return;
    if (this.#held !== undefined || this.#reader.isPaused || this.#isBackedUp) this.#socket.pause();
    else this.#socket.resume();
  }

  /** Stops parsing while the client does not read its responses, which bounds memory. */
  get #isBackedUp(): boolean {
    return this.#state.isIdle && this.#socket.writableNeedDrain;
  }

  /** A bug in the proxy ends this connection, not the process. */
  #broken(error: unknown): void {
    this.services.log.error({ err: error }, "A client connection failed");
    this.abort(internalFailure(error));
  }

  #setDeadline(): void {
    if (this.#state.isIdle && this.#reader.hasPartialHead) {
      // Set once per head, so that a slow trickle of bytes cannot extend it.
      if (!this.#isHeadTimed) this.deadlineMs = performance.now() + this.services.policy().headTimeoutMs;
      this.#isHeadTimed = true;
    } else if (!this.#linger.isOn) {
      this.touch();
    }
  }

  #handOver(head: RequestHead): void {
    const first = this.#held && SharedBytes.copyAlone(this.#held);
    this.#held = undefined;
    this.#state.tunnelStarted();
    // The previous response may still be queued for the end of the turn, and the new owner writes directly to the
    // socket.
    this.#writer.flush();
    this.#release();
    this.#socket.pause();
    this.#handover?.onConnect(head, first);
  }

  /** Removes all listeners from the socket. */
  #release(): void {
    this.#stopSharing?.();
    this.services.deadlines.delete(this);
    this.#socket.off("data", this.#onData);
    this.#socket.off("end", this.#onEnd);
    this.#socket.off("drain", this.#onDrain);
    this.#socket.off("error", ignoreError);
    this.#socket.off("close", this.#onClose);
    this.origins.end();
  }

  #refuse(error: Http1Error, headText: string): void {
    const failure = invalidRequest(`The request is not valid HTTP: ${error.message}`, error);
    if (this.#state.requestRefused() === "destroy") {
      if (this.#exchange) this.#exchange.fail(failure);
      else this.#socket.destroy();
      return;
    }
    if (this.#exchange) return this.#exchange.fail(failure);
    const refused = refusedRequest(headText, error, this.#base);
    if (refused === undefined) {
      failTunnel(this.#base, { ...failure, status: error.status });
      return this.#respondWithError(error.status, failure, undefined);
    }
    this.#framing = undefined;
    this.#exchange = new HttpExchange(this, refused.head, refused.request, refused.plan);
    this.#exchange.start();
  }

  #respondWithTimeout(): void {
    const message = `No complete request head came within ${this.services.policy().headTimeoutMs} ms`;
    const failure: Failure = { stage: "client-read", side: "client", code: "CLIENT_TIMEOUT", message };
    this.#state.requestRefused();
    failTunnel(this.#base, failure);
    this.#respondWithError(408, failure, undefined);
  }

  /** Responds to a request that never became an exchange, then closes. */
  #respondWithError(status: number, failure: Failure, head: RequestHead | undefined): void {
    const page = failureResponse(failure, head?.fields ?? []);
    this.#state.drain();
    const start = this.#state.responseStarted({ kind: "length", lengthBytes: page.body.length });
    const fields = [...page.fields, "Connection", start.connection ?? "close"];
    this.#writer.text(responseHeadText(status, reasonPhrase(status), fields));
    if (head?.method !== "HEAD") this.#writer.bytes(page.body);
    this.#writer.flush();
    this.#state.responseEnded();
    this.#endAndLinger();
  }

  /** An immediate close would reset the connection before the client has read the response. */
  #endAndLinger(): void {
    this.#stopReading();
    this.#linger.renew(this);
  }

  /** Ends the sending side; further input is discarded. */
  #stopReading(): void {
    this.#linger.begin();
    this.#held = undefined;
    this.#reader.pause();
    this.#writer.end();
    this.#socket.resume();
  }

  readonly #onEnd = (): void => {
    // A paused socket still emits "end"; buffered bytes come first.
    if (this.#held !== undefined && this.#exchange?.isReceiving === true) this.#endsBehindHeld = true;
    else this.#clientEnded();
  };

  #clientEnded(): void {
    switch (this.#state.clientEnded()) {
      case "close":
        this.#writer.end();
        return;
      case "destroy":
        this.#clientGone();
        this.#socket.destroy();
        return;
      case "finish":
        this.#hasClientEnded = true;
        this.touch();
        this.#probeClient();
    }
  }

  /**
   * Probes whether the client is gone while rules decide and nothing else is written. The probe is an interim response,
   * which a half-closed client ignores (RFC 9110, 15.2); its rejection shows at the next write.
   */
  #probeClient([delayMs, ...later]: readonly number[] = PROBE_DELAYS_MS): void {
    if (this.#exchange?.isDeciding !== true || !this.#informational(102, reasonPhrase(102), [])) return;
    this.#writer.flush();
    if (delayMs !== undefined) setTimeout(() => this.#probeClient(later), delayMs).unref();
  }

  readonly #onDrain = (): void => {
    this.touch();
    this.#exchange?.onClientDrain();
    if (this.#state.isIdle && !this.#isWorking) this.#work();
  };

  readonly #onClose = (): void => {
    this.services.deadlines.delete(this);
    this.#clientGone();
    this.origins.end();
  };

  #clientGone(): void {
    this.#state.closed();
    this.#exchange?.fail(CLIENT_GONE);
    this.#exchange = undefined;
  }
}

function ignoreError(): void {
  // "close" follows and cleans up.
}

/** Whether the client of a tunnel may speak something other than HTTP: inside TLS, only ALPN rules that out. */
function mayBeForeign(base: TunnelBase | undefined): boolean {
  return base?.scheme === "https" && base.isHttpAgreed === false;
}

/** Records the failure on the tunnel where no request has an entry, with a hint for the user. */
function failTunnel(base: TunnelBase | undefined, failure: Failure): void {
  if (base === undefined) return;
  const advice = `; if the client speaks another protocol than HTTP inside TLS, list ${base.host} under passthrough_domains`;
  base.failed?.(mayBeForeign(base) ? { ...failure, message: failure.message + advice } : failure);
}

/** Trailers are forwarded, so the field announcing them is too. */
const KEPT_IN_RESPONSES: ReadonlySet<string> = new Set(["trailer"]);
const KEPT_IN_SWITCHES: ReadonlySet<string> = new Set(["connection", "upgrade"]);

export function responseFields(fields: Readonly<RawFields>, start: ResponseStart): RawFields {
  const forwarded = withoutHopByHop(fields, { keep: KEPT_IN_RESPONSES });
  setFraming(forwarded, start.framing);
  if (start.connection !== undefined) forwarded.push("Connection", start.connection);
  return forwarded;
}

export function switchFields(fields: Readonly<RawFields>): RawFields {
  return withoutHopByHop(fields, { keep: KEPT_IN_SWITCHES });
}
