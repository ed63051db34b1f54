import type { Socket } from "node:net";
import {
  fieldValue,
  hasBody,
  LAST_CHUNK,
  lastChunkWithTrailers,
  requestHeadText,
  ResponseReader,
  UpstreamState,
  type Framing,
  type Http1Error,
  type RawFields,
  CHUNK_END,
  chunkPrefix,
} from "@headworks/http1";
import { BatchedWriter, SharedBytes } from "@headworks/sockets";
import type { ResponseHandler, UpstreamExchange, UpstreamFailure } from "./upstream-exchange.ts";

/** What a connection tells its pool. */
export interface ConnectionOwner {
  /** The client does not take the response: meanwhile the connection does not count against the cap. */
  stalled(): void;
  /** It can carry another request. */
  freed(connection: Http1Exchange): void;
  /** It had been closed before its next request was sent. */
  wentStale(): void;
  /** An internal error ended it and its request. */
  failed(error: unknown): void;
  gone(connection: Http1Exchange): void;
}

/** A client that owes a body and sent nothing for this long stalls its connection. */
const OWED_MS = 40;
/** A response that started and brought nothing for this long is an idle stream. */
const SILENT_MS = 1000;

/** Why an exchange makes no progress without the endpoint being at work on it. */
export type Stall =
  /** The client owes a part of its body, or does not take the response. */
  | "client"
  /** The response is a stream without new data. */
  | "stream";

/** Margin before the announced timeout: a request in transit would meet the close. */
const KEEP_ALIVE_MARGIN_MS = 1000;

/** The idle time from `Keep-Alive: timeout=5` (RFC 2068, 19.7.1), less a margin; infinite without it. */
function announcedKeepAliveMs(fields: RawFields): number {
  const seconds = /(?:^|,)\s*timeout\s*=\s*"?([0-9]{1,9})/i.exec(fieldValue(fields, "keep-alive") ?? "")?.[1];
  return seconds === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS);
}

/**
 * One HTTP/1.1 connection to an endpoint: one exchange at a time, responses parsed strictly. Reused as the rules of
 * `UpstreamState` allow.
 */
export class Http1Exchange implements UpstreamExchange {
  readonly socket: Socket;
  /** From this moment on it takes no new request. */
  expiresMs = Number.POSITIVE_INFINITY;
  /** How long it may be idle before the endpoint is expected to close it. */
  keepAliveMs = Number.POSITIVE_INFINITY;
  readonly #authority: string;
  readonly #owner: ConnectionOwner;
  readonly #writer: BatchedWriter<SharedBytes>;
  readonly #state = new UpstreamState();
  readonly #reader: ResponseReader;
  #handler: ResponseHandler | undefined;
  #isChunked = false;
  #hasBody = false;
  #owesBody = false;
  #isHeld = false;
  /** Transferred bytes at the last check, since when they are unchanged, and both at the start of the exchange. */
  #passedBytes = -1;
  #passedMs = 0;
  #lookedExchange = 0;
  #fromBytes = 0;
  #fromMs = 0;
  #held: Buffer | undefined;
  /** Called after the held bytes are read: the connection ended behind them. */
  #endBehindHeld: (() => void) | undefined;
  /** The response is an error delimited by the end of the connection, to a request with a body. */
  #isRefusalUntilClose = false;
  #responseEnded = false;
  #isSwitching = false;
  #isAbandoned = false;
  #hasResponseBytes = false;
  #hasHead = false;
  #protocolError: Http1Error | undefined;
  #tunnelReceiver: ((piece: Buffer) => void) | undefined;

  constructor(socket: Socket, authority: string, owner: ConnectionOwner) {
    this.socket = socket;
    this.#authority = authority;
    this.#owner = owner;
    this.#writer = BatchedWriter.copying(socket);
    this.#reader = new ResponseReader(
      {
        onInformational: (head) => this.#handler?.onInformational(head),
        onHead: (head) => {
          this.#state.responseStarted(head);
          this.#hasHead = true;
          this.#isSwitching = head.status === 101;
          this.#isRefusalUntilClose = this.#hasBody && head.status >= 400 && head.framing.kind === "until-close";
          // Servers announce the same time with each response.
          if (this.#state.exchangeCount === 1) this.keepAliveMs = announcedKeepAliveMs(head.fields);
          this.#handler?.onResponseHead(head);
        },
        onData: (piece) => this.#handler?.onResponseData(piece),
        onTrailers: (fields) => this.#handler?.onResponseTrailers(fields),
        onEnd: () => {
          this.#responseEnded = !this.#isSwitching;
        },
        onError: (error) => {
          this.#protocolError = error;
        },
      },
      { lenient: false },
    );
    socket.on("end", this.#onEnd);
    socket.on("drain", this.#onDrain);
    socket.on("error", this.#onError);
    socket.on("close", this.#onClose);
  }

  get isIdle(): boolean {
    return this.#state.isIdle;
  }

  send(request: {
    readonly method: string;
    readonly target: string;
    readonly host?: string | undefined;
    readonly fields: RawFields;
    readonly framing: Framing;
    readonly upgrade: string | undefined;
    readonly handler: ResponseHandler;
  }): void {
    const { method, fields, framing, upgrade } = request;
    const withBody = hasBody(framing);
    // After an upgrade request the protocol of the connection is uncertain, whatever the response.
    const keepAlive = upgrade === undefined;
    this.#state.requestStarted({ method, hasBody: withBody, keepAlive, isRetry: false });
    this.#reader.expect(method, upgrade);
    this.#handler = request.handler;
    this.#hasResponseBytes = false;
    this.#hasBody = withBody;
    this.#hasHead = false;
    this.#isHeld = false;
    this.#isChunked = framing.kind === "chunked";
    this.#owesBody = withBody;
    if (framing.kind === "length") fields.push("Content-Length", String(framing.lengthBytes));
    else if (this.#isChunked) fields.push("Transfer-Encoding", "chunked");
    if (upgrade !== undefined) fields.push("Connection", "Upgrade", "Upgrade", upgrade);
    fields.unshift("Host", request.host ?? this.#authority);
    this.#writer.text(requestHeadText(method, request.target, fields));
    if (!withBody) {
      this.#state.requestSent();
      this.#writer.flushSoon();
    }
  }

  sendData(piece: SharedBytes): void {
    if (this.#isChunked) this.#writer.bytes(piece, chunkPrefix(piece.length), CHUNK_END);
    else this.#writer.bytes(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    if (this.#isChunked) this.#writer.text(trailers === undefined ? LAST_CHUNK : lastChunkWithTrailers(trailers));
    this.#owesBody = false;
    this.#state.requestSent();
    this.#writer.flushSoon();
  }

  /**
   * Why the exchange makes no progress. Checked only while other requests are queued, so that it costs nothing
   * otherwise. Silence is measured between two checks.
   */
  stall(nowMs: number): Stall | undefined {
    if (this.#handler === undefined) return undefined;
    const passedBytes = this.socket.bytesRead + this.socket.bytesWritten;
    if (this.#lookedExchange !== this.#state.exchangeCount) {
      this.#lookedExchange = this.#state.exchangeCount;
      this.#fromBytes = passedBytes;
      this.#fromMs = nowMs;
    }
    if (passedBytes !== this.#passedBytes) {
      this.#passedBytes = passedBytes;
      this.#passedMs = nowMs;
    }
    if (this.#isHeld) return "client";
    const silentMs = nowMs - this.#passedMs;
    if (this.#owesBody && silentMs >= OWED_MS && !this.socket.writableNeedDrain) return "client";
    return this.#hasHead && silentMs >= SILENT_MS ? "stream" : undefined;
  }

  /** Bytes per second since requests were first queued; undefined before `minMs` have passed. */
  pace(nowMs: number, minMs: number): number | undefined {
    const sinceMs = nowMs - this.#fromMs;
    if (this.#lookedExchange !== this.#state.exchangeCount || sinceMs < minMs) return undefined;
    return ((this.#passedBytes - this.#fromBytes) * 1000) / sinceMs;
  }

  /** Takes the connection from a client that is too slow, for another request. */
  evict(): void {
    const handler = this.#handler;
    this.abandon();
    handler?.onEvicted();
  }

  flush(): boolean {
    return this.#writer.flushSoon();
  }

  hold(): void {
    this.#isHeld = true;
    this.#reader.pause();
    this.socket.pause();
    this.#owner.stalled();
  }

  release(): void {
    this.#isHeld = false;
    this.#reader.resume();
    const held = this.#held;
    this.#held = undefined;
    if (held) this.#read(held);
    const end = this.#held === undefined ? this.#endBehindHeld : undefined;
    if (end !== undefined) {
      this.#endBehindHeld = undefined;
      end();
    } else if (!this.#reader.isPaused) this.socket.resume();
  }

  abandon(): void {
    this.#state.abandon();
    this.#isAbandoned = true;
    this.#handler = undefined;
    this.socket.destroy();
  }

  takeOver(): ReturnType<UpstreamExchange["takeOver"]> {
    this.#state.tunnelStarted();
    this.#handler = undefined;
    this.socket.off("end", this.#onEnd);
    this.socket.off("drain", this.#onDrain);
    this.socket.off("error", this.#onError);
    this.socket.off("close", this.#onClose);
    this.socket.pause();
    const bytes = this.#held;
    this.#held = undefined;
    this.#owner.gone(this);
    const receive = (receiver: (piece: Buffer) => void): void => {
      this.#tunnelReceiver = receiver;
    };
    return { socket: this.socket, bytes, receive };
  }

  receive(chunk: SharedBytes): void {
    if (this.#tunnelReceiver !== undefined) return this.#tunnelReceiver(SharedBytes.copyAlone(chunk));
    if (this.#state.bytesArrived() === "destroy") {
      this.socket.destroy();
      return;
    }
    this.#hasResponseBytes = true;
    this.#read(chunk);
  }

  #read(chunk: SharedBytes): void {
    const handler = this.#handler;
    try {
      this.#readResponse(chunk);
    } catch (error) {
      this.#owner.failed(error);
      const present = this.#handler;
      this.abandon();
      const detail = "the gateway failed; its log says why";
      present?.onUpstreamLost("reset", false, detail);
      if (handler !== present) handler?.onUpstreamLost("reset", false, detail);
    }
  }

  #readResponse(chunk: SharedBytes): void {
    const at = this.#reader.read(chunk);
    // Set from inside a call to the handler.
    if (this.#isAbandoned) return;
    if (this.#protocolError) return this.#refuse(this.#protocolError);
    const hasRest = at < chunk.length;
    if (this.#isSwitching) {
      if (hasRest) this.#held = SharedBytes.copyAlone(chunk.subarray(at));
      this.#handler?.onSwitched();
      return;
    }
    if (!this.#responseEnded) {
      if (hasRest) this.#held = SharedBytes.copyAlone(chunk.subarray(at));
      this.#handler?.onResponseBatch();
      return;
    }
    this.#complete(hasRest);
  }

  #complete(surplus: boolean): void {
    const handler = this.#handler;
    this.#responseEnded = false;
    this.#handler = undefined;
    const isFinished = surplus || this.#endBehindHeld !== undefined;
    if (this.#state.responseEnded(isFinished, this.#reader.oddities.length) === "keep") {
      this.#reader.next();
      this.#owner.freed(this);
    } else {
      this.socket.destroy();
    }
    handler?.onResponseEnd();
  }

  #refuse(error: Http1Error): void {
    this.#lose(error.code === "truncated" ? "reset" : "protocol", error.message);
  }

  #lose(failure: UpstreamFailure, detail: string): void {
    const handler = this.#handler;
    const isStale = this.#state.exchangeCount > 1 && !this.#hasResponseBytes;
    this.#handler = undefined;
    this.#state.lost();
    this.socket.destroy();
    if (handler === undefined) return;
    if (isStale) this.#owner.wentStale();
    handler.onUpstreamLost(failure, isStale, detail);
  }

  /** Reads the bytes that arrived before the connection ended, then reports the end. */
  #whenRead(end: () => void): void {
    if (this.#endBehindHeld !== undefined) return;
    // A socket that failed while paused still has bytes that it read before.
    const rest = this.#handler !== undefined && this.#reader.isPaused ? (this.socket.read() as Buffer | null) : null;
    if (rest !== null) this.#held = this.#held === undefined ? rest : Buffer.concat([this.#held, rest]);
    if (this.#held === undefined) end();
    else this.#endBehindHeld = end;
  }

  #ended(): void {
    this.#reader.end();
    if (this.#protocolError) return this.#refuse(this.#protocolError);
    if (this.#responseEnded) return this.#complete(false);
    this.#lose("reset", "closed without a response");
  }

  readonly #onEnd = (): void => this.#whenRead(() => this.#ended());

  readonly #onDrain = (): void => this.#handler?.onUpstreamDrain();

  readonly #onError = (error: Error): void =>
    this.#whenRead(() => {
      // An endpoint that closes without reading the request resets the connection, which is the end of such a
      // response.
      if (this.#isRefusalUntilClose) this.#ended();
      else this.#lose("reset", error.message);
    });

  readonly #onClose = (): void => {
    this.#whenRead(() => this.#lose("reset", "closed without a response"));
    this.#owner.gone(this);
  };
}
