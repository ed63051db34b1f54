import { Buffer } from "node:buffer";

/** The encoding of a call's messages. */
export interface CallForm {
  /** `web`: gRPC-Web, with trailers as a message in the body. */
  readonly protocol: "grpc" | "web";
  /** gRPC-Web text: the whole body is base64. */
  readonly isText: boolean;
  /** Message format: `proto` unless the media type specifies another. */
  readonly format: string;
}

const MEDIA_TYPE = /^application\/grpc(-web(?:-text)?)?(?:\+([a-z0-9.+_-]{1,64}))?$/u;

/** Parses a Content-Type; undefined if not gRPC. */
export function parseCallForm(contentType: string | undefined): CallForm | undefined {
  if (contentType === undefined || contentType.length > 1024) return undefined;
  const [type = ""] = contentType.split(";", 1);
  const match = MEDIA_TYPE.exec(type.trim().toLowerCase());
  if (match === null) return undefined;
  const [, web, format = "proto"] = match;
  return { protocol: web === undefined ? "grpc" : "web", isText: web === "-web-text", format };
}

export interface CallPath {
  /** With package: `shop.v1.Orders`. */
  readonly service: string;
  readonly method: string;
}

/** Parses the last two segments of a path, since gRPC-Web servers may use a prefix. */
export function parseCallPath(path: string): CallPath | undefined {
  const end = path.search(/[?#]/u);
  const parts = (end === -1 ? path : path.slice(0, end)).split("/");
  const method = parts.at(-1) ?? "";
  const service = parts.at(-2) ?? "";
  return service === "" || method === "" ? undefined : { service, method };
}

const UNITS_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/**
 * Parses a `grpc-timeout` such as `100m` or `5S` to milliseconds: at most eight digits and a unit; undefined otherwise.
 */
export function parseTimeoutMs(text: string): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/u.exec(text);
  const unitMs = UNITS_MS[match?.[2] ?? ""];
  return match === null || unitMs === undefined ? undefined : Number(match[1]) * unitMs;
}

export interface CallStatus {
  /** Undefined if `grpc-status` is not a number. */
  readonly code: number | undefined;
  /** `grpc-message`, decoded; empty if absent. */
  readonly message: string;
  /** `grpc-status-details-bin`: an encoded google.rpc.Status. */
  readonly details: Buffer | undefined;
}

/** Reads the status from trailers or from the header of a trailers-only response; undefined if absent. */
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

/** Decodes `grpc-message`: invalid escapes stay as written, and invalid UTF-8 becomes U+FFFD. */
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

/** Parses a gRPC-Web trailer message, lines as in HTTP/1.1, to alternating names and values. */
export function readTrailerMessage(bytes: Buffer): string[] {
  const fields: string[] = [];
  for (const line of bytes.toString("latin1").split(/\r?\n/u)) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.push(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return fields;
}

/** The gRPC status for a non-gRPC HTTP response; UNKNOWN for unlisted statuses, 200 included. */
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
