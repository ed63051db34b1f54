import { isUtf8 } from "node:buffer";

/** What a close frame says. */
export interface CloseFacts {
  /** undefined: it says none. */
  readonly code: number | undefined;
  readonly reason: string;
  /** Why the payload is not what RFC 6455, 5.5.1 and 7.4 ask for; undefined: it is. */
  readonly problem: string | undefined;
}

/** Longest payload of a control frame, less the code. */
const MOST_REASON_BYTES = 123;

/** Reads the payload of a close frame. */
export function readClose(payload: Buffer): CloseFacts {
  if (payload.length === 0) return { code: undefined, reason: "", problem: undefined };
  if (payload.length === 1) return { code: undefined, reason: "", problem: "A close frame has half a code" };
  const code = payload.readUInt16BE(0);
  const reason = payload.toString("utf8", 2);
  if (!isSendableCloseCode(code)) return { code, reason, problem: `The close code ${code} must not be sent` };
  if (!isUtf8(payload.subarray(2))) return { code, reason, problem: "The reason of a close frame is not UTF-8" };
  return { code, reason, problem: undefined };
}

/** Names of close codes (RFC 6455, 7.4.1, and the registry of WebSocket close codes). */
const CODE_NAMES: Readonly<Record<number, string>> = {
  1000: "Normal Closure",
  1001: "Going Away",
  1002: "Protocol Error",
  1003: "Unsupported Data",
  1005: "No Status Received",
  1006: "Abnormal Closure",
  1007: "Invalid Frame Payload Data",
  1008: "Policy Violation",
  1009: "Message Too Big",
  1010: "Mandatory Extension",
  1011: "Internal Error",
  1012: "Service Restart",
  1013: "Try Again Later",
  1014: "Bad Gateway",
  1015: "TLS Handshake",
  3000: "Unauthorized",
  3003: "Forbidden",
  3008: "Timeout",
};

/** A close frame in one line: `1000 Normal Closure: bye`; `no code` for an empty one. */
export function closeText(payload: Buffer): string {
  const { code, reason, problem } = readClose(payload);
  if (code === undefined) return problem === undefined ? "no code" : "half a code";
  const name = CODE_NAMES[code];
  return `${code}${name === undefined ? "" : ` ${name}`}${reason === "" ? "" : `: ${reason}`}`;
}

/** Codes that may be in a close frame: defined ones (RFC 6455, 7.4.1, and the registry), and 3000 to 4999. */
export function isSendableCloseCode(code: number): boolean {
  if (code >= 3000) return code <= 4999;
  return code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006;
}

/** The payload of a close frame; a longer reason is cut between characters. */
export function closePayload(code: number | undefined, reason: string): Buffer {
  if (code === undefined) return Buffer.alloc(0);
  let text = Buffer.from(reason);
  if (text.length > MOST_REASON_BYTES) {
    let end = MOST_REASON_BYTES;
    while (end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end -= 1;
    text = text.subarray(0, end);
  }
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(code, 0);
  payload.set(text, 2);
  return payload;
}
