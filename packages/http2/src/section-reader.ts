import {
  COMPRESSION_ERROR,
  CONTINUATION,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  HEADERS,
  PROTOCOL_ERROR,
} from "./codes.ts";
import { blockOf, headersDependOnThemselves } from "./frame-parser.ts";
import { HpackDecoder, type SectionLimits } from "./hpack/hpack-decoder.ts";
import { HpackError } from "./hpack/hpack-error.ts";
import { Http2Error } from "./http2-error.ts";

/** A block that is cut into more frames than this is cut to be cut. */
const MAX_FRAMES = 64;

/** A field section as a peer sent it. */
export interface ReceivedSection {
  readonly stream: number;
  readonly isWhole: boolean;
  readonly fields: string[];
  /** It was larger than allowed, and is not complete. */
  readonly isCut: boolean;
  /** Its stream depends on itself, which is an error of the stream (RFC 7540, 5.3.1). */
  readonly isSelfDependent: boolean;
}

/** Puts field blocks together (RFC 9113, 4.3) and decodes them. */
export class SectionReader {
  readonly #limits: SectionLimits;
  readonly #decoder = new HpackDecoder();
  /** Of a block under way. */
  #stream = 0;
  #isWhole = false;
  #isSelfDependent = false;
  #parts: Buffer[] = [];
  #sizeBytes = 0;

  constructor(limits: SectionLimits) {
    this.#limits = limits;
  }

  /** A block is under way: nothing but its next frame may come. */
  get isAmid(): boolean {
    return this.#stream !== 0;
  }

  /**
   * Takes a frame of a block; gives the section when that is complete.
   * @throws Http2Error
   */
  read(
    type: typeof HEADERS | typeof CONTINUATION,
    flags: number,
    stream: number,
    content: Buffer,
  ): ReceivedSection | undefined {
    if (stream === 0) throw new Http2Error(PROTOCOL_ERROR, "Fields belong to no stream");
    if (type === CONTINUATION ? stream !== this.#stream : this.isAmid) {
      throw new Http2Error(PROTOCOL_ERROR, "Frames of a field block are mixed with others");
    }
    const block = blockOf(type, flags, content);
    if (type === HEADERS) {
      this.#isWhole = (flags & END_STREAM) !== 0;
      this.#isSelfDependent = headersDependOnThemselves(flags, stream, content);
    }
    if ((flags & END_HEADERS) === 0) {
      this.#keep(stream, block);
      return undefined;
    }
    if (!this.isAmid) return this.#decode(stream, block);
    const whole = Buffer.concat([...this.#parts, block]);
    this.#stream = 0;
    this.#parts = [];
    this.#sizeBytes = 0;
    return this.#decode(stream, whole);
  }

  #keep(stream: number, block: Buffer): void {
    this.#stream = stream;
    this.#parts.push(Buffer.from(block));
    this.#sizeBytes += block.length;
    // No section within the limits needs more: its literals would be smaller than their fields.
    if (this.#parts.length > MAX_FRAMES || this.#sizeBytes > this.#limits.listBytes * 2) {
      throw new Http2Error(ENHANCE_YOUR_CALM, "A field block without an end");
    }
  }

  #decode(stream: number, block: Buffer): ReceivedSection {
    const fields: string[] = [];
    try {
      const isCut = !this.#decoder.decode(block, fields, this.#limits);
      return { stream, isWhole: this.#isWhole, fields, isCut, isSelfDependent: this.#isSelfDependent };
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      throw new Http2Error(COMPRESSION_ERROR, error.message);
    }
  }
}
