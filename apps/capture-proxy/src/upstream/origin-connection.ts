import type { Socket } from "node:net";
import { hostPortText } from "@headworks/host-patterns";
import {
  areSameFields,
  countDownForwards,
  type Http1Error,
  LAST_CHUNK,
  lastChunkWithTrailers,
  type RawFields,
  removeField,
  requestHeadText,
  RESPONSE_LIMITS,
  type ResponseHead,
  ResponseReader,
  UpstreamState,
  CHUNK_END,
  chunkPrefix,
} from "@headworks/http1";
import { BatchedWriter, SharedBytes, shareReadBuffer, trackExternalMemory } from "@headworks/sockets";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { brokenConnection, clientCertificateNote } from "./connect-failure.ts";
import type { ConnectionHistory } from "./idle-origins.ts";
import { type Destination, type Dialled, ownDestination } from "./destination.ts";
import { removeOurMembers, requestFields } from "./origin-fields.ts";
import type { HeadLimits, Origin, OriginRequest, ResponseHandler } from "./origin.ts";
import { capitalized, proxyFailure, proxyText } from "./proxy-failure.ts";
import { type Forwarding, unauthorizedProxy } from "./proxy-route.ts";

/**
 * One HTTP/1.1 connection to an origin or a forwarding proxy, with one exchange at a time; responses are parsed
 * strictly in framing and leniently in form. It belongs to one client connection at a time; its history decides
 * whether another may inherit it.
 */
export class OriginConnection implements Origin {
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  readonly reportsUnprocessed = false;
  firstByteMs = 0;
  /** Called when the connection becomes unusable. */
  onGone: (() => void) | undefined;
  /** Undefined: never reused by another client. */
  readonly history: ConnectionHistory | undefined;
  #destination: Destination;
  readonly #socket: Socket;
  readonly #writer: BatchedWriter;
  readonly #state = new UpstreamState();
  readonly #reader: ResponseReader;
  #handler: ResponseHandler | undefined;
  #held: Buffer | undefined;
  /** Set from the second exchange on: a reused connection is worth the set-up and rarely becomes a tunnel. */
  #stopSharing: (() => void) | undefined;
  /** The connection ended while bytes are still buffered: reports the end once they are read. */
  #endBehindHeld: (() => void) | undefined;
  /** The response is a close-delimited error to a request with a body. */
  #isRefusalUntilClose = false;
  #hasBody = false;
  #isChunked = false;
  #responseEnded = false;
  #isSwitching = false;
  #protocolError: Http1Error | undefined;
  readonly #forwarding: Forwarding | undefined;
  /** The proxy responded instead of the origin. */
  #proxyFailure: Failure | undefined;

  constructor(
    destination: Destination,
    dialled: Dialled,
    history: ConnectionHistory | undefined,
    limits: HeadLimits = RESPONSE_LIMITS,
  ) {
    this.#destination = destination;
    this.history = history;
    this.address = dialled.address;
    this.tls = dialled.tls;
    this.#forwarding = dialled.forwarding;
    this.#socket = dialled.socket;
    this.#writer = new BatchedWriter(this.#socket);
    this.#reader = new ResponseReader(
      {
        onInformational: (head) => this.#handler?.onInformational(head),
        onHead: (head) => this.#onHead(head),
        onData: (piece) => this.#handler?.onResponseData(SharedBytes.copy(piece)),
        onTrailers: (fields) => this.#handler?.onResponseTrailers(fields),
        onEnd: () => {
          this.#responseEnded = !this.#isSwitching;
        },
        onError: (error) => {
          this.#protocolError = error;
        },
      },
      { lenient: true, limits },
    );
    this.#socket.on("data", this.#onData);
    this.#socket.on("end", this.#onEnd);
    this.#socket.on("drain", this.#onDrain);
    this.#socket.on("error", this.#onError);
    this.#socket.on("close", this.#onClose);
  }

  get destination(): Destination {
    return this.#destination;
  }

  /** Requests go through a forwarding proxy, which carries nothing else. */
  get isForwarded(): boolean {
    return this.#forwarding !== undefined;
  }

  get isIdle(): boolean {
    return this.#state.isIdle;
  }

  /** No exchange is in progress, and another one is possible. */
  get mayRest(): boolean {
    return this.isIdle;
  }

  /** Becomes idle and releases references to its last client's requests. */
  rest(onGone: () => void): void {
    this.#destination = ownDestination(this.#destination);
    this.onGone = onGone;
  }

  send(handler: ResponseHandler, request: OriginRequest): number {
    const { method, path, framing, upgrade, authority } = request;
    const fields = requestFields(request.fields, framing, upgrade, authority);
    countDownForwards(method, fields);
    const forwarding = this.#forwarding;
    if (forwarding === undefined) removeOurMembers(fields);
    else addProxyFields(fields, forwarding);
    const target = forwarding === undefined ? path : absoluteTarget(this.#destination, path);
    const lines = areSameFields(fields, request.fields) ? request.fieldLines : undefined;
    const head = requestHeadText(method, target, fields, lines);
    this.#state.requestStarted(request);
    this.history?.requestSent(request);
    this.#reader.expect(method, upgrade);
    this.#handler = handler;
    this.#isChunked = framing.kind === "chunked";
    this.#hasBody = request.hasBody;
    this.firstByteMs = 0;
    this.#writer.text(head);
    return head.length;
  }

  sendData(piece: Buffer): void {
    if (this.#isChunked) this.#writer.bytes(piece, chunkPrefix(piece.length), CHUNK_END);
    else this.#writer.bytes(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    if (this.#isChunked) this.#writer.text(trailers ? lastChunkWithTrailers(trailers) : LAST_CHUNK);
    this.#state.requestSent();
  }

  flush(): boolean {
    return this.#writer.flushSoon();
  }

  hold(): void {
    this.#reader.pause();
    this.#socket.pause();
  }

  release(): void {
    this.#reader.resume();
    const held = this.#held;
    this.#held = undefined;
    if (held) this.#read(held);
    const end = this.#held === undefined ? this.#endBehindHeld : undefined;
    if (end !== undefined) {
      this.#endBehindHeld = undefined;
      end();
    } else if (!this.#reader.isPaused) this.#socket.resume();
  }

  takeOver(): { readonly socket: Socket; readonly bytes: Buffer | undefined } {
    this.#state.tunnelStarted();
    this.#handler = undefined;
    this.#detach();
    this.#stopSharing?.();
    this.#socket.pause();
    const bytes = this.#held;
    this.#held = undefined;
    this.onGone?.();
    return { socket: this.#socket, bytes };
  }

  destroy(): void {
    this.#state.abandon();
    this.#handler = undefined;
    this.#held = undefined;
    this.#endBehindHeld = undefined;
    this.#socket.destroy();
  }

  #onHead(head: ResponseHead): void {
    this.#proxyFailure = this.#forwarding && proxyResponseFailure(head.status, this.#forwarding);
    if (this.#proxyFailure !== undefined) return this.#reader.pause();
    this.#state.responseStarted(head);
    this.history?.responseStarted(head);
    this.#isSwitching = head.status === 101;
    this.#isRefusalUntilClose = this.#hasBody && head.status >= 400 && head.framing.kind === "until-close";
    this.#handler?.onResponseHead(head);
  }

  readonly #onData = (chunk: SharedBytes): void => {
    if (this.#stopSharing === undefined) trackExternalMemory(chunk.length);
    if (this.firstByteMs === 0) this.firstByteMs = performance.now();
    if (this.#state.bytesArrived() === "destroy") {
      this.#socket.destroy();
      return;
    }
    this.#read(chunk);
  };

  #read(chunk: SharedBytes): void {
    const handler = this.#handler;
    try {
      this.#readResponse(chunk);
    } catch (error) {
      // A bug in the proxy ends this exchange, not the process, even after a complete response.
      const message = "The proxy failed; see its log";
      const failure: Failure = { stage: "receive", side: "internal", code: "INTERNAL", message, cause: error };
      const present = this.#handler;
      this.destroy();
      present?.onOriginLost("fail", failure);
      if (handler !== present) handler?.onOriginLost("fail", failure);
    }
  }

  #readResponse(chunk: SharedBytes): void {
    const at = this.#reader.read(chunk);
    if (this.#proxyFailure) return this.#lose(this.#proxyFailure);
    if (this.#protocolError) return this.#refuse(this.#protocolError);
    const hasRest = at < chunk.length;
    if (this.#isSwitching) {
      if (hasRest) this.#held = SharedBytes.copyAlone(chunk.subarray(at));
      this.#handler?.onProtocolSwitched();
      return;
    }
    if (this.#reader.isPaused && !this.#responseEnded) {
      if (hasRest) this.#held = SharedBytes.copyAlone(chunk.subarray(at));
      this.#handler?.onResponseBatch();
      return;
    }
    if (this.#responseEnded) this.#complete(hasRest);
    else this.#handler?.onResponseBatch();
  }

  #complete(surplus: boolean): void {
    const handler = this.#handler;
    this.#responseEnded = false;
    this.#handler = undefined;
    const isFinished = surplus || this.#endBehindHeld !== undefined;
    const next = this.#state.responseEnded(isFinished, this.#reader.oddities.length);
    if (next === "destroy") {
      this.#socket.destroy();
    } else {
      this.#reader.next();
      this.#stopSharing ??= shareReadBuffer(this.#socket, this.#onData);
    }
    // The paused response has ended: resume, so that an idle connection notices its end.
    if (this.#reader.isPaused) this.release();
    handler?.onResponseEnd();
  }

  #refuse(error: Http1Error): void {
    this.#lose({
      stage: "receive",
      side: "upstream",
      code: error.code === "truncated" ? "UPSTREAM_CLOSED" : "UPSTREAM_PROTOCOL",
      message:
        error.code === "truncated"
          ? `${this.#hostPort} closed the connection in the middle of its response`
          : `The response of ${this.#hostPort} is not valid HTTP: ${error.message}`,
      cause: error,
    });
  }

  #lose(failure: Failure): void {
    const handler = this.#handler;
    this.#handler = undefined;
    const outcome = this.#state.lost();
    this.#socket.destroy();
    if (outcome !== "none") handler?.onOriginLost(outcome, this.#attributed(failure));
  }

  /** Attributes the failure to the forwarding proxy where it is to blame. */
  #attributed(failure: Failure): Failure {
    const forwarding = this.#forwarding;
    if (forwarding === undefined || failure === this.#proxyFailure) return failure;
    return forwardedFailure(failure, forwarding, this.firstByteMs > 0);
  }

  readonly #onEnd = (): void => this.#whenRead(() => this.#ended());

  /** Reports an end only after the bytes before it: a paused socket emits its end all the same. */
  #whenRead(end: () => void): void {
    if (this.#endBehindHeld !== undefined) return;
    // A socket that failed while paused may still have buffered data.
    const rest = this.#handler !== undefined && this.#reader.isPaused ? (this.#socket.read() as Buffer | null) : null;
    if (rest !== null) this.#held = this.#held === undefined ? rest : Buffer.concat([this.#held, rest]);
    if (this.#held === undefined) end();
    else this.#endBehindHeld = end;
  }

  #ended(): void {
    this.#reader.end();
    if (this.#protocolError) return this.#refuse(this.#protocolError);
    if (this.#responseEnded) return this.#complete(false);
    this.#closedEarly();
  }

  readonly #onDrain = (): void => {
    this.#handler?.onOriginDrain();
  };

  readonly #onError = (error: NodeJS.ErrnoException): void =>
    this.#whenRead(() => {
      // An origin that closes without reading the request resets the connection, which ends such a response normally.
      if (this.#isRefusalUntilClose) return this.#ended();
      this.#lose(
        brokenConnection(
          error,
          this.#hostPort,
          this.firstByteMs === 0 ? "send" : "receive",
          this.tls?.clientCertificate,
        ),
      );
    });

  readonly #onClose = (): void => {
    this.#whenRead(() => this.#closedEarly());
    this.onGone?.();
  };

  #closedEarly(): void {
    const note = clientCertificateNote(this.tls?.clientCertificate);
    const message = `${this.#hostPort} closed the connection without a response${note}`;
    this.#lose({ stage: "receive", side: "upstream", code: "UPSTREAM_CLOSED", message });
  }

  /** For messages. */
  get #hostPort(): string {
    return hostPortText(this.#destination.host, this.#destination.port);
  }

  #detach(): void {
    this.#socket.off("data", this.#onData);
    this.#socket.off("end", this.#onEnd);
    this.#socket.off("drain", this.#onDrain);
    this.#socket.off("error", this.#onError);
    this.#socket.off("close", this.#onClose);
  }
}

/** The absolute-form target (RFC 9112, 3.2.2) for a forwarding proxy. */
function absoluteTarget({ host, port }: Destination, path: string): string {
  const authority = hostPortText(host, port, 80);
  // OPTIONS for the whole server has no path in this form (RFC 9112, 3.2.4).
  return `http://${authority}${path === "*" ? "" : path}`;
}

/** Adds Via and the next proxy's credentials, if any, in place of the client's. */
function addProxyFields(fields: RawFields, { authorization, via }: Forwarding): void {
  removeField(fields, "proxy-authorization");
  if (authorization !== undefined) fields.push("Proxy-Authorization", authorization);
  fields.push("Via", via);
}

/** The failure for a response that only the proxy can have made; undefined if it may be the origin's. */
function proxyResponseFailure(status: number, { proxy, authorization }: Forwarding): Failure | undefined {
  return status === 407 ? unauthorizedProxy(proxy, authorization !== undefined) : undefined;
}

/** The failure of a connection to a forwarding proxy, which is to blame before the first response byte. */
function forwardedFailure(failure: Failure, { proxy }: Forwarding, hasResponse: boolean): Failure {
  const isBroken = failure.code === "UPSTREAM_CLOSED" || failure.code === "UPSTREAM_RESET";
  if (!hasResponse && isBroken) {
    const message = `${capitalized(proxyText(proxy))} closed the connection without a response`;
    return proxyFailure(failure.stage, "UPSTREAM_PROXY_CLOSED", message, failure.cause);
  }
  if (failure.side !== "upstream") return failure;
  return { ...failure, message: `${failure.message} (through ${proxyText(proxy)})` };
}
