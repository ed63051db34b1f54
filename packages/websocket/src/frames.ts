/** RFC 6455, section 11.8. */
export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export type OpcodeName = keyof typeof OPCODES;

const NAMES: readonly (OpcodeName | undefined)[] = [
  "continuation",
  "text",
  "binary",
  undefined,
  undefined,
  undefined,
  undefined,
  undefined,
  "close",
  "ping",
  "pong",
];

/** The name of a defined opcode; undefined for reserved ones. */
export function opcodeName(opcode: number): OpcodeName | undefined {
  return NAMES[opcode];
}

/** Close, ping, pong, and the reserved ones beside them. */
export function isControl(opcode: number): boolean {
  return opcode >= 8;
}

/**
 * Applies a masking key (RFC 6455, 5.3) to bytes in place; doing it twice undoes it.
 *
 * @param mask  the key as a number, first octet highest
 * @param position  of the first byte in its payload
 */
function applyMask(bytes: Uint8Array, mask: number, position: number): void {
  const turned = rotate(mask, position & 3);
  const octets = [turned >>> 24, (turned >>> 16) & 0xff, (turned >>> 8) & 0xff, turned & 0xff] as const;
  const [first, second, third, fourth] = octets;
  const whole = bytes.length & ~3;
  for (let at = 0; at < whole; at += 4) {
    bytes[at] = (bytes[at] as number) ^ first;
    bytes[at + 1] = (bytes[at + 1] as number) ^ second;
    bytes[at + 2] = (bytes[at + 2] as number) ^ third;
    bytes[at + 3] = (bytes[at + 3] as number) ^ fourth;
  }
  for (let at = whole; at < bytes.length; at += 1) bytes[at] = (bytes[at] as number) ^ (octets[at & 3] as number);
}

function rotate(mask: number, octets: number): number {
  return octets === 0 ? mask : (mask << (octets * 8)) | (mask >>> (32 - octets * 8));
}

/** One frame as it came, RFC 6455, section 5.2. */
export interface WireFrame {
  readonly isFinal: boolean;
  /** RSV1 is 4, RSV2 is 2, RSV3 is 1. */
  readonly reserved: number;
  readonly opcode: number;
  /** The masking key as a number, first octet highest; undefined: not masked. */
  readonly mask: number | undefined;
  /** Unmasked, as far as it was kept; it may share memory with what was read. */
  readonly payload: Buffer;
  readonly payloadBytes: number;
  /** Length of head and payload. */
  readonly wireBytes: number;
}

/** A violation of RFC 6455 by a peer; `section` forbids it. */
export interface Violation {
  readonly code:
    | "reserved-bits"
    | "reserved-opcode"
    | "fragmented-control"
    | "long-control"
    | "length-not-minimal"
    | "length-too-large"
    | "mask-missing"
    | "mask-unexpected"
    | "continuation-without-start"
    | "message-inside-message";
  readonly message: string;
  readonly section: string;
}

export interface FrameReaderOptions {
  /** Whether frames must be masked: those of a client must, those of a server must not. */
  readonly isMasked: boolean;
  /** Bits that a negotiated extension gives a meaning to, as in {@link WireFrame.reserved}. */
  readonly allowedReserved: number;
  /** Bytes of one payload that are kept. */
  readonly keptBytes: number;
}

const HEAD_BYTES = 2;
const EMPTY = Buffer.alloc(0);

/**
 * Reads frames from bytes that come cut anywhere. Nothing is thrown for hostile bytes: the first violation ends reading,
 * and it stays at its place. Memory is bounded by the bytes kept of one payload.
 */
export class FrameReader {
  /** The frame that the last `read` completed. */
  frame: WireFrame | undefined;
  violation: Violation | undefined;
  readonly #options: FrameReaderOptions;
  readonly #head = Buffer.alloc(14);
  #headBytes = 0;
  #neededHeadBytes = HEAD_BYTES;
  #isHeadRead = false;
  #mask: number | undefined;
  #payloadBytes = 0;
  #readBytes = 0;
  #keptBytes = 0;
  #pieces: Buffer[] = [];

  constructor(options: FrameReaderOptions) {
    this.#options = options;
  }

  /** No frame has begun that is not complete. */
  get isBetweenFrames(): boolean {
    return this.#headBytes === 0;
  }

  /** Reads until a frame is complete or the bytes are used; returns the index behind. */
  read(chunk: Buffer, from: number): number {
    this.frame = undefined;
    if (this.violation !== undefined) return from;
    let at = from;
    while (!this.#isHeadRead) {
      if (at >= chunk.length) return at;
      const taken = Math.min(this.#neededHeadBytes - this.#headBytes, chunk.length - at);
      chunk.copy(this.#head, this.#headBytes, at, at + taken);
      this.#headBytes += taken;
      at += taken;
      if (this.#headBytes < this.#neededHeadBytes) return at;
      this.#readHead();
      if (this.violation !== undefined) return at;
    }
    const end = Math.min(chunk.length, at + this.#payloadBytes - this.#readBytes);
    if (end > at) this.#keep(chunk, at, end);
    if (this.#readBytes === this.#payloadBytes) this.#complete();
    return end;
  }

  /** Called when the needed bytes of the head are there: it may turn out to be longer. */
  #readHead(): void {
    const head = this.#head;
    const second = head[1] as number;
    const short = second & 0x7f;
    const isMasked = (second & 0x80) !== 0;
    const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
    const needed = HEAD_BYTES + lengthBytes + (isMasked ? 4 : 0);
    if (this.#headBytes === HEAD_BYTES) {
      this.violation = this.#problemOfBits(head[0] as number, short, isMasked);
      this.#neededHeadBytes = needed;
      if (needed > HEAD_BYTES || this.violation !== undefined) return;
    }
    if (lengthBytes === 2) {
      this.#payloadBytes = head.readUInt16BE(2);
      if (this.#payloadBytes < 126) this.violation = NOT_MINIMAL;
    } else if (lengthBytes === 8) {
      const high = head.readUInt32BE(2);
      this.#payloadBytes = high * 4_294_967_296 + head.readUInt32BE(6);
      if (high > 0x1f_ffff) this.violation = TOO_LARGE;
      else if (this.#payloadBytes < 65_536) this.violation = NOT_MINIMAL;
    } else {
      this.#payloadBytes = short;
    }
    this.#mask = isMasked ? head.readUInt32BE(needed - 4) : undefined;
    this.#isHeadRead = true;
  }

  #problemOfBits(first: number, short: number, isMasked: boolean): Violation | undefined {
    const opcode = first & 0x0f;
    const reserved = (first >> 4) & 0x07;
    if (opcodeName(opcode) === undefined) {
      return { code: "reserved-opcode", message: `The opcode ${opcode} is reserved`, section: "5.2" };
    }
    // Extensions give bits of data frames a meaning; RFC 7692, 6.1 forbids the bit on control frames.
    if ((reserved & ~(isControl(opcode) ? 0 : this.#options.allowedReserved)) !== 0) {
      return {
        code: "reserved-bits",
        message: "A reserved bit is set that no extension gives a meaning",
        section: "5.2",
      };
    }
    if (isControl(opcode) && (first & 0x80) === 0) {
      return { code: "fragmented-control", message: "A control frame is fragmented", section: "5.5" };
    }
    if (isControl(opcode) && short > 125) {
      return { code: "long-control", message: "A control frame has more than 125 bytes", section: "5.5" };
    }
    if (isMasked === this.#options.isMasked) return undefined;
    return isMasked
      ? { code: "mask-unexpected", message: "A frame of a server is masked", section: "5.1" }
      : { code: "mask-missing", message: "A frame of a client is not masked", section: "5.1" };
  }

  #keep(chunk: Buffer, from: number, end: number): void {
    const room = this.#options.keptBytes - this.#keptBytes;
    const position = this.#readBytes;
    this.#readBytes += end - from;
    if (room <= 0) return;
    let piece = chunk.subarray(from, Math.min(end, from + room));
    if (this.#mask !== undefined) {
      // The bytes themselves are on their way to the other side.
      piece = Buffer.from(piece);
      applyMask(piece, this.#mask, position);
    }
    this.#keptBytes += piece.length;
    this.#pieces.push(piece);
  }

  #complete(): void {
    const first = this.#head[0] as number;
    const [piece = EMPTY] = this.#pieces;
    this.frame = {
      isFinal: (first & 0x80) !== 0,
      reserved: (first >> 4) & 0x07,
      opcode: first & 0x0f,
      mask: this.#mask,
      payload: this.#pieces.length > 1 ? Buffer.concat(this.#pieces) : piece,
      payloadBytes: this.#payloadBytes,
      wireBytes: this.#headBytes + this.#payloadBytes,
    };
    this.#headBytes = 0;
    this.#neededHeadBytes = HEAD_BYTES;
    this.#isHeadRead = false;
    this.#mask = undefined;
    this.#payloadBytes = 0;
    this.#readBytes = 0;
    this.#keptBytes = 0;
    if (this.#pieces.length > 0) this.#pieces = [];
  }
}

const NOT_MINIMAL: Violation = {
  code: "length-not-minimal",
  message: "A length is written with more bytes than it needs",
  section: "5.2",
};

const TOO_LARGE: Violation = {
  code: "length-too-large",
  message: "A length is larger than any that can be carried",
  section: "5.2",
};

/** A frame to be written. */
export interface OutgoingFrame {
  readonly opcode: number;
  readonly payload: Uint8Array;
  /** Default: true. */
  readonly isFinal?: boolean;
  /** RSV1 is 4, RSV2 is 2, RSV3 is 1. */
  readonly reserved?: number;
  /** The masking key as a number, first octet highest; unpredictable for clients (RFC 6455, 10.3). */
  readonly mask?: number | undefined;
}

/** The bytes of a frame, RFC 6455, section 5.2; the payload given is not changed. */
export function frameBytes(frame: OutgoingFrame): Buffer {
  const { opcode, payload, isFinal = true, reserved = 0, mask } = frame;
  const length = payload.length;
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const headBytes = 2 + lengthBytes + (mask === undefined ? 0 : 4);
  const bytes = Buffer.allocUnsafe(headBytes + length);
  bytes[0] = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode;
  bytes[1] = (mask === undefined ? 0 : 0x80) | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) bytes.writeUInt16BE(length, 2);
  if (lengthBytes === 8) bytes.writeBigUInt64BE(BigInt(length), 2);
  bytes.set(payload, headBytes);
  if (mask === undefined) return bytes;
  bytes.writeUInt32BE(mask >>> 0, headBytes - 4);
  applyMask(bytes.subarray(headBytes), mask, 0);
  return bytes;
}
