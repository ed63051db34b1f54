import { HeadFacts, readFieldLines } from "./field-lines.ts";
import { Http1Error, type Http1ErrorCode } from "./http1-error.ts";
import { MessageReader, type MessageSink } from "./message-reader.ts";
import { REQUEST_LIMITS, type Limits, type RawFields, type RequestHead } from "./message.ts";
import { parseRequestHead } from "./request-head.ts";
import { allowedTrailers } from "./trailer-fields.ts";

export interface RequestReaderOptions {
  /**
   * Accepts `user:password@` before the host of an absolute target and an empty port after it, as some clients send,
   * and omits both from `authority`. The forwarded target must then be rebuilt. Otherwise refused (RFC 9110 section
   * 4.2.4).
   */
  readonly tidiesAuthority?: boolean;
}

/** Old clients send an empty line after a body; one before a request line is skipped (RFC 9112 section 2.2). */
const EMPTY_LINE = "\r\n";

/** Shared by all readers while they parse a head; idle ones keep nothing. */
const facts = new HeadFacts("requests");

/**
 * Reads requests one at a time from arbitrarily split input and refuses everything ambiguous. Never throws on input;
 * an error is reported to the sink once and ends the reader.
 */
export class RequestReader extends MessageReader<RequestHead> {
  readonly #tidiesAuthority: boolean;
  #isBehindEmptyLine = false;

  constructor(sink: MessageSink<RequestHead>, limits: Partial<Limits> = {}, options: RequestReaderOptions = {}) {
    super(sink, { ...REQUEST_LIMITS, ...limits }, { dropsExtensions: false, tolerate: undefined });
    this.#tidiesAuthority = options.tidiesAuthority ?? false;
  }

  protected override readHead(chunk: Buffer, at: number): number {
    const { collector } = this;
    let end = collector.heldBytes === 0 ? collector.takeClean(chunk, at) : -1;
    if (end < 0) {
      end = collector.take(chunk, at);
      if (end < 0) {
        if (collector.overflowed) throw new Http1Error("head-too-large");
        return chunk.length;
      }
    }
    if (collector.text === EMPTY_LINE && !this.#isBehindEmptyLine) {
      this.#isBehindEmptyLine = true;
      collector.reset();
      return end;
    }
    this.#isBehindEmptyLine = false;
    const { fieldCount } = this.limits;
    const head = parseRequestHead(collector.text, collector.isClean, fieldCount, facts, this.#tidiesAuthority);
    this.beginBody(head, head.framing);
    return end;
  }

  protected override parseTrailers(text: string): RawFields {
    facts.reset();
    const fields = readFieldLines(text, 0, false, this.limits.fieldCount, facts);
    if (allowedTrailers(fields) !== fields) throw new Http1Error("forbidden-trailer");
    return fields;
  }

  protected override asError(code: Http1ErrorCode): Http1Error {
    return new Http1Error(code);
  }
}
