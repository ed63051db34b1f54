// Tested by ../../test/http2-upstream.test.ts
import { constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { appendHttp2Fields, gatheredHttp2Fields, reasonPhrase, withoutPseudoFields } from "@headworks/http-fields";
import {
  allowedTrailers,
  CHUNKED,
  fieldValue,
  hasBody,
  lengthFraming,
  NO_BODY,
  RESPONSE_LIMITS,
  type Framing,
  type RawFields,
  type ResponseHead,
} from "@headworks/http1";
import { AnswerEnd, noteGarbage } from "@headworks/sockets";
import { announcesTrailers } from "./announced-trailers.ts";
import type { AnswerHandler, UpstreamExchange, UpstreamFailure } from "./upstream-exchange.ts";

const { NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

const NOTHING = Buffer.alloc(0);

/** What an exchange needs of the session that carries it. */
export interface ExchangeOwner {
  readonly session: ClientHttp2Session;
  readonly scheme: "http" | "https";
  readonly authority: string;
  /** Whether the session answered before: then its end says nothing about the endpoint. */
  readonly hasAnswered: boolean;
  /** Its place is free; `head`: an answer began. */
  ended(head: boolean): void;
  /** It was given up without an answer: the connection may be dead. */
  doubted(): void;
}

/** One request to an endpoint over HTTP/2. */
export class Http2Exchange implements UpstreamExchange {
  readonly #owner: ExchangeOwner;
  #stream: ClientHttp2Stream | undefined;
  #handler: AnswerHandler | undefined;
  #method = "";
  #trailers: RawFields | undefined;
  #informational = 0;
  #hasHead = false;
  #end: AnswerEnd | undefined;
  #isOver = false;
  #wasStale = false;

  constructor(owner: ExchangeOwner) {
    this.#owner = owner;
  }

  send(request: Parameters<UpstreamExchange["send"]>[0]): void {
    const { method, target, fields, framing, mayHaveTrailers } = request;
    const { session, scheme, authority } = this.#owner;
    this.#handler = request.handler;
    this.#method = method;
    this.#wasStale = this.#owner.hasAnswered;
    const headers = [":method", method, ":scheme", scheme, ":authority", authority, ":path", target];
    if (framing.kind === "length") headers.push("content-length", String(framing.lengthBytes));
    appendHttp2Fields(fields, headers);
    const stream = session.request(headers, {
      endStream: !hasBody(framing),
      // Waiting costs a frame and a call behind the body, for nothing in nearly all requests of known length.
      waitForTrailers: framing.kind === "chunked" || (mayHaveTrailers === true && hasBody(framing)),
    });
    this.#stream = stream;
    this.#end = new AnswerEnd(stream);
    stream.on("headers", this.#onInformational);
    stream.on("response", this.#onHead);
    stream.on("trailers", (_headers: unknown, _flags: unknown, section: RawFields) => {
      this.#handler?.onAnswerTrailers(allowedTrailers(withoutPseudoFields(section)));
    });
    stream.on("end", this.#onEnd);
    stream.on("drain", () => this.#handler?.onUpstreamDrain());
    stream.on("wantTrailers", this.#onWantTrailers);
    stream.on("error", ignoreError);
    stream.on("close", this.#onClose);
  }

  sendData(piece: Buffer): void {
    const stream = this.#stream;
    if (stream !== undefined && !stream.closed && !stream.destroyed && !stream.writableEnded) stream.write(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    this.#trailers = trailers;
    const stream = this.#stream;
    if (stream !== undefined && !stream.destroyed && !stream.writableEnded) stream.end();
  }

  flush(): boolean {
    return this.#stream?.writableNeedDrain !== true;
  }

  hold(): void {
    this.#stream?.pause();
  }

  release(): void {
    this.#stream?.resume();
  }

  abandon(): void {
    this.#handler = undefined;
    if (!this.#hasHead && !this.#isOver) this.#owner.doubted();
    this.#cancel();
  }

  takeOver(): never {
    throw new Error("HTTP/2 has no connection to take over");
  }

  /**
   * Closing ends the writing side first, which would look like the end of the request; a write that is under way holds
   * that up until the reset is out.
   */
  #cancel(): void {
    const stream = this.#stream;
    if (stream === undefined || stream.closed || stream.destroyed) return;
    if (!stream.writableEnded) stream.write(NOTHING);
    stream.close(NGHTTP2_CANCEL);
  }

  readonly #onInformational = (_headers: unknown, _flags: unknown, section: RawFields): void => {
    this.#informational += 1;
    if (this.#informational > RESPONSE_LIMITS.informationalCount) {
      return this.#lose("protocol", "too many informational answers");
    }
    const status = statusOf(section);
    if (status === 101) return;
    this.#handler?.onInformational(headOf(status, section, NO_BODY));
  };

  readonly #onHead = (_headers: unknown, flags: number, section: RawFields): void => {
    if (this.#isOver) return;
    const status = statusOf(section);
    if (!(status >= 200 && status <= 999)) return this.#lose("protocol", "the answer has no valid status");
    this.#hasHead = true;
    const head = headOf(status, section, NO_BODY);
    const isWhole = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    const framing = isWhole ? lengthFraming(0) : framingOf(head.fields);
    const hasNone = isBodiless(this.#method, status);
    if (!hasNone && framing.kind === "length") this.#end?.announce(framing.lengthBytes);
    this.#handler?.onAnswerHead(hasNone ? head : { ...head, framing });
    // Not before: node tells of heads a tick later than of data, which then come first if one read of TLS had both.
    this.#stream?.on("data", this.#onData);
  };

  readonly #onData = (piece: Buffer): void => {
    noteGarbage(piece.length);
    this.#end?.read(piece.length);
    this.#handler?.onAnswerData(piece);
    this.#handler?.onAnswerBatch();
  };

  readonly #onEnd = (): void => {
    if (this.#isOver || this.#end?.isWhole !== true || !this.#hasHead) return;
    this.#isOver = true;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#owner.ended(true);
    // An answer before the end of its request: what is left of that is not wanted (RFC 9113, 8.1).
    if (this.#stream?.writableFinished === false) this.#stream.close(NGHTTP2_NO_ERROR);
    handler?.onAnswerEnd();
  };

  readonly #onWantTrailers = (): void => {
    const stream = this.#stream;
    if (stream === undefined || stream.closed || stream.destroyed) return;
    stream.sendTrailers(gatheredHttp2Fields(this.#trailers ?? []));
  };

  readonly #onClose = (): void => {
    const code = this.#stream?.rstCode ?? NGHTTP2_NO_ERROR;
    this.#lose(code === NGHTTP2_REFUSED_STREAM ? "refused" : "reset", `the stream ended with code ${code}`);
  };

  #lose(failure: UpstreamFailure, detail: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#owner.ended(this.#hasHead);
    this.#cancel();
    // A session that ended after it had answered was closed for being old.
    const isStale = failure === "refused" || (this.#wasStale && !this.#hasHead && this.#owner.session.destroyed);
    handler?.onUpstreamLost(failure, isStale, detail);
  }
}

function statusOf(section: readonly string[]): number {
  const at = section.indexOf(":status");
  return Number(section[at + 1]);
}

function headOf(status: number, section: readonly string[], framing: Framing): ResponseHead {
  return {
    version: "1.1",
    status,
    reason: reasonPhrase(status),
    fields: withoutPseudoFields(section),
    framing,
    keepAlive: true,
    upgrade: undefined,
    oddities: [],
    headSizeBytes: 0,
  };
}

function isBodiless(method: string, status: number): boolean {
  return method === "HEAD" || status === 204 || status === 304;
}

function framingOf(fields: RawFields): Framing {
  const length = fieldValue(fields, "content-length");
  if (length === undefined || !/^[0-9]{1,15}$/.test(length)) return CHUNKED;
  const lengthBytes = Number(length);
  // Of no length, but not at its end: an empty answer would go out before its trailers are here.
  return lengthBytes === 0 && announcesTrailers(fields) ? CHUNKED : lengthFraming(lengthBytes);
}

function ignoreError(): void {
  // "close" follows and does what is needed.
}
