import type { SharedBytes } from "@headworks/sockets";
import {
  RequestReader,
  ResponseReader,
  type Http1ErrorCode,
  type Limits,
  type Oddity,
  type RawFields,
  type RequestHead,
  type ResponseHead,
} from "../src/index.ts";

/** One message as delivered by a reader. */
export interface Recorded<Head> {
  readonly head: Head;
  body: string;
  trailers: RawFields | undefined;
  ended: boolean;
}

/** The result of reading one input. */
export interface Recording<Head> {
  readonly messages: Recorded<Head>[];
  readonly informational: number[];
  error: Http1ErrorCode | undefined;
  status: number | undefined;
  /** Bytes up to the end of the last complete request. */
  takenBytes: number;
  /** Bytes behind a response. */
  rest: string;
  state: string;
  oddities: readonly Oddity[];
}

/** Records the calls and checks their order. */
class RecordingSink<Head extends RequestHead | ResponseHead> {
  readonly recording: Recording<Head> = {
    messages: [],
    informational: [],
    error: undefined,
    status: undefined,
    takenBytes: 0,
    rest: "",
    state: "head",
    oddities: [],
  };

  onHead(head: Head): void {
    this.#expectLive();
    if (this.recording.messages.at(-1)?.ended === false) throw new Error("a head inside a message");
    this.recording.messages.push({ head, body: "", trailers: undefined, ended: false });
  }

  onData(data: SharedBytes): void {
    if (data.length === 0) throw new Error("empty data");
    const message = this.#open();
    if (message.trailers !== undefined) throw new Error("data behind the trailers");
    message.body += data.toString("latin1");
  }

  onTrailers(fields: RawFields): void {
    this.#open().trailers = fields;
  }

  onEnd(): void {
    this.#open().ended = true;
  }

  onError(error: { code: Http1ErrorCode; status: number }): void {
    this.#expectLive();
    this.recording.error = error.code;
    this.recording.status = error.status;
  }

  onInformational(head: ResponseHead): void {
    this.#expectLive();
    this.recording.informational.push(head.status);
  }

  #open(): Recorded<Head> {
    this.#expectLive();
    const message = this.recording.messages.at(-1);
    if (message === undefined || message.ended) throw new Error("a part outside a message");
    return message;
  }

  #expectLive(): void {
    if (this.recording.error !== undefined) throw new Error("a call behind the error");
  }
}

/** Reads pipelined requests from the pieces, then optionally the end of the connection. */
export function readRequests(
  pieces: readonly Buffer[],
  options: { end?: boolean; limits?: Partial<Limits> } = {},
): Recording<RequestHead> {
  const sink = new RecordingSink<RequestHead>();
  const reader = new RequestReader(sink, options.limits);
  let behindBytes = 0;
  for (const piece of pieces) {
    let at = 0;
    while (at < piece.length) {
      const from = at;
      at = reader.read(piece, at);
      if (at < from || at > piece.length) throw new Error("an offset outside the input");
      if (reader.state === "ended") {
        sink.recording.takenBytes = behindBytes + at;
        reader.next();
      } else if (at < piece.length) throw new Error("input left over inside a message");
    }
    behindBytes += piece.length;
  }
  if (options.end === true) reader.end();
  sink.recording.state = reader.state;
  return sink.recording;
}

/** Reads one final response to `method`; what follows is `rest`. */
export function readResponse(
  pieces: readonly Buffer[],
  options: { method?: string; lenient?: boolean; end?: boolean; limits?: Partial<Limits>; upgrade?: string } = {},
): Recording<ResponseHead> {
  const sink = new RecordingSink<ResponseHead>();
  const reader = new ResponseReader(sink, {
    lenient: options.lenient ?? false,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
  reader.expect(options.method ?? "GET", options.upgrade);
  for (const piece of pieces) {
    const at = reader.read(piece);
    if (at < piece.length && reader.state !== "ended") throw new Error("input left over inside a message");
    sink.recording.rest += piece.toString("latin1", at);
  }
  if (options.end === true) reader.end();
  sink.recording.state = reader.state;
  sink.recording.oddities = [...reader.oddities].toSorted();
  return sink.recording;
}

export function bytes(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

/** The input whole, split once at every position, and split at all of them. */
export function* everyCut(input: Buffer): Generator<Buffer[]> {
  yield [input];
  for (let at = 1; at < input.length; at++) yield [input.subarray(0, at), input.subarray(at)];
  yield singleBytes(input);
}

/** Each byte in a buffer of its own. */
export function singleBytes(input: Buffer): Buffer[] {
  return Array.from(input, (_, at) => input.subarray(at, at + 1));
}
