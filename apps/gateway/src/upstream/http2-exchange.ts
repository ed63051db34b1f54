import type { SharedBytes } from "@headworks/sockets";
import { appendHttp2Fields, isGrpc, reasonPhrase, withoutPseudoFields } from "@headworks/http-fields";
import {
  allowedTrailers,
  announcedFraming,
  CHUNKED,
  fieldValue,
  type Framing,
  hasBody,
  Http1Error,
  lengthFraming,
  NO_BODY,
  type RawFields,
  RESPONSE_LIMITS,
  type ResponseHead,
} from "@headworks/http1";
import {
  CANCEL,
  Http2Error,
  type Http2Session,
  type Http2Stream,
  isSendable,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  sectionField,
  type StreamHandler,
} from "@headworks/http2";
import type { ResponseHandler, UpstreamExchange, UpstreamFailure } from "./upstream-exchange.ts";

/** Limit of body bytes buffered for the endpoint's window before the client is paused. */
const SEND_BUFFER_BYTES = 16_384;

/** What an exchange needs from the session that carries it. */
export interface ExchangeOwner {
  readonly session: Http2Session;
  readonly scheme: "http" | "https";
  readonly authority: string;
  /** Whether the session answered before: then its end says nothing about the endpoint. */
  readonly hasAnswered: boolean;
  /** Its place is free; `head`: an answer began. */
  ended(head: boolean): void;
  /** The endpoint refused its stream without looking at it (RFC 9113, 8.7). */
  refused(): void;
  /** It was given up without an answer: the connection may be dead. */
  doubted(): void;
}

export class Http2Exchange implements UpstreamExchange, StreamHandler {
  readonly #owner: ExchangeOwner;
  #stream: Http2Stream | undefined;
  #handler: ResponseHandler | undefined;
  #method = "";
  #informational = 0;
  #hasHead = false;
  #isFinished = false;
  #wasStale = false;

  constructor(owner: ExchangeOwner) {
    this.#owner = owner;
  }

  send(request: Parameters<UpstreamExchange["send"]>[0]): void {
    const { method, target, fields, framing } = request;
    const { session, scheme, authority } = this.#owner;
    this.#handler = request.handler;
    this.#method = method;
    this.#wasStale = this.#owner.hasAnswered;
    const section = [":method", method, ":scheme", scheme, ":authority", request.host ?? authority, ":path", target];
    if (framing.kind === "length") section.push("content-length", String(framing.lengthBytes));
    appendHttp2Fields(fields, section);
    if (!isSendable(section)) {
      this.#handler = undefined;
      this.#settle();
      throw new Http1Error("unsafe-text");
    }
    if (session.acceptsStreams) {
      this.#stream = session.request(section, !hasBody(framing));
      this.#stream.handler = this;
    } else {
      process.nextTick(() => this.#lose("refused", "the connection takes no more requests"));
    }
  }

  sendData(piece: SharedBytes): void {
    // Body pieces of clients lie in one buffer that is reused for each read.
    this.#stream?.writeShared(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    const section: string[] = [];
    if (trailers !== undefined) appendHttp2Fields(trailers, section);
    if (!isSendable(section)) throw new Http1Error("unsafe-text");
    this.#stream?.end(section);
  }

  flush(): boolean {
    return this.#stream?.hasRoom(SEND_BUFFER_BYTES) !== false;
  }

  hold(): void {
    this.#stream?.hold();
  }

  release(): void {
    this.#stream?.release();
  }

  abandon(): void {
    this.#handler = undefined;
    if (this.#isFinished) return;
    if (this.#stream !== undefined && !this.#hasHead) this.#owner.doubted();
    this.#settle();
    this.#stream?.reset(CANCEL);
  }

  takeOver(): never {
    throw new Error("HTTP/2 has no connection to take over");
  }

  onSection(section: RawFields, isWhole: boolean): void {
    if (this.#isFinished) return;
    const status = Number(sectionField(section, ":status"));
    if (status < 200) return this.#readInformational(status, section);
    const head = headOf(status, section, NO_BODY);
    const announced = announcedFraming(head.fields);
    if (announced === undefined) return this.#lose("protocol", "the response has no valid content-length");
    const hasNone = isBodiless(this.#method, status);
    const lengthBytes = hasNone ? 0 : announced.kind === "length" ? announced.lengthBytes : undefined;
    if (isWhole && lengthBytes !== undefined && lengthBytes > 0) {
      return this.#lose("protocol", "the response is shorter than its content-length");
    }
    this.#hasHead = true;
    if (lengthBytes !== undefined) this.#stream?.announce(lengthBytes);
    const framing = isWhole ? lengthFraming(0) : expected(announced, head.fields);
    this.#handler?.onResponseHead(hasNone ? head : { ...head, framing });
    if (isWhole) this.#complete();
    else this.#handler?.onResponseBatch();
  }

  onData(piece: Buffer): void {
    this.#handler?.onResponseData(piece);
    this.#handler?.onResponseBatch();
  }

  onTrailers(section: RawFields): void {
    this.#handler?.onResponseTrailers(allowedTrailers(withoutPseudoFields(section)));
  }

  onEnd(): void {
    this.#complete();
  }

  onDrain(): void {
    this.#handler?.onUpstreamDrain();
  }

  onClose(code: number): void {
    const { error } = this.#owner.session;
    if (code === NO_ERROR && error instanceof Http2Error) return this.#lose("protocol", error.message);
    const problem = this.#stream?.problem;
    if (problem !== undefined) return this.#lose("protocol", problem);
    this.#lose(code === REFUSED_STREAM ? "refused" : "reset", `the stream ended with code ${code}`);
  }

  #readInformational(status: number, section: RawFields): void {
    this.#informational += 1;
    if (this.#informational > RESPONSE_LIMITS.informationalCount) {
      return this.#lose("protocol", "too many informational responses");
    }
    if (status !== 101) this.#handler?.onInformational(headOf(status, section, NO_BODY));
  }

  #complete(): void {
    if (this.#isFinished) return;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#settle();
    // The response came before the end of the request, whose rest is not wanted (RFC 9113, 8.1).
    if (this.#stream?.hasSentEnd === false) this.#stream.reset(NO_ERROR);
    handler?.onResponseEnd();
  }

  #lose(failure: UpstreamFailure, detail: string): void {
    if (this.#isFinished) return;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#settle();
    if (failure === "refused") this.#owner.refused();
    // A malformed response is a stream error (RFC 9113, 8.1.1).
    this.#stream?.reset(failure === "protocol" ? PROTOCOL_ERROR : CANCEL);
    // A session that ended after a response was closed for its age.
    const wasOld = failure === "reset" && this.#wasStale && !this.#hasHead && this.#owner.session.isFinished;
    handler?.onUpstreamLost(failure, failure === "refused" || wasOld, detail);
  }

  #settle(): void {
    this.#isFinished = true;
    this.#owner.ended(this.#hasHead);
  }
}

function headOf(status: number, section: readonly string[], framing: Framing): ResponseHead {
  return {
    version: "1.1",
    status,
    reason: reasonPhrase(status),
    fields: withoutPseudoFields(section),
    fieldLines: undefined,
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

/** Framing of unknown length even if empty: an empty response would be sent before its trailers arrive. */
function expected(framing: Framing, fields: RawFields): Framing {
  return framing.kind === "length" && framing.lengthBytes === 0 && announcesTrailers(fields) ? CHUNKED : framing;
}

/**
 * Whether trailers may follow a head (RFC 9110, 6.6.2): they are announced, or the response is gRPC, whose status
 * comes in trailers without an announcement.
 */
function announcesTrailers(fields: Readonly<RawFields>): boolean {
  if (fieldValue(fields, "trailer") !== undefined) return true;
  return isGrpc(fieldValue(fields, "content-type"));
}
