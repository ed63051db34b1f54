import type { SharedBytes } from "@headworks/sockets";
import { CR, FIELD_VALUE, HEX_VALUE, LF, SEMICOLON, SP, TAB, TCHAR } from "./grammar.ts";
import {
  type Framing,
  Http1Error,
  type Http1ErrorCode,
  type Limits,
  NO_BODY,
  type Oddity,
  type RawFields,
} from "./message.ts";

const MAX_SCAN_BYTES = 65_536;
const SCAN_BLOCK_BYTES = 2_048;
const scanMemory = new ArrayBuffer(MAX_SCAN_BYTES + 4);
const scanBytes = Buffer.from(scanMemory);
const scanWords = new Int32Array(scanMemory);
const MIN_HOLD_BYTES = 512;

/**
 * Finds the end of a head or trailer section in arbitrarily split input. In the usual case, a whole head inside one
 * chunk, this costs one pass over its words; a split head is copied and each byte examined once, so total work is
 * linear for any split.
 */
class HeadCollector {
  /**
   * The collected bytes as latin1, set when a call returned an offset: up to the empty line or, in strict mode, up to
   * the first byte invalid in any head. The latter does not end with an empty line, so parsing fails at the first
   * error in reading order without waiting for the rest.
   */
  text = "";
  /** The text contains only field-value characters and CR LF pairs. */
  isClean = false;
  /** The limit was exceeded before the end was found. */
  overflowed = false;
  readonly #limitBytes: number;
  readonly #toleratesLines: boolean;
  #held: Buffer | undefined;
  #heldBytes = 0;
  #lineBytes = 0;
  #afterCr = false;

  /** @param toleratesLines  LF alone ends a line, and control characters are left to the parser */
  constructor(limitBytes: number, toleratesLines: boolean) {
    this.#limitBytes = limitBytes;
    this.#toleratesLines = toleratesLines;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** The buffered byte at `index`, or -1. */
  heldByte(index: number): number {
    return index < this.#heldBytes ? (this.#held?.[index] ?? -1) : -1;
  }

  /** Everything received of the current head, in latin1. */
  get seen(): string {
    return this.text === "" ? (this.#held?.toString("latin1", 0, this.#heldBytes) ?? "") : this.text;
  }

  reset(): void {
    this.text = "";
    this.isClean = false;
    this.overflowed = false;
    this.#held = undefined;
    this.#heldBytes = 0;
    this.#lineBytes = 0;
    this.#afterCr = false;
  }

  /** Takes a whole clean head from `offset`. Returns the offset behind it, or -1 with nothing taken. */
  takeClean(chunk: SharedBytes, offset: number): number {
    const end = cleanHeadEnd(chunk, offset, this.#limitBytes);
    if (end < 0) return -1;
    this.text = chunk.toString("latin1", offset, end);
    this.isClean = true;
    return end;
  }

  /**
   * Slow path: takes bytes up to the first empty line. Returns the offset behind it with `text` set, or -1 if more
   * input is needed or the limit was exceeded (`overflowed`).
   */
  take(chunk: SharedBytes, offset: number): number {
    const stop = Math.min(chunk.length, offset + this.#limitBytes - this.#heldBytes);
    const end = this.#toleratesLines ? this.#scanTolerant(chunk, offset, stop) : this.#scanStrict(chunk, offset, stop);
    if (end < 0) {
      this.#hold(chunk, offset, stop);
      this.overflowed = stop < chunk.length;
      return -1;
    }
    if (this.#heldBytes === 0) {
      this.text = chunk.toString("latin1", offset, end);
    } else {
      this.#hold(chunk, offset, end);
      this.text = this.#held?.toString("latin1", 0, this.#heldBytes) ?? "";
    }
    return end;
  }

  #scanStrict(chunk: SharedBytes, offset: number, stop: number): number {
    for (let at = offset; at < stop; at++) {
      const byte = chunk[at] ?? 0;
      if (this.#afterCr) {
        this.#afterCr = false;
        this.isClean = byte === LF;
        if (!this.isClean || this.#lineBytes === 0) return at + 1;
        this.#lineBytes = 0;
      } else if (byte === CR) {
        this.#afterCr = true;
      } else if (FIELD_VALUE[byte] === 1) {
        this.#lineBytes++;
      } else {
        this.isClean = false;
        return at + 1;
      }
    }
    return -1;
  }

  #scanTolerant(chunk: SharedBytes, offset: number, stop: number): number {
    for (let at = offset; at < stop; at++) {
      const byte = chunk[at];
      if (byte === LF) {
        if (this.#lineBytes === 0) return at + 1;
        this.#lineBytes = 0;
      } else if (byte !== CR) {
        this.#lineBytes++;
      }
    }
    return -1;
  }

  #hold(chunk: SharedBytes, from: number, to: number): void {
    const neededBytes = this.#heldBytes + to - from;
    let held = this.#held;
    if (held === undefined || held.length < neededBytes) {
      const grown = Buffer.allocUnsafeSlow(Math.max(MIN_HOLD_BYTES, neededBytes, 2 * this.#heldBytes));
      held?.copy(grown, 0, 0, this.#heldBytes);
      held = grown;
      this.#held = grown;
    }
    chunk.copy(held, this.#heldBytes, from, to);
    this.#heldBytes = neededBytes;
  }
}

/**
 * Finds a head that lies whole in `chunk` from `start` and is clean: only field-value characters and CR LF pairs up to
 * the first empty line. Returns the offset behind that line, or -1 if the head is not whole, not clean, or longer than
 * `maxBytes` (or 64 KiB). In a clean head the parser can search for line ends natively, which halves its cost. Four
 * bytes are tested at a time: the expression is zero exactly if none is below 0x20 or equal to 0x7f. Only words with a
 * line end (or a tab, or worse) are examined byte by byte.
 */
export function cleanHeadEnd(chunk: SharedBytes, start: number, maxBytes: number): number {
  const available = Math.min(chunk.length - start, maxBytes, MAX_SCAN_BYTES);
  let copied = 0;
  let wordIndex = 0;
  let lineStart = 0;
  let lastCr = -1;
  while (copied < available) {
    const size = Math.min(available - copied, SCAN_BLOCK_BYTES);
    chunk.copy(scanBytes, copied, start + copied, start + copied + size);
    copied += size;
    for (let padding = copied; padding < copied + 3; padding++) scanBytes[padding] = SP;
    for (const wordEnd = (copied + 3) >> 2; wordIndex < wordEnd; wordIndex++) {
      const word = scanWords[wordIndex] ?? 0;
      const deletes = word ^ 0x7f7f7f7f;
      const flags = ((word - 0x20202020) & ~word) | ((deletes - 0x01010101) & ~deletes);
      if ((flags & 0x80808080) === 0) continue;
      const behind = 4 * wordIndex + 4;
      for (let at = behind - 4; at < behind; at++) {
        const byte = scanBytes[at] ?? 0;
        if (FIELD_VALUE[byte] === 1) continue;
        if (byte === CR && lastCr < lineStart) {
          lastCr = at;
        } else if (byte === LF && lastCr >= lineStart && lastCr === at - 1) {
          if (lastCr === lineStart) return start + at + 1;
          lineStart = at + 1;
        } else {
          return -1;
        }
      }
    }
  }
  return -1;
}

const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Receives the scanner's output. */
interface ChunkSink {
  readonly onChunkData: (data: SharedBytes) => void;
  /** The trailer section including its final empty line; called only if it has at least one line. */
  onTrailerSection(text: string): void;
}

/** Deviations that the scanner accepts. */
interface ChunkRules {
  /** Chunk extensions are dropped instead of refused. */
  readonly dropsExtensions: boolean;
  /** Called for each tolerated oddity; without it none is tolerated. */
  readonly tolerate: ((oddity: Oddity) => void) | undefined;
}

const SIZE = 0;
const AFTER_SIZE = 1;
const EXTENSION = 2;
const SIZE_LF = 3;
const DATA = 4;
const DATA_CR = 5;
const DATA_LF = 6;
const TRAILERS = 7;
const DONE = 8;
const MAX_SIZE_DIGITS = 8;

/** Scans the chunked coding (RFC 9112 section 7.1) in arbitrarily split input; data is never copied. */
class ChunkScanner {
  readonly #sink: ChunkSink;
  readonly #rules: ChunkRules;
  readonly #limits: Limits;
  readonly #trailers: HeadCollector;
  #phase = SIZE;
  #digits = 0;
  #sizeBytes = 0;
  #lineBytes = 0;
  #extension: ExtensionState = "name-start";
  #extensionBytes = 0;

  constructor(sink: ChunkSink, rules: ChunkRules, limits: Limits) {
    this.#sink = sink;
    this.#rules = rules;
    this.#limits = limits;
    this.#trailers = new HeadCollector(limits.trailerBytes, rules.tolerate !== undefined);
  }

  get done(): boolean {
    return this.#phase === DONE;
  }

  /** Only the empty line after the trailer section is missing. */
  get onlyLastLineMissing(): boolean {
    return this.#phase === TRAILERS && this.#trailers.heldBytes === 0;
  }

  /** Prepares for the first chunk of another message. */
  reset(): void {
    this.#phase = SIZE;
    this.#digits = 0;
    this.#sizeBytes = 0;
    this.#lineBytes = 0;
    this.#extensionBytes = 0;
    this.#trailers.reset();
  }

  /**
   * Scans from `offset` to the end of the body, the end of the input, or the end of the first data piece, whichever
   * comes first. Returns the offset reached.
   * @throws Http1Error
   */
  read(chunk: SharedBytes, offset: number): number {
    let at = offset;
    while (at < chunk.length) {
      if (this.#phase === DATA) return this.#readData(chunk, at);
      if (this.#phase === TRAILERS) return this.#readTrailers(chunk, at);
      this.#step(chunk[at] ?? 0);
      at++;
    }
    return at;
  }

  #readData(chunk: SharedBytes, at: number): number {
    const end = Math.min(chunk.length, at + this.#sizeBytes);
    this.#sizeBytes -= end - at;
    if (this.#sizeBytes === 0) this.#phase = DATA_CR;
    this.#sink.onChunkData(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
    return end;
  }

  #readTrailers(chunk: SharedBytes, at: number): number {
    const trailers = this.#trailers;
    const end = trailers.take(chunk, at);
    if (end < 0) {
      if (trailers.overflowed) throw new Http1Error("trailers-too-large");
      return chunk.length;
    }
    const { text } = trailers;
    trailers.reset();
    this.#phase = DONE;
    if (text === "\n") this.#tolerate("bare-lf", "bad-line-end");
    else if (text !== "\r\n") this.#sink.onTrailerSection(text);
    return end;
  }

  #step(byte: number): void {
    switch (this.#phase) {
      case SIZE:
        this.#onSizeByte(byte);
        break;
      case AFTER_SIZE:
        if (byte === SEMICOLON) this.#beginExtension();
        else if (byte === SP || byte === TAB) this.#countLineByte();
        else if (byte === CR) this.#phase = SIZE_LF;
        else throw new Http1Error("bad-chunk-size");
        break;
      case EXTENSION:
        this.#onExtensionByte(byte);
        break;
      case SIZE_LF:
        if (byte !== LF) throw new Http1Error("bad-line-end");
        this.#endSizeLine();
        break;
      case DATA_CR:
        if (byte === CR) {
          this.#phase = DATA_LF;
        } else {
          if (byte !== LF) throw new Http1Error("bad-chunk-end");
          this.#tolerate("bare-lf", "bad-chunk-end");
          this.#phase = SIZE;
        }
        break;
      default:
        if (byte !== LF) throw new Http1Error("bad-chunk-end");
        this.#phase = SIZE;
    }
  }

  #onSizeByte(byte: number): void {
    const value = HEX_VALUE[byte] ?? 255;
    if (value < 16) {
      this.#digits++;
      if (this.#digits > MAX_SIZE_DIGITS) throw new Http1Error("bad-chunk-size");
      this.#sizeBytes = this.#sizeBytes * 16 + value;
      return;
    }
    if (this.#digits === 0) throw new Http1Error("bad-chunk-size");
    if (byte === CR) {
      this.#phase = SIZE_LF;
    } else if (byte === LF) {
      this.#tolerate("bare-lf", "bad-line-end");
      this.#endSizeLine();
    } else if (byte === SEMICOLON) {
      this.#beginExtension();
    } else if (byte === SP || byte === TAB) {
      this.#tolerate("chunk-size-padding", "bad-chunk-size");
      this.#phase = AFTER_SIZE;
      this.#countLineByte();
    } else {
      throw new Http1Error("bad-chunk-size");
    }
  }

  #beginExtension(): void {
    if (!this.#rules.dropsExtensions) throw new Http1Error("chunk-extension");
    this.#phase = EXTENSION;
    this.#extension = "name-start";
    this.#countLineByte();
  }

  #onExtensionByte(byte: number): void {
    // Parsers disagree on whether a lone LF inside an extension ends the line, so it is always refused.
    if (byte === LF) throw new Http1Error("bad-line-end");
    let state = nextExtensionState(this.#extension, byte);
    if (state === "bad") {
      state = nextExtensionState("anything", byte);
      if (state === "bad") throw new Http1Error("control-character");
      this.#tolerate("odd-chunk-extension", "bad-chunk-extension");
    }
    if (state === "end") {
      this.#phase = SIZE_LF;
      return;
    }
    this.#extension = state;
    this.#countLineByte();
  }

  #countLineByte(): void {
    this.#lineBytes++;
    this.#extensionBytes++;
    const { chunkLineBytes, chunkExtensionBytes } = this.#limits;
    if (this.#lineBytes + MAX_SIZE_DIGITS > chunkLineBytes || this.#extensionBytes > chunkExtensionBytes) {
      throw new Http1Error("chunk-line-too-long");
    }
  }

  #endSizeLine(): void {
    this.#phase = this.#sizeBytes === 0 ? TRAILERS : DATA;
    this.#digits = 0;
    this.#lineBytes = 0;
  }

  #tolerate(oddity: Oddity, code: Http1ErrorCode): void {
    if (this.#rules.tolerate === undefined) throw new Http1Error(code);
    this.#rules.tolerate(oddity);
  }
}

/** Position within `*( ";" name [ "=" ( token / quoted-string ) ] )` (RFC 9112 section 7.1.1). */
type ExtensionState =
  | "name-start"
  | "name"
  | "value-start"
  | "value"
  | "quoted"
  | "escaped"
  | "after-quoted"
  /** Invalid, but tolerated: skip to the end of the line. */
  | "anything"
  | "end"
  | "bad";

/** The position after `byte`, which is not LF; `end` for the CR that ends the line. */
function nextExtensionState(state: ExtensionState, byte: number): ExtensionState {
  switch (state) {
    case "name-start":
      return TCHAR[byte] === 1 ? "name" : "bad";
    case "name":
      if (TCHAR[byte] === 1) return "name";
      return byte === EQUALS ? "value-start" : afterMember(byte);
    case "value-start":
      if (byte === QUOTE) return "quoted";
      return TCHAR[byte] === 1 ? "value" : "bad";
    case "value":
      return TCHAR[byte] === 1 ? "value" : afterMember(byte);
    case "quoted":
      if (byte === QUOTE) return "after-quoted";
      if (byte === BACKSLASH) return "escaped";
      return FIELD_VALUE[byte] === 1 ? "quoted" : "bad";
    case "escaped":
      return FIELD_VALUE[byte] === 1 ? "quoted" : "bad";
    case "after-quoted":
      return afterMember(byte);
    case "anything":
      if (byte === CR) return "end";
      return FIELD_VALUE[byte] === 1 ? "anything" : "bad";
    default:
      return "bad";
  }
}

function afterMember(byte: number): ExtensionState {
  if (byte === SEMICOLON) return "name-start";
  return byte === CR ? "end" : "bad";
}

/** Receives messages. Called synchronously from `read` and `end`. */
export interface MessageSink<Head> {
  onHead(head: Head): void;
  /** A non-empty view of the input. */
  readonly onData: (data: SharedBytes) => void;
  /** The allowed trailer fields, if any; called before `onEnd`. */
  onTrailers?(fields: RawFields): void;
  onEnd(): void;
  /** Called at most once, and last. `headText`: the refused head, one character per byte. */
  onError(error: Http1Error, headText: string): void;
}

export type ReaderState = "head" | "body" | "ended" | "failed";

/** Common part of the request and response readers: bodies, ends, failures, pausing. */
export abstract class MessageReader<Head> {
  protected readonly sink: MessageSink<Head>;
  protected readonly limits: Limits;
  protected readonly collector: HeadCollector;
  readonly #rules: ChunkRules;
  #state: ReaderState = "head";
  #framing: Framing = NO_BODY;
  #remainingBytes = 0;
  #paused = false;
  #endedCount = 0;
  #chunks: ChunkScanner | undefined;

  constructor(sink: MessageSink<Head>, limits: Limits, rules: ChunkRules) {
    this.sink = sink;
    this.limits = limits;
    this.#rules = rules;
    this.collector = new HeadCollector(limits.headBytes, rules.tolerate !== undefined);
  }

  get state(): ReaderState {
    return this.#state;
  }

  /** Part of a head has arrived: the head timeout applies. */
  get hasPartialHead(): boolean {
    return this.#state === "head" && this.collector.heldBytes > 0;
  }

  /** `read` returns after the current callback and takes no more input until `resume`. */
  pause(): void {
    this.#paused = true;
  }

  /** Allows `read` again; the owner passes the remaining input. */
  resume(): void {
    this.#paused = false;
  }

  get isPaused(): boolean {
    return this.#paused;
  }

  /**
   * Reads from `offset` and returns the offset up to which input was taken. Reading stops at the end of a message
   * (state `ended`, even if the sink called `next` meanwhile) and after `pause`; the owner keeps the rest. After a
   * refused message (`failed`) all input is discarded.
   */
  read(chunk: SharedBytes, offset = 0): number {
    const endedCount = this.#endedCount;
    let at = offset;
    try {
      // Compares the count, not the state: the sink may have called `next`, or even read on, inside a callback.
      while (at < chunk.length && !this.#paused && this.#endedCount === endedCount) {
        if (this.#state === "head") at = this.readHead(chunk, at);
        else if (this.#state === "body") at = this.#readBody(chunk, at);
        else return this.#state === "failed" ? chunk.length : at;
      }
      return at;
    } catch (error) {
      if (!(error instanceof Http1Error)) throw error;
      this.fail(error);
      return chunk.length;
    }
  }

  /** Prepares for the next message; only after the current one ended. */
  next(): void {
    if (this.#state === "ended") this.#state = "head";
  }

  /** The peer closed: ends an until-close body; an error inside any other message. */
  end(): void {
    if (this.#state === "body") {
      if (this.#framing.kind === "until-close" || this.endsWithoutLastLine()) this.#finish();
      else this.fail(this.asError("truncated"));
    } else if (this.#state === "head" && this.collector.heldBytes > 0) {
      this.fail(this.asError("truncated"));
    }
  }

  /** Parses a head and calls `beginBody`; returns the new offset, at least `at + 1`. */
  protected abstract readHead(chunk: SharedBytes, at: number): number;
  /** Parses a complete trailer section and returns the fields to deliver. */
  protected abstract parseTrailers(text: string): RawFields;
  protected abstract asError(code: Http1Error["code"]): Http1Error;

  /** Whether a body that lacks only its final empty line may end here. */
  protected endsWithoutLastLine(): boolean {
    return false;
  }

  protected get onlyLastLineMissing(): boolean {
    return this.#framing.kind === "chunked" && this.#chunks?.onlyLastLineMissing === true;
  }

  /** Delivers the head, then expects its body or ends the message. */
  protected beginBody(head: Head, framing: Framing): void {
    this.collector.reset();
    this.#framing = framing;
    this.#state = "body";
    switch (framing.kind) {
      case "length":
        this.#remainingBytes = framing.lengthBytes;
        break;
      case "chunked":
        this.#chunks ??= new ChunkScanner(this.#chunkSink(), this.#rules, this.limits);
        this.#chunks.reset();
        break;
      default:
    }
    this.sink.onHead(head);
    if (framing.kind === "none" || (framing.kind === "length" && framing.lengthBytes === 0)) this.#finish();
  }

  /** Puts the reader into its final state; further calls of `read` and `end` have no effect. */
  protected fail(error: Http1Error): void {
    if (this.#state === "failed") return;
    this.#state = "failed";
    const headText = this.collector.seen;
    this.collector.reset();
    this.sink.onError(this.asError(error.code), headText);
  }

  #readBody(chunk: SharedBytes, at: number): number {
    switch (this.#framing.kind) {
      case "length": {
        const end = Math.min(chunk.length, at + this.#remainingBytes);
        this.#remainingBytes -= end - at;
        this.sink.onData(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
        if (this.#remainingBytes === 0) this.#finish();
        return end;
      }
      case "chunked": {
        const chunks = this.#chunks;
        if (chunks === undefined) return chunk.length;
        const end = chunks.read(chunk, at);
        if (chunks.done) this.#finish();
        return end;
      }
      default:
        this.sink.onData(at === 0 ? chunk : chunk.subarray(at));
        return chunk.length;
    }
  }

  #finish(): void {
    this.#state = "ended";
    this.#endedCount++;
    this.sink.onEnd();
  }

  #chunkSink(): ChunkSink {
    return {
      onChunkData: (data) => this.sink.onData(data),
      onTrailerSection: (text) => {
        const fields = this.parseTrailers(text);
        if (fields.length > 0) this.sink.onTrailers?.(fields);
      },
    };
  }
}
