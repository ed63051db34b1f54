// Tested by ../../test/http2-resets.test.ts
import { constants } from "node:http2";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { appendHttp2Fields, gatheredHttp2Fields, reasonPhrase, withoutPseudoFields } from "@headworks/http-fields";
import {
  allowedTrailers,
  CHUNKED,
  fieldValue,
  hasField,
  Http1Error,
  isIdempotent,
  lengthFraming,
  NO_BODY,
  RESPONSE_LIMITS,
} from "@headworks/http1";
import type { Framing, RawFields } from "@headworks/http1";
import { AnswerEnd, noteGarbage, UnreadBody } from "@headworks/sockets";
import type { ByteSocket, ConnectionWindow } from "@headworks/sockets";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { brokenConnection } from "./connect-failure.ts";
import { CANCEL, HTTP_1_1_REQUIRED, http2CodeName, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM } from "./http2-codes.ts";
import { requestFields } from "./origin-fields.ts";
import type { AnswerHandler, AnswerHead, LostOutcome, Origin, OriginRequest } from "./origin.ts";
import { removeOurMembers } from "./pseudonym.ts";
import { streamSocket } from "./stream-socket.ts";

/** Bytes of a request's body that may wait for the origin's window before its client is held back. */
const SEND_BUFFER_BYTES = 131_072;

const NOTHING = Buffer.alloc(0);

/** What a stream needs of the connection that carries it. */
export interface StreamOwner {
  readonly session: ClientHttp2Session;
  readonly scheme: "http" | "https";
  /** `host:port` of the origin, for messages, and for requests that name no host. */
  readonly place: string;
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  /** Whether the connection answered before: its end may only mean that it was old. */
  readonly hasAnswered: boolean;
  /** What may wait unread of all its answers; there as soon as answers can come. */
  readonly window: ConnectionWindow | undefined;
  /** What broke the connection, if something did. */
  readonly error: NodeJS.ErrnoException | undefined;
  /** The code of a GOAWAY that ended everything. */
  readonly goawayCode: number | undefined;
  /** The place of a stream is free; `isAnswered`: an answer began. */
  ended(isAnswered: boolean): void;
  /** It was given up without an answer: the connection may be dead. */
  doubted(): void;
  /** The origin wants this to be asked over HTTP/1.1 (RFC 9113, 7). */
  http1Required(): void;
}

/** One request to an origin over HTTP/2. */
export class OriginStream implements Origin {
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  readonly maySayUnseen = true;
  firstByteMs = 0;
  readonly #owner: StreamOwner;
  #stream: ClientHttp2Stream | undefined;
  #handler: AnswerHandler | undefined;
  #request: OriginRequest | undefined;
  /** The last piece of the body, so that the end can travel with it. */
  #piece: Buffer | undefined;
  #trailers: RawFields | undefined;
  #informational = 0;
  #hasHead = false;
  #end: AnswerEnd | undefined;
  #unread: UnreadBody | undefined;
  #isOver = false;
  #wasUsed = false;

  constructor(owner: StreamOwner) {
    this.#owner = owner;
    this.address = owner.address;
    this.tls = owner.tls;
  }

  send(handler: AnswerHandler, request: OriginRequest): number {
    const { session } = this.#owner;
    this.#handler = handler;
    this.#request = request;
    this.#wasUsed = this.#owner.hasAnswered;
    const { framing, upgrade } = request;
    const section = this.#section(request);
    let sizeBytes = 0;
    for (const part of section) sizeBytes += part.length;
    if (session.closed || session.destroyed) {
      process.nextTick(() => this.#lose());
      return sizeBytes;
    }
    const stream = this.#open(section, {
      endStream: !request.hasBody && upgrade === undefined,
      waitForTrailers: framing.kind === "chunked" || hasField(request.fields, "trailer"),
    });
    this.#stream = stream;
    this.#end = new AnswerEnd(stream);
    stream.on("headers", this.#onInformational);
    stream.on("response", this.#onHead);
    stream.on("trailers", (_headers: unknown, _flags: unknown, fields: RawFields) => {
      this.#handler?.onAnswerTrailers(allowedTrailers(withoutPseudoFields(fields)));
    });
    stream.on("end", this.#onEnd);
    stream.on("drain", () => this.#handler?.onOriginDrain());
    stream.on("wantTrailers", this.#onWantTrailers);
    stream.on("error", ignoreError);
    stream.on("close", this.#onClose);
    return sizeBytes;
  }

  sendData(piece: Buffer): void {
    this.#write();
    this.#piece = piece;
  }

  sendEnd(trailers: RawFields | undefined): void {
    this.#trailers = trailers;
    const stream = this.#stream;
    const piece = this.#piece;
    this.#piece = undefined;
    // The bytes of a WebSocket are still to come.
    if (this.#request?.upgrade !== undefined) return;
    if (stream === undefined || stream.destroyed || stream.writableEnded) return;
    if (piece === undefined) stream.end();
    else stream.end(piece);
  }

  flush(): boolean {
    this.#write();
    const stream = this.#stream;
    return stream === undefined || !stream.writableNeedDrain || stream.writableLength < SEND_BUFFER_BYTES;
  }

  hold(): void {
    this.#stream?.pause();
  }

  release(): void {
    // Before the head nobody listens to the body, and flowing bytes would be lost.
    if (this.#hasHead) this.#stream?.resume();
  }

  takeOver(): { readonly socket: ByteSocket; readonly bytes: Buffer | undefined } {
    const stream = this.#stream;
    if (stream === undefined) throw new TypeError("There is no stream to take over");
    this.#isOver = true;
    this.#handler = undefined;
    stream.off("end", this.#onEnd);
    stream.off("data", this.#onData);
    this.#countUnread(stream);
    stream.pause();
    this.#unread?.follow(stream);
    stream.once("close", () => this.#owner.ended(true));
    return { socket: streamSocket(stream), bytes: undefined };
  }

  destroy(resetCode: number = CANCEL): void {
    this.#handler = undefined;
    this.#piece = undefined;
    if (this.#isOver) return;
    if (!this.#hasHead) this.#owner.doubted();
    this.#cancel(resetCode === NO_ERROR ? CANCEL : resetCode);
  }

  /** The field section of a request, pseudo-fields first (RFC 9113, 8.3.1). */
  #section({ method, path, fields, framing, upgrade, authority }: OriginRequest): string[] {
    const { scheme, place } = this.#owner;
    const host = authority ?? fieldValue(fields, "host") ?? place;
    const section = upgrade === undefined ? [":method", method] : [":method", "CONNECT", ":protocol", upgrade];
    section.push(":scheme", scheme, ":authority", host, ":path", path);
    const forwarded = requestFields(fields, framing, undefined, authority);
    removeOurMembers(forwarded);
    const asksForTrailers = /(?:^|,)\s*trailers\s*(?:,|;|$)/i.test(fieldValue(forwarded, "te") ?? "");
    const at = section.length;
    appendHttp2Fields(forwarded, section);
    if (asksForTrailers && !section.includes("te", at)) section.push("te", "trailers");
    if (upgrade !== undefined) withoutKey(section);
    return section;
  }

  #open(
    section: string[],
    options: { readonly endStream: boolean; readonly waitForTrailers: boolean },
  ): ClientHttp2Stream {
    try {
      return this.#owner.session.request(section, options);
    } catch {
      this.#isOver = true;
      this.#handler = undefined;
      this.#owner.ended(false);
      throw new Http1Error("unsafe-text", 500);
    }
  }

  #write(): void {
    const piece = this.#piece;
    const stream = this.#stream;
    this.#piece = undefined;
    if (piece === undefined || stream === undefined) return;
    if (!stream.closed && !stream.destroyed && !stream.writableEnded) stream.write(piece);
  }

  /**
   * Closing ends the writing side first, which would look like the end of the request; a write that is under way holds
   * that up until the reset is out.
   */
  #cancel(code: number): void {
    const stream = this.#stream;
    if (stream === undefined || stream.closed || stream.destroyed) return;
    if (!stream.writableEnded) stream.write(NOTHING);
    stream.close(code);
  }

  readonly #onInformational = (_headers: unknown, _flags: unknown, section: RawFields): void => {
    this.#informational += 1;
    if (this.#informational > RESPONSE_LIMITS.informationalCount) return this.#refuse("too many informational answers");
    const status = statusOf(section);
    if (status === 101) return;
    this.#guarded(() => this.#handler?.onInformational(headOf(status, section, NO_BODY)));
  };

  readonly #onHead = (_headers: unknown, flags: number, section: RawFields): void =>
    this.#guarded(() => this.#readHead(flags, section));

  #readHead(flags: number, section: RawFields): void {
    if (this.#isOver || this.#hasHead) return;
    const status = statusOf(section);
    if (!(status >= 200 && status <= 999)) return this.#refuse("it has no valid status");
    this.#hasHead = true;
    this.firstByteMs = performance.now();
    const isWhole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (this.#request?.upgrade !== undefined && status < 300 && !isWhole) return this.#switched(section);
    const isBodiless = this.#request?.method === "HEAD" || status === 204 || status === 304;
    const framing = isBodiless ? NO_BODY : isWhole ? lengthFraming(0) : framingOf(section);
    if (framing.kind === "length") this.#end?.announce(framing.lengthBytes);
    this.#handler?.onAnswerHead(headOf(status, section, framing));
    this.#handler?.onAnswerBatch();
    // Not before: node tells of heads a tick later than of data, which then come first if one read of TLS had both.
    if (this.#isOver || this.#stream === undefined) return;
    this.#countUnread(this.#stream);
    this.#stream.on("data", this.#onData);
  }

  #countUnread(stream: ClientHttp2Stream): void {
    const { window } = this.#owner;
    if (window !== undefined) this.#unread ??= new UnreadBody(stream, window);
  }

  /** What HTTP/1.1 says with 101 (RFC 8441, 5.1), as which the exchange knows it. */
  #switched(section: RawFields): void {
    this.#handler?.onAnswerHead(headOf(101, section, NO_BODY));
    this.#handler?.onProtocolSwitched();
  }

  readonly #onData = (piece: Buffer): void => {
    noteGarbage(piece.length);
    this.#unread?.read(piece.length);
    this.#end?.read(piece.length);
    try {
      this.#handler?.onAnswerData(piece);
      this.#handler?.onAnswerBatch();
    } catch (error) {
      this.#broken(error);
    }
  };

  readonly #onEnd = (): void => {
    if (this.#isOver || this.#end?.isWhole !== true || !this.#hasHead) return;
    this.#isOver = true;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#owner.ended(true);
    // An answer before the end of its request: what is left of that is not wanted (RFC 9113, 8.1).
    if (this.#stream?.writableFinished === false) this.#stream.close(NO_ERROR);
    this.#guarded(() => handler?.onAnswerEnd());
  };

  readonly #onWantTrailers = (): void => {
    const stream = this.#stream;
    if (stream === undefined || stream.closed || stream.destroyed) return;
    stream.sendTrailers(gatheredHttp2Fields(this.#trailers ?? []));
  };

  readonly #onClose = (): void => {
    this.#unread?.forget();
    this.#lose();
  };

  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#broken(error);
    }
  }

  /** A defect of ours ends this exchange, not the process. */
  #broken(cause: unknown): void {
    const message = "The proxy failed; its log says why";
    const failure: Failure = { stage: "receive", side: "internal", code: "INTERNAL", message, cause };
    if (!this.#isOver) this.#settle("fail", failure);
    this.#cancel(CANCEL);
  }

  #refuse(what: string): void {
    const message = `The answer of ${this.#owner.place} is not valid HTTP/2: ${what}`;
    const failure: Failure = { stage: "receive", side: "upstream", code: "UPSTREAM_PROTOCOL", message };
    this.#settle("fail", failure);
    this.#cancel(PROTOCOL_ERROR);
  }

  /** The stream is gone, and its answer was not complete. */
  #lose(): void {
    if (this.#isOver) return;
    const code = this.#stream?.rstCode || this.#owner.goawayCode || NO_ERROR;
    this.#settle(this.#outcome(code), this.#failure(code));
  }

  #settle(outcome: LostOutcome, failure: Failure): void {
    this.#isOver = true;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#piece = undefined;
    this.#owner.ended(this.#hasHead);
    handler?.onOriginLost(outcome, failure);
  }

  #outcome(code: number): LostOutcome {
    const request = this.#request;
    if (code === HTTP_1_1_REQUIRED) this.#owner.http1Required();
    if (request === undefined || request.isRetry || request.upgrade !== undefined) return "fail";
    if (this.#hasHead || this.#informational > 0) return "fail";
    // The origin says that it did not look at the request.
    if (code === REFUSED_STREAM || code === HTTP_1_1_REQUIRED) return request.hasBody ? "unseen" : "retry";
    // A connection that answered before was closed for being old.
    const isStale = this.#wasUsed && this.#owner.session.destroyed && !request.hasBody;
    return isStale && isIdempotent(request.method) ? "retry" : "fail";
  }

  #failure(code: number): Failure {
    const { place, error, session } = this.#owner;
    const when = this.#hasHead ? "in the middle of its answer" : "without an answer";
    const stage = this.#hasHead ? "receive" : "send";
    if (error !== undefined && code === NO_ERROR) return brokenConnection(error, place, stage);
    if (code === NO_ERROR && session.destroyed) {
      const message = `${place} closed the connection ${when}`;
      return { stage: "receive", side: "upstream", code: "UPSTREAM_CLOSED", message };
    }
    const message = `${place} ended the stream ${when} (${http2CodeName(code)})`;
    const kind = code === PROTOCOL_ERROR ? "UPSTREAM_PROTOCOL" : "UPSTREAM_RESET";
    return { stage: "receive", side: "upstream", code: kind, message, resetCode: code === NO_ERROR ? CANCEL : code };
  }
}

/** HTTP/2 has no need of the proof of HTTP/1.1 (RFC 8441, 5). */
function withoutKey(section: string[]): void {
  const at = section.indexOf("sec-websocket-key");
  if (at !== -1) section.splice(at, 2);
}

function statusOf(section: readonly string[]): number {
  return Number(section[section.indexOf(":status") + 1]);
}

function headOf(status: number, section: readonly string[], framing: Framing): AnswerHead {
  return { version: "2", status, reason: reasonPhrase(status), fields: withoutPseudoFields(section), framing };
}

function framingOf(section: readonly string[]): Framing {
  const length = fieldValue(section, "content-length");
  return length !== undefined && /^[0-9]{1,15}$/.test(length) ? lengthFraming(Number(length)) : CHUNKED;
}

function ignoreError(): void {
  // "close" follows and does what is needed.
}
