import { applyMask } from "./mask.ts";

/** A frame to be written. */
export interface OutgoingFrame {
  readonly opcode: number;
  readonly payload: Uint8Array;
  /** Default: true. */
  readonly isFinal?: boolean;
  /** RSV1 is 4, RSV2 is 2, RSV3 is 1. */
  readonly reserved?: number;
  /** The masking key as a number, first octet highest; a client must give one that nobody can foresee (RFC 6455, 10.3). */
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
