import { turnMs } from "@headworks/sockets";

const MAX_CHARACTERS = 128;
const PRINTABLE = /^[!-~]+$/;

const boot = process.hrtime.bigint();
const bootNs = BigInt(Date.now()) * 1_000_000n;
let counter = 0;
let secondPart = "";
let secondPartUntil = 0;

/**
 * A new id: `req-<16 hex digits: nanoseconds since 1970>-<6 hex digits: a counter>`, unique in this process. The time
 * has millisecond resolution.
 */
export function newRequestId(): string {
  const nowMs = turnMs();
  if (nowMs >= secondPartUntil) {
    secondPartUntil = Math.floor(nowMs) + 1;
    secondPart = `req-${(bootNs + process.hrtime.bigint() - boot).toString(16).padStart(16, "0")}-`;
  }
  counter = (counter + 1) & 0xff_ffff;
  return secondPart + (counter + 0x100_0000).toString(16).slice(1);
}

/** The client's request or correlation id, if acceptable: printable ASCII without spaces, at most 128 characters. */
export function acceptableRequestId(sent: string | undefined): string | undefined {
  if (sent === undefined || sent.length > MAX_CHARACTERS || !PRINTABLE.test(sent)) return undefined;
  return sent;
}

/** The request id of both planes: the client's if acceptable, else a new one. */
export function requestIdFor(sent: string | undefined): string {
  return acceptableRequestId(sent) ?? newRequestId();
}
