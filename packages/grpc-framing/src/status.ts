import { Buffer } from "node:buffer";

/** What the end of a call says. */
export interface CallStatus {
  /** Undefined when `grpc-status` is no number. */
  readonly code: number | undefined;
  /** `grpc-message` without its percent encoding; empty when there is none. */
  readonly message: string;
  /** `grpc-status-details-bin`: a google.rpc.Status in protocol buffers. */
  readonly details: Buffer | undefined;
}

/** Reads the status from trailers, or from the head of an answer that has only trailers; undefined when there is none. */
export function readStatus(fields: readonly string[]): CallStatus | undefined {
  const code = valueOf(fields, "grpc-status");
  if (code === undefined) return undefined;
  const details = valueOf(fields, "grpc-status-details-bin");
  return {
    code: /^\d{1,9}$/u.test(code) ? Number(code) : undefined,
    message: decodePercent(valueOf(fields, "grpc-message") ?? ""),
    details: details === undefined ? undefined : Buffer.from(details, "base64"),
  };
}

/**
 * Undoes the percent encoding of `grpc-message`. As the protocol asks, nothing is refused: what is no encoding stays as
 * it stands, and octets that are no UTF-8 become U+FFFD.
 */
export function decodePercent(text: string): string {
  if (!text.includes("%")) return text;
  const octets: number[] = [];
  const bytes = Buffer.from(text, "utf8");
  for (let at = 0; at < bytes.length; at += 1) {
    const octet = bytes[at] ?? 0;
    const digits = octet === 0x25 ? bytes.toString("latin1", at + 1, at + 3) : "";
    if (/^[\da-fA-F]{2}$/u.test(digits)) {
      octets.push(Number.parseInt(digits, 16));
      at += 2;
    } else octets.push(octet);
  }
  return Buffer.from(octets).toString("utf8");
}

/** The fields of a trailer message of gRPC-Web: lines like those of HTTP/1.1, as name and value in turn. */
export function readTrailerMessage(bytes: Buffer): string[] {
  const fields: string[] = [];
  for (const line of bytes.toString("latin1").split(/\r?\n/u)) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.push(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return fields;
}

/**
 * What HTTP's status means for a call whose answer is no gRPC (gRPC's "HTTP to gRPC Status Code Mapping"): UNKNOWN for
 * whatever is not named there, 200 included.
 */
export function statusOfHttp(httpStatus: number): number {
  return HTTP_MEANINGS.get(httpStatus) ?? 2;
}

const HTTP_MEANINGS: ReadonlyMap<number, number> = new Map([
  [400, 13],
  [401, 16],
  [403, 7],
  [404, 12],
  [429, 14],
  [502, 14],
  [503, 14],
  [504, 14],
]);

function valueOf(fields: readonly string[], lowerName: string): string | undefined {
  for (let at = 0; at + 1 < fields.length; at += 2) {
    if (fields[at]?.toLowerCase() === lowerName) return fields[at + 1];
  }
  return undefined;
}
