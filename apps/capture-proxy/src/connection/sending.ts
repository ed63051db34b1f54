import { hostPortText } from "@headworks/host-patterns";
import {
  CHUNK_END,
  CHUNKED,
  chunkPrefix,
  hasBody,
  hasField,
  LAST_CHUNK,
  lengthFraming,
  NO_BODY,
  requestHeadText,
  ResponseReader,
  setFraming,
} from "@headworks/http1";
import type { Framing, ResponseHead } from "@headworks/http1";
import { SharedBytes, type ByteSocket } from "@headworks/sockets";
import { stageTimings } from "#exchange/exchange.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { OutgoingRequest, SendOptions, SendOutcome, SentExchange } from "#exchange/outgoing.ts";

const PIECE_BYTES = 65_536;
/** Methods whose requests state Content-Length even when it is zero (RFC 9110, 8.6). */
const ANNOUNCING = new Set(["POST", "PUT", "PATCH"]);

/** A serialized request head and the framing of its body. */
export interface WrittenHead {
  readonly text: string;
  readonly framing: Framing;
}

/**
 * Serializes a request head.
 * @throws Http1Error for a part that would break the syntax
 */
export function writtenHead({ method, path, host, port, scheme, fields, body }: OutgoingRequest): WrittenHead {
  const framing = framingOf(method, body, hasField(fields, "transfer-encoding"));
  const framed = fields.slice();
  if (framing === NO_BODY) setFraming(framed, { kind: "until-close" });
  else setFraming(framed, framing);
  if (!hasField(framed, "host")) framed.unshift("Host", hostPortText(host, port, scheme === "https" ? 443 : 80));
  return { text: requestHeadText(method, path, framed), framing };
}

function framingOf(method: string, body: Uint8Array | undefined, isChunked: boolean): Framing {
  if (isChunked && body !== undefined) return CHUNKED;
  if (body !== undefined && body.length > 0) return lengthFraming(body.length);
  return ANNOUNCING.has(method) ? lengthFraming(0) : NO_BODY;
}

/** One request sent by Weir over an in-memory connection, until its exchange ends. */
export class Sending {
  readonly #socket: ByteSocket;
  readonly #request: OutgoingRequest;
  readonly #options: SendOptions;
  readonly #settle: (outcome: SendOutcome, isReusable: boolean) => void;
  readonly #reader: ResponseReader;
  #head: ResponseHead | undefined;
  #isExchange = false;
  #isReadToEnd = false;
  #isWritten = false;
  #isClosed = false;
  #exchange: SentExchange | undefined;
  #failure: Failure | undefined;
  #isSettled = false;

  constructor(
    socket: ByteSocket,
    request: OutgoingRequest,
    options: SendOptions,
    settle: (outcome: SendOutcome, isReusable: boolean) => void,
  ) {
    this.#socket = socket;
    this.#request = request;
    this.#options = options;
    this.#settle = settle;
    this.#reader = new ResponseReader(
      {
        onInformational: () => undefined,
        onHead: (head) => {
          this.#head = head;
        },
        onData: (piece) => options.onBody?.(SharedBytes.copy(piece)),
        onTrailers: () => undefined,
        onEnd: () => {
          this.#isReadToEnd = true;
          this.#settleWhenDone();
        },
        onError: () => this.#socket.destroy(),
      },
      { lenient: true },
    );
    this.#reader.expect(request.method);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onClose);
    if (options.signal?.aborted === true) this.abort(CANCELLED);
    else options.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Writes the request; the body obeys backpressure. */
  write({ text, framing }: WrittenHead): void {
    this.#socket.write(text, "latin1");
    if (framing.kind === "chunked" || hasBody(framing)) this.#writeBody(framing.kind === "chunked", 0);
    else this.#isWritten = true;
  }

  #writeBody(isChunked: boolean, from: number): void {
    const body = this.#request.body ?? new Uint8Array(0);
    let at = from;
    while (at < body.length && this.#socket.writable) {
      const piece = body.subarray(at, at + PIECE_BYTES);
      if (isChunked) this.#socket.write(chunkPrefix(piece.length), "latin1");
      const hasRoom = this.#socket.write(piece);
      if (isChunked) this.#socket.write(CHUNK_END, "latin1");
      at += piece.length;
      if (!hasRoom && at < body.length) {
        this.#socket.once("drain", () => this.#writeBody(isChunked, at));
        return;
      }
    }
    if (isChunked && this.#socket.writable) this.#socket.write(LAST_CHUNK, "latin1");
    this.#isWritten = at === body.length;
  }

  started(): void {
    this.#isExchange = true;
  }

  /** The exchange ended; only its facts are kept. */
  finished(exchange: ExchangeView): void {
    const { state } = exchange;
    this.#exchange = factsOf(exchange);
    if (state.step === "failed") this.#failure ??= state.failure;
    this.#settleWhenDone();
  }

  abort(failure: Failure): void {
    this.#failure ??= failure;
    this.#socket.destroy();
  }

  readonly #onAbort = (): void => this.abort(CANCELLED);

  readonly #onData = (chunk: Buffer): void => void this.#reader.read(chunk);
  readonly #onEnd = (): void => this.#reader.end();
  readonly #onClose = (): void => {
    this.#isClosed = true;
    this.#settleWhenDone();
  };

  /** The end of the response and the end of the exchange arrive in either order. */
  #settleWhenDone(): void {
    const isRead = this.#isReadToEnd || this.#isClosed;
    if (this.#isSettled || !isRead || (this.#isExchange && this.#exchange === undefined)) return;
    this.#isSettled = true;
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    const outcome = this.#outcome();
    const isReusable = outcome.kind === "answered" && this.#isWritten && this.#head?.keepAlive === true;
    this.#settle(outcome, isReusable && !this.#socket.destroyed);
  }

  #outcome(): SendOutcome {
    const exchange = this.#exchange;
    if (this.#failure !== undefined) return { kind: "failed", failure: this.#failure, exchange };
    const response = exchange?.response;
    if (exchange !== undefined && response !== undefined && this.#isReadToEnd) {
      return { kind: "answered", exchange: { ...exchange, response } };
    }
    return { kind: "failed", failure: this.#unexplained(), exchange };
  }

  #unexplained(): Failure {
    const status = this.#head?.status;
    const message =
      status === undefined
        ? "The connection broke before the response was complete"
        : `The request was refused with ${status} before it was sent`;
    return { stage: "client-read", side: "client", code: "CLIENT_PROTOCOL", message };
  }
}

const CANCELLED: Failure = {
  stage: "client-read",
  side: "client",
  code: "CLIENT_ABORTED",
  message: "The request was called off",
};

function factsOf(exchange: ExchangeView): SentExchange {
  const { id, isRecorded, startedAtMs, moments, request, response, responseBody, state } = exchange;
  return {
    id,
    isRecorded,
    startedAtMs,
    durationMs: Math.round((moments.ended - moments.started) * 100) / 100,
    timings: stageTimings(moments),
    request,
    response: state.step === "failed" ? undefined : response,
    responseBytes: responseBody.sizeBytes,
  };
}
