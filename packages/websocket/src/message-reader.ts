import { isUtf8 } from "node:buffer";
import { closeCodeText } from "@headworks/http-fields";
import { isControl, OPCODES, type Violation, type WireFrame } from "./frames.ts";
import type { MessageInflater } from "./compression.ts";

/** Content of a close frame. */
export interface CloseFacts {
  /** Undefined if there is none. */
  readonly code: number | undefined;
  readonly reason: string;
  /** Violation of RFC 6455, 5.5.1 and 7.4; undefined for a valid payload. */
  readonly problem: string | undefined;
}

/** Longest payload of a control frame, less the code. */
const MAX_REASON_BYTES = 123;

export function readClose(payload: Buffer): CloseFacts {
  if (payload.length === 0) return { code: undefined, reason: "", problem: undefined };
  if (payload.length === 1) return { code: undefined, reason: "", problem: "A close frame has half a code" };
  const code = payload.readUInt16BE(0);
  const reason = payload.toString("utf8", 2);
  if (!isSendableCloseCode(code)) return { code, reason, problem: `The close code ${code} must not be sent` };
  if (!isUtf8(payload.subarray(2))) return { code, reason, problem: "The reason of a close frame is not UTF-8" };
  return { code, reason, problem: undefined };
}

/** A close frame in one line: `1000 Normal Closure: bye`; `no code` for an empty one. */
export function closeText(payload: Buffer): string {
  const { code, reason, problem } = readClose(payload);
  if (code === undefined) return problem === undefined ? "no code" : "half a code";
  return closeCodeText(code, reason);
}

/** Codes that a close frame may contain: defined ones (RFC 6455, 7.4.1, and the registry), and 3000 to 4999. */
export function isSendableCloseCode(code: number): boolean {
  if (code >= 3000) return code <= 4999;
  return code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006;
}

/** The payload of a close frame; a longer reason is cut at a character boundary. */
export function closePayload(code: number | undefined, reason: string): Buffer {
  if (code === undefined) return Buffer.alloc(0);
  let text = Buffer.from(reason);
  if (text.length > MAX_REASON_BYTES) {
    let end = MAX_REASON_BYTES;
    while (end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end -= 1;
    text = text.subarray(0, end);
  }
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(code, 0);
  payload.set(text, 2);
  return payload;
}

/** A whole message: its fragments joined and decompressed. */
export interface ReadMessage {
  readonly opcode: number;
  readonly payload: Buffer;
  /** The payload was larger than what is kept, and is cut. */
  readonly isCut: boolean;
  readonly isCompressed: boolean;
  /** Frames it came in. */
  readonly fragments: number;
}

/** A frame with what it means in its place. */
export interface ReadFrame {
  /** Readable bytes of this frame; those of a compressed message are all with its last frame. */
  readonly payload: Buffer;
  /** Bytes of the whole readable payload, of which `payload` may be a part. */
  readonly sizeBytes: number;
  readonly isCompressed: boolean;
  /** With the last frame of a message, and with each control frame. */
  readonly message: ReadMessage | undefined;
  readonly close: CloseFacts | undefined;
  /** A problem of the content; frames can still be read. */
  readonly problem: string | undefined;
}

export interface MessageReaderOptions {
  /** For a direction with permessage-deflate. */
  readonly inflater: MessageInflater | undefined;
  readonly keptBytes: number;
}

const EMPTY = Buffer.alloc(0);

/** Puts the frames of one direction together, RFC 6455, section 5.4. */
export class MessageReader {
  violation: Violation | undefined;
  readonly #options: MessageReaderOptions;
  #opcode = 0;
  #isCompressed = false;
  #isCut = false;
  #fragments = 0;
  #pieces: Buffer[] = [];
  #keptBytes = 0;
  #sizeBytes = 0;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
  }

  /** No message has begun that is not complete. */
  get isBetweenMessages(): boolean {
    return this.#fragments === 0;
  }

  /** Takes the next frame; undefined: it is a violation. */
  take(frame: WireFrame): ReadFrame | undefined {
    if (isControl(frame.opcode)) return readControl(frame);
    const isFirst = frame.opcode !== OPCODES.continuation;
    if (isFirst === this.#fragments > 0) {
      this.violation = isFirst ? MESSAGE_INSIDE : NO_START;
      return undefined;
    }
    const isCompressed = isFirst
      ? (frame.reserved & 4) !== 0 && this.#options.inflater !== undefined
      : this.#isCompressed;
    if (!isFirst && (frame.reserved & 4) !== 0 && this.#options.inflater !== undefined) {
      this.violation = COMPRESSED_INSIDE;
      return undefined;
    }
    if (isFirst && frame.isFinal && !isCompressed) return readWhole(frame);
    if (isFirst) {
      this.#opcode = frame.opcode;
      this.#isCompressed = isCompressed;
    }
    this.#add(frame);
    return frame.isFinal ? this.#finish(frame) : this.#fragment(frame);
  }

  #add(frame: WireFrame): void {
    this.#fragments += 1;
    this.#sizeBytes += frame.payloadBytes;
    const room = this.#options.keptBytes - this.#keptBytes;
    const piece = frame.payload.length > room ? frame.payload.subarray(0, Math.max(0, room)) : frame.payload;
    if (piece.length < frame.payloadBytes) this.#isCut = true;
    if (piece.length === 0) return;
    this.#keptBytes += piece.length;
    this.#pieces.push(piece);
  }

  #fragment(frame: WireFrame): ReadFrame {
    const isCompressed = this.#isCompressed;
    return {
      payload: isCompressed ? EMPTY : frame.payload,
      sizeBytes: isCompressed ? 0 : frame.payloadBytes,
      isCompressed,
      message: undefined,
      close: undefined,
      problem: undefined,
    };
  }

  #finish(frame: WireFrame): ReadFrame {
    const [only = EMPTY] = this.#pieces;
    const joined = this.#pieces.length > 1 ? Buffer.concat(this.#pieces) : only;
    const { payload, sizeBytes, isCut, problem } = this.#isCompressed
      ? this.#decompressed(joined)
      : { payload: joined, sizeBytes: this.#sizeBytes, isCut: this.#isCut, problem: undefined };
    const message: ReadMessage = {
      opcode: this.#opcode,
      payload,
      isCut,
      isCompressed: this.#isCompressed,
      fragments: this.#fragments,
    };
    const isCompressed = this.#isCompressed;
    this.#pieces = [];
    this.#keptBytes = 0;
    this.#sizeBytes = 0;
    this.#fragments = 0;
    this.#isCut = false;
    return {
      payload: isCompressed ? payload : frame.payload,
      sizeBytes: isCompressed ? sizeBytes : frame.payloadBytes,
      isCompressed,
      message,
      close: undefined,
      problem: problem ?? problemOfText(message),
    };
  }

  /** Content that cannot be decompressed is kept as received. */
  #decompressed(joined: Buffer): {
    payload: Buffer;
    sizeBytes: number;
    isCut: boolean;
    problem: string | undefined;
  } {
    const sizeBytes = this.#sizeBytes;
    const unread = { payload: joined, sizeBytes, isCut: true };
    if (this.#isCut) this.#options.inflater?.lose();
    const inflated = this.#isCut ? undefined : this.#options.inflater?.inflate(joined);
    switch (inflated?.kind) {
      case "message": {
        const { payload } = inflated;
        return { payload, sizeBytes: payload.length, isCut: false, problem: undefined };
      }
      case "invalid":
        return { ...unread, problem: inflated.message };
      default:
        return { ...unread, problem: "A compressed message is too large to be read" };
    }
  }
}

function readControl(frame: WireFrame): ReadFrame {
  const { payload } = frame;
  const close = frame.opcode === OPCODES.close ? readClose(payload) : undefined;
  const message = { opcode: frame.opcode, payload, isCut: false, isCompressed: false, fragments: 1 };
  return { payload, sizeBytes: payload.length, isCompressed: false, message, close, problem: close?.problem };
}

function readWhole(frame: WireFrame): ReadFrame {
  const { opcode, payload, payloadBytes } = frame;
  const isCut = payload.length < payloadBytes;
  const message = { opcode, payload, isCut, isCompressed: false, fragments: 1 };
  return {
    payload,
    sizeBytes: payloadBytes,
    isCompressed: false,
    message,
    close: undefined,
    problem: problemOfText(message),
  };
}

function problemOfText({ opcode, payload, isCut }: ReadMessage): string | undefined {
  return opcode !== OPCODES.text || isCut || isUtf8(payload) ? undefined : "A text message is not UTF-8";
}

const NO_START: Violation = {
  code: "continuation-without-start",
  message: "A continuation frame continues nothing",
  section: "5.4",
};

const MESSAGE_INSIDE: Violation = {
  code: "message-inside-message",
  message: "A message begins inside another one",
  section: "5.4",
};

const COMPRESSED_INSIDE: Violation = {
  code: "reserved-bits",
  message: "A frame inside a message says that it is compressed",
  section: "RFC 7692, 6.1",
};
