import { isUtf8 } from "node:buffer";
import { closeCodeText } from "@headworks/http-fields";

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
