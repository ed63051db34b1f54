import type { Buffer } from "node:buffer";
import { KeptBytes } from "./kept-bytes.ts";

/** The lines between two empty lines of an event stream. */
export interface EventBlock {
  /** Type of the event: `message` where the block names none. */
  readonly event: string;
  /** The values of all `data` lines, joined by line feeds; the first bytes of it when the block is larger than the limit. */
  readonly data: string;
  /** Last event id, as a client would send it in `Last-Event-ID` after this block. */
  readonly lastEventId: string;
  /** The id that this very block sets. */
  readonly id: string | undefined;
  /** Reconnection time that this block sets, milliseconds. */
  readonly retryMs: number | undefined;
  /** Its comment lines, joined by line feeds, each without its colon and one space. */
  readonly comment: string | undefined;
  /** False: no client sees an event, since the block has no data, or the stream ended inside it. */
  readonly isDispatched: boolean;
  /** False: the stream ended before the empty line. */
  readonly isComplete: boolean;
  /** Bytes of `data` in UTF-8, cut or not. */
  readonly sizeBytes: number;
  readonly isCut: boolean;
  /** Bytes of the stream since the block before, line ends included. */
  readonly wireBytes: number;
}

export interface EventReaderOptions {
  /** Of a block's data and comments no more bytes than this are kept. */
  readonly maxEventBytes: number;
  /** Called with each block as soon as the empty line behind it came. */
  readonly onBlock: (block: EventBlock) => void;
}

const CR = 0x0d;
const LF = 0x0a;
const BYTE_ORDER_MARK = "\u{FEFF}";
/** A line holds a name besides its value; those that matter are shorter, colon and space included. */
const NAME_BYTES = 16;
/** More digits than this are no time that anybody waits, and would not fit a number. */
const MAX_RETRY_DIGITS = 15;

/**
 * Reads an event stream (WHATWG HTML, 9.2.6) that may be cut into pieces anywhere, inside characters and line ends too.
 * What browsers drop is told as well: comments, and blocks that only set the id or the reconnection time. Wrong UTF-8
 * becomes U+FFFD. Memory is bounded by `maxEventBytes`, and no input makes it throw.
 */
export class EventReader {
  readonly #options: EventReaderOptions;
  readonly #line: KeptBytes;
  #isFirstLine = true;
  /** The last piece ended with a CR, whose LF may come now. */
  #skipsLf = false;
  #wireBytes = 0;
  #lastEventId = "";
  #block = new OpenBlock();

  constructor(options: EventReaderOptions) {
    this.#options = options;
    this.#line = new KeptBytes(options.maxEventBytes + NAME_BYTES);
  }

  /** Takes the next bytes; they are referred to until their line is complete and must not be changed. */
  read(piece: Buffer): void {
    let at = 0;
    if (this.#skipsLf && piece.length > 0) {
      this.#skipsLf = false;
      if (piece[0] === LF) {
        at = 1;
        this.#wireBytes += 1;
      }
    }
    let cr = nextOf(piece, CR, at);
    let lf = nextOf(piece, LF, at);
    while (at < piece.length) {
      const end = Math.min(cr, lf);
      this.#line.add(piece.subarray(at, end));
      this.#wireBytes += end - at;
      if (end === piece.length) return;
      at = end + 1;
      this.#wireBytes += 1;
      if (end === cr) {
        // The line ends here: an LF may be long in coming, and must not hold back the event.
        if (at === piece.length) this.#skipsLf = true;
        else if (piece[at] === LF) {
          at += 1;
          this.#wireBytes += 1;
        }
      }
      this.#lineEnded();
      if (cr < at) cr = nextOf(piece, CR, at);
      if (lf < at) lf = nextOf(piece, LF, at);
    }
  }

  /** Ends the stream; reports an unfinished last block. */
  end(): void {
    if (this.#line.sizeBytes > 0) this.#lineEnded();
    if (!this.#block.isEmpty) this.#tell(false);
  }

  #lineEnded(): void {
    const { sizeBytes } = this.#line;
    const wasCut = this.#line.isCut;
    let text = sizeBytes === 0 ? "" : this.#line.take().toString("utf8");
    let lengthBytes = sizeBytes;
    if (this.#isFirstLine) {
      this.#isFirstLine = false;
      if (text.startsWith(BYTE_ORDER_MARK)) {
        text = text.slice(1);
        lengthBytes -= 3;
      }
    }
    if (lengthBytes > 0) return this.#block.addLine(text, lengthBytes, wasCut, this.#options.maxEventBytes);
    if (!this.#block.isEmpty) this.#tell(true);
  }

  #tell(isComplete: boolean): void {
    const block = this.#block;
    this.#block = new OpenBlock();
    if (block.id !== undefined && isComplete) this.#lastEventId = block.id;
    const wireBytes = this.#wireBytes;
    this.#wireBytes = 0;
    this.#options.onBlock({
      event: block.event === "" ? "message" : block.event,
      data: block.data.join("\n"),
      lastEventId: this.#lastEventId,
      id: block.id,
      retryMs: block.retryMs,
      comment: block.comments.length === 0 ? undefined : block.comments.join("\n"),
      isDispatched: isComplete && block.hasData,
      isComplete,
      sizeBytes: Math.max(0, block.dataBytes - 1),
      isCut: block.isCut,
      wireBytes,
    });
  }
}

/** The lines of a block so far. */
class OpenBlock {
  event = "";
  id: string | undefined;
  retryMs: number | undefined;
  isCut = false;
  /** Bytes of all values of `data` lines, with a line end each. */
  dataBytes = 0;
  readonly data: string[] = [];
  readonly comments: string[] = [];
  #keptBytes = 0;
  #isEmpty = true;

  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  get hasData(): boolean {
    return this.dataBytes > 0;
  }

  /** `text` is the line as far as it was kept, `lengthBytes` how long it is. */
  addLine(text: string, lengthBytes: number, wasCut: boolean, maxBytes: number): void {
    this.#isEmpty = false;
    const colon = text.indexOf(":");
    const name = colon === -1 ? text : text.slice(0, colon);
    const valueAt = colon === -1 ? text.length : text[colon + 1] === " " ? colon + 2 : colon + 1;
    if (wasCut) this.isCut = true;
    if (name === "data") this.#addData(text, valueAt, lengthBytes, maxBytes);
    else if (name === "") this.#keep(this.comments, text.slice(valueAt), lengthBytes, maxBytes);
    else if (!wasCut) this.#set(name, text.slice(valueAt));
  }

  #addData(text: string, valueAt: number, lengthBytes: number, maxBytes: number): void {
    // What stands before the value is ASCII: as many bytes as characters.
    const valueBytes = lengthBytes - valueAt;
    this.dataBytes += valueBytes + 1;
    this.#keep(this.data, text.slice(valueAt), valueBytes, maxBytes);
  }

  /** An empty value costs as well: millions of them must not be kept. */
  #keep(values: string[], value: string, valueBytes: number, maxBytes: number): void {
    const roomBytes = maxBytes - this.#keptBytes;
    if (valueBytes < roomBytes) {
      values.push(value);
      this.#keptBytes += valueBytes + 1;
      return;
    }
    this.isCut = true;
    this.#keptBytes = maxBytes;
    if (roomBytes > 0) values.push(startOf(value, roomBytes));
  }

  #set(name: string, value: string): void {
    if (name === "event") this.event = value;
    else if (name === "id" && !value.includes("\0")) this.id = value;
    else if (name === "retry" && isDigits(value)) this.retryMs = Number(value);
  }
}

function isDigits(value: string): boolean {
  return value.length <= MAX_RETRY_DIGITS && /^[0-9]+$/.test(value);
}

/** The first characters of a text that fit into so many bytes. */
function startOf(text: string, maxBytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.min(maxBytes, text.length * 3)));
  return text.slice(0, read);
}

/** Where the byte is next, or the end of the piece. */
function nextOf(piece: Buffer, byte: number, from: number): number {
  const found = piece.indexOf(byte, from);
  return found === -1 ? piece.length : found;
}
