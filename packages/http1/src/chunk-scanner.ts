import { CR, FIELD_VALUE, HEX_VALUE, LF, SEMICOLON, SP, TAB, TCHAR } from "./characters.ts";
import { HeadCollector } from "./head-collector.ts";
import { Http1Error, type Http1ErrorCode } from "./http1-error.ts";
import type { Limits, Oddity } from "./message.ts";

const EQUALS = 0x3d;

const QUOTE = 0x22;

const BACKSLASH = 0x5c;

/** Receives the scanner's output. */
export interface ChunkSink {
  onChunkData(data: Buffer): void;
  /** The trailer section including its final empty line; called only if it has at least one line. */
  onTrailerSection(text: string): void;
}

/** Deviations that the scanner accepts. */
export interface ChunkRules {
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

/**
 * Scans the chunked coding (RFC 9112 section 7.1) in arbitrarily split input; data is passed on as views, never
 * copied.
 */
export class ChunkScanner {
  readonly #sink: ChunkSink;
  readonly #rules: ChunkRules;
  readonly #limits: Limits;
  readonly #trailers: HeadCollector;
  #phase = SIZE;
  #digits = 0;
  #sizeBytes = 0;
  #lineBytes = 0;
  #extension: ExtensionPlace = "name-start";
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
  read(chunk: Buffer, offset: number): number {
    let at = offset;
    while (at < chunk.length) {
      if (this.#phase === DATA) return this.#readData(chunk, at);
      if (this.#phase === TRAILERS) return this.#readTrailers(chunk, at);
      this.#step(chunk[at] ?? 0);
      at++;
    }
    return at;
  }

  #readData(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#sizeBytes);
    this.#sizeBytes -= end - at;
    if (this.#sizeBytes === 0) this.#phase = DATA_CR;
    this.#sink.onChunkData(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
    return end;
  }

  #readTrailers(chunk: Buffer, at: number): number {
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
    let place = nextExtensionPlace(this.#extension, byte);
    if (place === "bad") {
      place = nextExtensionPlace("anything", byte);
      if (place === "bad") throw new Http1Error("control-character");
      this.#tolerate("odd-chunk-extension", "bad-chunk-extension");
    }
    if (place === "end") {
      this.#phase = SIZE_LF;
      return;
    }
    this.#extension = place;
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
type ExtensionPlace =
  | "name-start"
  | "name"
  | "value-start"
  | "value"
  | "quoted"
  | "escaped"
  | "behind-quoted"
  /** Invalid, but tolerated: skip to the end of the line. */
  | "anything"
  | "end"
  | "bad";

/** The position after `byte`, which is not LF; `end` for the CR that ends the line. */
function nextExtensionPlace(place: ExtensionPlace, byte: number): ExtensionPlace {
  switch (place) {
    case "name-start":
      return TCHAR[byte] === 1 ? "name" : "bad";
    case "name":
      if (TCHAR[byte] === 1) return "name";
      return byte === EQUALS ? "value-start" : behindMember(byte);
    case "value-start":
      if (byte === QUOTE) return "quoted";
      return TCHAR[byte] === 1 ? "value" : "bad";
    case "value":
      return TCHAR[byte] === 1 ? "value" : behindMember(byte);
    case "quoted":
      if (byte === QUOTE) return "behind-quoted";
      if (byte === BACKSLASH) return "escaped";
      return FIELD_VALUE[byte] === 1 ? "quoted" : "bad";
    case "escaped":
      return FIELD_VALUE[byte] === 1 ? "quoted" : "bad";
    case "behind-quoted":
      return behindMember(byte);
    case "anything":
      if (byte === CR) return "end";
      return FIELD_VALUE[byte] === 1 ? "anything" : "bad";
    default:
      return "bad";
  }
}

function behindMember(byte: number): ExtensionPlace {
  if (byte === SEMICOLON) return "name-start";
  return byte === CR ? "end" : "bad";
}
