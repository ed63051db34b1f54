import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";
import {
  type EventBlock,
  EventReader,
  type JsonItem,
  type JsonStreamForm,
  JsonStreamReader,
} from "@headworks/event-stream";
import { parseContentEncoding } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues, type RawFields } from "@headworks/http1";
import type { BodyWatcher } from "#exchange/body.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { SliceHost } from "#slice.ts";
import type { FrameRecord, StreamRecorder } from "#storage/streams/stream-store.ts";

/** Attributes are shown in lists; longer values are cut. */
const ATTRIBUTE_CHARACTERS = 1000;

/** Maximum of undecoded bytes; zlib's threads are far faster than origins over any length of time. */
const MAX_WAITING_BYTES = 16_777_216;

interface StreamWatchOptions {
  readonly recorder: StreamRecorder;
  readonly exchange: ExchangeView;
  readonly maxFrameBytes: number;
  readonly now: () => number;
  /** Called once, after the last frame was recorded. */
  readonly onEnd: () => void;
  /** Called for an internal error; recording ends. */
  readonly onFault: (error: unknown) => void;
}

/** A piece of the body with its arrival time, or the start of a replacement body. */
type Arrival = { readonly atMs: number; readonly bytes: Buffer } | "another body";

/** Records the frames of a streamed response, parsed after they were forwarded. */
export class StreamWatch implements BodyWatcher {
  readonly #options: StreamWatchOptions;
  #arrivals: Arrival[] = [];
  #waitingBytes = 0;
  #isScheduled = false;
  #isReading = false;
  #hasEnded = false;
  #isLost = false;
  #isClosed = false;
  #atMs = 0;
  #reading: Reading | undefined;

  constructor(options: StreamWatchOptions) {
    this.#options = options;
    this.#reading = this.#beginReading(false);
    options.recorder.change({ state: "open" });
  }

  piece(bytes: Buffer): void {
    if (this.#isLost) return;
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) return this.#lose();
    this.#arrivals.push({ atMs: this.#options.now(), bytes });
    this.#schedule();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    // Synchronous where nothing is decoded: the process may be about to stop.
    if (!this.#isReading) void this.#read();
  }

  replaced(): void {
    if (this.#arrivals.at(-1) !== "another body") this.#arrivals.push("another body");
    this.#schedule();
  }

  failed(error: unknown): void {
    this.#options.onFault(error);
    this.#isLost = true;
    this.#arrivals = [];
    this.#reading = undefined;
    this.#close();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isReading) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (!this.#isReading) void this.#read();
    });
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    try {
      while (this.#arrivals.length > 0) {
        const arrivals = this.#arrivals;
        this.#arrivals = [];
        for (const arrival of arrivals) {
          const pending = arrival === "another body" ? this.#nextBody() : this.#readPiece(arrival);
          if (pending !== undefined) await pending;
        }
      }
      const finishing = this.#hasEnded ? this.#finish() : undefined;
      if (finishing !== undefined) await finishing;
    } catch (error) {
      this.failed(error);
    } finally {
      this.#isReading = false;
    }
  }

  #readPiece({ atMs, bytes }: Exclude<Arrival, string>): Promise<void> | undefined {
    this.#waitingBytes -= bytes.length;
    this.#atMs = atMs;
    if (this.#reading?.decoder !== undefined) return this.#reading.decoder.write(bytes);
    this.#reading?.frames.read(bytes);
    return undefined;
  }

  /** Records the replacement body after the origin's, marked. */
  async #nextBody(): Promise<void> {
    await this.#endReading();
    this.#options.recorder.change({ attributes: { replaced: "A rule replaced the origin's body" } });
    this.#reading = this.#beginReading(true);
  }

  #beginReading(isModified: boolean): Reading | undefined {
    const { exchange, maxFrameBytes, recorder } = this.#options;
    const form = streamForm(exchange);
    if (form === undefined || exchange.response === undefined) return undefined;
    const coding = contentCoding(exchange.response.fields);
    if (coding === "unknown") return undefined;
    const isCompressed = coding !== "none";
    const record = (frame: ReadFrame): void => {
      recorder.frame({
        ...frame,
        direction: "receive",
        opcode: 0,
        isFinal: true,
        atMs: this.#atMs,
        isCompressed,
        ...(isModified ? { effect: "modified" } : {}),
      });
    };
    const frames = frameReader(form, maxFrameBytes, record);
    return { frames, decoder: isCompressed ? new ResponseDecoder(coding, (bytes) => frames.read(bytes)) : undefined };
  }

  async #endReading(): Promise<void> {
    const reading = this.#reading;
    this.#reading = undefined;
    if (reading === undefined) return;
    const stop = reading.decoder === undefined ? undefined : await reading.decoder.end();
    if (stop !== undefined) this.#options.recorder.change({ attributes: { decoding: stop } });
    reading.frames.end();
  }

  /** Synchronous where nothing is decoded. */
  #finish(): Promise<void> | undefined {
    if (this.#reading?.decoder !== undefined) return this.#endReading().then(() => this.#close());
    this.#reading?.frames.end();
    this.#reading = undefined;
    this.#close();
    return undefined;
  }

  #lose(): void {
    this.#isLost = true;
    this.#options.recorder.change({ attributes: { unread: "The stream arrived faster than it could be decoded" } });
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { recorder, exchange, onEnd } = this.#options;
    const { state } = exchange;
    if (state.step === "failed") recorder.change({ closeReason: state.failure.message });
    recorder.end();
    onEnd();
  }
}

interface Reading {
  readonly frames: FrameReader;
  /** Undefined without a content coding. */
  readonly decoder: ResponseDecoder | undefined;
}

type ReadFrame = Omit<FrameRecord, "direction" | "opcode" | "isFinal" | "atMs" | "isCompressed">;

interface FrameReader {
  read(piece: Buffer): void;
  /** Ends the response and flushes a last frame. */
  end(): void;
}

/** Returns a parser that keeps at most `maxBytes` of each frame. */
function frameReader(form: StreamForm, maxBytes: number, onFrame: (frame: ReadFrame) => void): FrameReader {
  // A body limit of 0 means sizes without bytes.
  const keptBytes = Math.max(1, maxBytes);
  return form.kind === "sse"
    ? new EventReader({ maxEventBytes: keptBytes, onBlock: (block) => onFrame(frameOfBlock(block, maxBytes)) })
    : new JsonStreamReader({
        form: form.form,
        maxItemBytes: keptBytes,
        onItem: (item) => onFrame(frameOfItem(item, maxBytes)),
      });
}

function frameOfBlock(block: EventBlock, maxBytes: number): ReadFrame {
  const attributes: Record<string, string> = {};
  if (block.event !== "message") attributes["event"] = shortened(block.event);
  if (block.id !== undefined) attributes["id"] = shortened(block.id);
  if (block.retryMs !== undefined) attributes["retry"] = String(block.retryMs);
  if (block.comment !== undefined) attributes["comment"] = shortened(block.comment);
  if (!block.isComplete) attributes["incomplete"] = "true";
  const payload = Buffer.from(block.data);
  return {
    type: "event",
    payload: payload.length <= maxBytes ? payload : payload.subarray(0, maxBytes),
    // Replacement characters for invalid UTF-8 are longer than the original bytes.
    sizeBytes: block.isCut ? Math.max(block.sizeBytes, payload.length) : payload.length,
    wireBytes: block.wireBytes,
    ...withAttributes(attributes),
  };
}

function frameOfItem(item: JsonItem, maxBytes: number): ReadFrame {
  return {
    type: "item",
    payload: item.bytes.length <= maxBytes ? item.bytes : item.bytes.subarray(0, maxBytes),
    sizeBytes: item.sizeBytes,
    wireBytes: item.wireBytes,
    ...withAttributes(item.isComplete ? {} : { incomplete: "true" }),
  };
}

function withAttributes(attributes: Record<string, string>): Pick<FrameRecord, "attributes"> {
  return Object.keys(attributes).length === 0 ? {} : { attributes };
}

function shortened(text: string): string {
  return text.length <= ATTRIBUTE_CHARACTERS ? text : `${text.slice(0, ATTRIBUTE_CHARACTERS)}…`;
}

/** How a response body is split into frames. */
type StreamForm = { readonly kind: "sse" } | { readonly kind: "json"; readonly form: JsonStreamForm };

const SSE: StreamForm = { kind: "sse" };
const LINES: StreamForm = { kind: "json", form: "lines" };
const CONCATENATED: StreamForm = { kind: "json", form: "concatenated" };
const SEQUENCE: StreamForm = { kind: "json", form: "sequence" };
const ARRAY: StreamForm = { kind: "json", form: "array" };

const FORMS: ReadonlyMap<string, StreamForm> = new Map<string, StreamForm>([
  ["text/event-stream", SSE],
  ["application/x-ndjson", LINES],
  ["application/ndjson", LINES],
  ["application/jsonl", LINES],
  ["application/x-jsonl", LINES],
  ["application/jsonlines", LINES],
  ["application/x-jsonlines", LINES],
  ["application/json-lines", LINES],
  ["application/stream+json", CONCATENATED],
  ["application/x-json-stream", CONCATENATED],
  ["application/json-seq", SEQUENCE],
  ["application/geo+json-seq", SEQUENCE],
]);

/** Google's models respond with one array that grows by an element at a time. */
const STREAMED_ARRAY = ":streamGenerateContent";

/** The stream form of a response; undefined for responses that are no stream or cannot be decoded. */
export function streamForm({ request, response }: Pick<ExchangeView, "request" | "response">): StreamForm | undefined {
  if (response === undefined) return undefined;
  const type = fieldValue(response.fields, "content-type");
  if (type === undefined) return undefined;
  const form = formOf(type, request.path);
  if (form === undefined || !bringsBody(request.method, response.status)) return undefined;
  return contentCoding(response.fields) === "unknown" ? undefined : form;
}

/** The body's content coding; `unknown` for unsupported and for multiple codings. */
function contentCoding(fields: Readonly<RawFields>): DecodableCoding | "none" | "unknown" {
  const [coding, ...more] = parseContentEncoding(fieldValues(fields, "content-encoding"));
  if (coding === undefined) return "none";
  return (more.length === 0 ? DECODABLE.find((known) => known === coding) : undefined) ?? "unknown";
}

function formOf(contentType: string, path: string): StreamForm | undefined {
  const semicolon = contentType.indexOf(";");
  const type = (semicolon === -1 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
  if (type === "application/json") return path.includes(STREAMED_ARRAY) ? ARRAY : undefined;
  return FORMS.get(type);
}

function bringsBody(method: string, status: number): boolean {
  return method !== "HEAD" && status >= 200 && status !== 204 && status !== 304;
}

/** Content codings that can be decoded incrementally. */
export const DECODABLE = ["gzip", "x-gzip", "deflate", "br", "zstd"] as const;
export type DecodableCoding = (typeof DECODABLE)[number];

/** Why decoding stopped: the input ended too early, is not of its coding, or looks like a decompression bomb. */
type DecoderStop = "truncated" | "damaged" | "grows too much";

/** Thresholds above which input counts as a decompression bomb. */
const SUSPECT_BYTES = 33_554_432;
const SUSPECT_GROWTH = 250;

/** Decodes one content coding of an endless stream on zlib's threads, in bounded memory. */
export class ResponseDecoder {
  readonly #coding: DecodableCoding;
  readonly #onBytes: (bytes: Buffer) => void;
  #stream: Transform | undefined;
  #closed: Promise<void> = Promise.resolve();
  #stop: DecoderStop | undefined;
  #codedBytes = 0;
  #decodedBytes = 0;

  constructor(coding: DecodableCoding, onBytes: (bytes: Buffer) => void) {
    this.#coding = coding;
    this.#onBytes = onBytes;
  }

  /** Resolves when the piece was consumed and its output delivered. After a stop, input is discarded. */
  async write(piece: Buffer): Promise<void> {
    if (this.#stop !== undefined || piece.length === 0) return;
    this.#codedBytes += piece.length;
    const stream = (this.#stream ??= this.#open(piece[0] ?? 0));
    const consumed = Promise.withResolvers<undefined>();
    stream.write(piece, () => consumed.resolve(undefined));
    await Promise.race([consumed.promise, this.#closed]);
  }

  /** Resolves when everything was delivered. Never rejects. */
  async end(): Promise<DecoderStop | undefined> {
    this.#stream?.end();
    await this.#closed;
    return this.#stop;
  }

  #open(firstOctet: number): Transform {
    const stream = decompress(this.#coding, firstOctet);
    const closed = Promise.withResolvers<undefined>();
    this.#closed = closed.promise.then(() => undefined);
    stream.on("data", (bytes: Buffer) => this.#take(bytes, stream));
    stream.on("error", (error) => {
      this.#stop ??= isShort(error) ? "truncated" : "damaged";
    });
    stream.on("close", () => closed.resolve(undefined));
    return stream;
  }

  #take(bytes: Buffer, stream: Transform): void {
    if (this.#stop !== undefined) return;
    this.#decodedBytes += bytes.length;
    if (this.#decodedBytes > SUSPECT_BYTES && this.#decodedBytes > SUSPECT_GROWTH * this.#codedBytes) {
      this.#stop = "grows too much";
      stream.destroy();
      return;
    }
    this.#onBytes(bytes);
  }
}

function decompress(coding: DecodableCoding, firstOctet: number): Transform {
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      // RFC 1950 requires zlib's header; some servers omit it.
      return (firstOctet & 0x0f) === 8 ? createInflate() : createInflateRaw();
    case "br":
      return createBrotliDecompress();
    case "zstd":
      return createZstdDecompress();
  }
}

/** Brotli reports truncated input by its message only. */
function isShort(error: Error): boolean {
  return ("code" in error && error.code === "Z_BUF_ERROR") || error.message === "unexpected end of file";
}

/** Watches streamed responses and stores each event on arrival. */
export function createStreamsObserver(host: Pick<SliceHost, "streams" | "settings" | "clock" | "log">): Observer {
  const watches = new Map<ExchangeView, StreamWatch>();
  return {
    name: "streams",
    onResponding: (exchange) => {
      // A rule responds instead of the origin: its body replaces the watched one.
      if (watches.size > 0 && watches.has(exchange)) return watches.get(exchange)?.replaced();
      if (!exchange.isRecorded) return;
      const form = streamForm(exchange);
      const { running } = host.settings;
      if (form === undefined || !running.capture_response_bodies) return;
      const watch = new StreamWatch({
        recorder: host.streams.open(exchange, form.kind),
        exchange,
        maxFrameBytes: running.max_body_size,
        now: () => host.clock.now(),
        onEnd: () => watches.delete(exchange),
        onFault: (error) => host.log.error({ err: error }, "Recording of a stream failed"),
      });
      watches.set(exchange, watch);
      exchange.responseBody.watch(watch);
    },
  };
}
