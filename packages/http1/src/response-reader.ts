import { CR, LF } from "./characters.ts";
import { HeadFacts, readFieldLines } from "./field-lines.ts";
import { Http1Error, type Http1ErrorCode } from "./http1-error.ts";
import { MessageReader, type MessageSink } from "./message-reader.ts";
import { RESPONSE_LIMITS, type Limits, type Oddity, type RawFields, type ResponseHead } from "./message.ts";
import { demand } from "./owner-rule.ts";
import { parseResponseHead, startErrorCode } from "./response-head.ts";
import { parseTolerantly, parseTrailersTolerantly } from "./tolerant-response-head.ts";
import { allowedTrailers } from "./trailer-fields.ts";

/** Shared by all readers while they parse a head; idle ones keep nothing. */
const facts = new HeadFacts("responses");

/** A message sink that also receives informational responses (1xx other than 101). */
export interface ResponseSink extends MessageSink<ResponseHead> {
  onInformational(head: ResponseHead): void;
}

export interface ResponseReaderOptions {
  /** Accepts what browsers accept and records each oddity; otherwise refuses it. */
  readonly lenient: boolean;
  readonly limits?: Partial<Limits>;
}

const MAX_EMPTY_LINES = 16;
const START = "HTTP/";
const RADIO_START = "ICY ";

/**
 * Reads responses from arbitrarily split input. Never throws on input; an error is reported to the sink once and ends
 * the reader.
 */
export class ResponseReader extends MessageReader<ResponseHead> {
  readonly #sink: ResponseSink;
  readonly #lenient: boolean;
  readonly #tolerate = (oddity: Oddity): void => {
    if (!this.#oddities.includes(oddity)) this.#oddities.push(oddity);
  };
  #oddities: Oddity[] = [];
  #method: string | undefined;
  #offersUpgrade = false;
  #informationalCount = 0;
  #emptyLines = 0;
  #afterLeadingCr = false;

  constructor(sink: ResponseSink, options: ResponseReaderOptions) {
    let tolerate: ((oddity: Oddity) => void) | undefined;
    if (options.lenient) tolerate = (oddity) => this.#tolerate(oddity);
    super(sink, { ...RESPONSE_LIMITS, ...options.limits }, { dropsExtensions: true, tolerate });
    this.#sink = sink;
    this.#lenient = options.lenient;
  }

  /**
   * Oddities tolerated so far in the current response. If there are any, close the connection after it. A strict
   * reader reports one for white space before the colon of a framing field.
   */
  get oddities(): readonly Oddity[] {
    return this.#oddities;
  }

  /**
   * Announces a request; required before each response, whose framing depends on the method. Other input is refused.
   * Implies `next` after a complete response.
   * @param upgrade  the protocols offered; without it a 101 is refused
   * @throws Error while a response is in progress
   */
  expect(method: string, upgrade?: string): void {
    demand(this.state !== "body" && !this.hasPartialHead, "the next response is expected only after the current one");
    this.next();
    this.#method = method;
    this.#offersUpgrade = upgrade !== undefined;
    this.#informationalCount = 0;
    this.#emptyLines = 0;
    this.#afterLeadingCr = false;
    if (this.#oddities.length > 0) this.#oddities = [];
  }

  /** Prepares for another `expect`; input before it is refused. */
  override next(): void {
    if (this.state === "ended") this.#method = undefined;
    super.next();
  }

  protected override readHead(chunk: Buffer, from: number): number {
    const method = this.#method;
    if (method === undefined) throw new Http1Error("unexpected-answer");
    const { collector } = this;
    let at = from;
    if (this.#lenient && collector.heldBytes === 0) {
      at = this.#skipEmptyLines(chunk, from);
      if (at === chunk.length) return at;
    }
    let end = collector.heldBytes === 0 ? collector.takeClean(chunk, at) : -1;
    if (end < 0) {
      end = collector.take(chunk, at);
      if (end < 0) {
        if (collector.overflowed) throw new Http1Error("head-too-large");
        this.#checkStart();
        return chunk.length;
      }
    }
    const head = this.#parse(collector.text, method);
    this.#deliver(head);
    return end;
  }

  #parse(text: string, method: string): ResponseHead {
    if (!this.#lenient) return this.#parseStrictly(text, method);
    if (this.#oddities.length === 0) {
      try {
        return this.#parseStrictly(text, method);
      } catch {
        // Not plain; the tolerant parser decides.
      }
    }
    return parseTolerantly(text, method, this.limits.fieldCount, facts, this.#oddities);
  }

  #parseStrictly(text: string, method: string): ResponseHead {
    return parseResponseHead(text, this.collector.isClean, method, this.limits.fieldCount, facts);
  }

  #deliver(head: ResponseHead): void {
    for (const oddity of head.oddities) this.#tolerate(oddity);
    if (head.status >= 200 || head.status === 101) {
      if (head.status === 101 && !this.#offersUpgrade) throw new Http1Error("unexpected-upgrade");
      this.beginBody(head, head.framing);
      return;
    }
    this.#informationalCount++;
    if (this.#informationalCount > this.limits.informationalCount) throw new Http1Error("too-many-informational");
    this.collector.reset();
    this.#sink.onInformational(head);
  }

  #skipEmptyLines(chunk: Buffer, from: number): number {
    let at = from;
    for (; at < chunk.length; at++) {
      const byte = chunk[at];
      if (byte === LF) {
        this.#afterLeadingCr = false;
        this.#tolerate("leading-empty-line");
        this.#emptyLines++;
        if (this.#emptyLines > MAX_EMPTY_LINES) throw new Http1Error("leading-empty-line");
      } else if (this.#afterLeadingCr) {
        throw new Http1Error("bad-line-end");
      } else if (byte === CR) {
        this.#afterLeadingCr = true;
      } else {
        break;
      }
    }
    return at;
  }

  /** Input that does not start like a response is refused immediately. */
  #checkStart(): void {
    const { collector } = this;
    let start = "";
    for (let index = 0; index < Math.min(START.length, collector.heldBytes); index++) {
      start += String.fromCharCode(collector.heldByte(index));
    }
    if (START.startsWith(start)) return;
    const lenientStart = start.toUpperCase();
    if (this.#lenient && (START.startsWith(lenientStart) || RADIO_START.startsWith(lenientStart.slice(0, 4)))) return;
    throw new Http1Error(startErrorCode(start));
  }

  protected override parseTrailers(text: string): RawFields {
    const fields = this.#readTrailers(text);
    const allowed = allowedTrailers(fields);
    if (allowed !== fields) {
      if (!this.#lenient) throw new Http1Error("forbidden-trailer");
      this.#tolerate("dropped-trailer");
    }
    return allowed;
  }

  #readTrailers(text: string): RawFields {
    const { fieldCount } = this.limits;
    facts.reset();
    if (!this.#lenient) return readFieldLines(text, 0, false, fieldCount, facts);
    try {
      return readFieldLines(text, 0, false, fieldCount, facts);
    } catch {
      return parseTrailersTolerantly(text, fieldCount, this.#tolerate);
    }
  }

  protected override endsWithoutLastLine(): boolean {
    if (!this.#lenient || !this.onlyLastLineMissing) return false;
    this.#tolerate("missing-last-line");
    return true;
  }

  protected override asError(code: Http1ErrorCode): Http1Error {
    return new Http1Error(code, 502);
  }
}
