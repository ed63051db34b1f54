import { readJson } from "@headworks/json";
import { unicodeIssue } from "@headworks/contract-kit/server";
import { ApiError, validationError } from "./api-error.ts";

/** Maximum size of JSON bodies; uploads have no limit. */
const JSON_BODY_LIMIT_BYTES = 10 * 1024 * 1024;

export interface RequestBody extends AsyncIterable<Uint8Array> {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Whether the message announces a body; one of length 0 counts as none. */
export function announcesBody(source: RequestBody): boolean {
  if (source.headers["transfer-encoding"] !== undefined) return true;
  const length = source.headers["content-length"];
  return length !== undefined && length !== "0";
}

/** The media type in lower case, without parameters. */
export function mediaType(source: RequestBody): string | undefined {
  return text(source.headers["content-type"])?.split(";", 1)[0]?.trim().toLowerCase();
}

/**
 * Reads and parses a JSON body, preserving the digits of numbers; undefined without a body.
 * @throws ApiError 415 for another media type or coding, 413 above the limit, 400 for invalid UTF-8 or JSON, or for lone
 * surrogates
 */
export async function readJsonBody(source: RequestBody, limitBytes: number = JSON_BODY_LIMIT_BYTES): Promise<unknown> {
  if (!announcesBody(source)) return undefined;
  if (Number(source.headers["content-length"] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  refuseForeignBody(source);
  for await (const piece of source) {
    sizeBytes += piece.length;
    if (sizeBytes > limitBytes) throw tooLarge(limitBytes);
    pieces.push(piece);
  }
  return sizeBytes === 0 ? undefined : parseJson(Buffer.concat(pieces, sizeBytes));
}

/** Throws 415 unless the body is JSON: other sites' pages can send forms and text without a preflight. */
function refuseForeignBody(source: RequestBody): void {
  const type = mediaType(source);
  if (type === undefined || !/^application\/(?:[\w.+-]+\+)?json$/.test(type)) {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "The body must be application/json");
  }
  refuseCoding(source);
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(text(source.headers["content-type"]) ?? "")?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "The body must be UTF-8");
  }
}

/** Throws 415 for a compressed body, whose size does not limit its content. */
export function refuseCoding(source: RequestBody): void {
  const coding = text(source.headers["content-encoding"]);
  if (coding !== undefined && coding.trim().toLowerCase() !== "identity") {
    throw new ApiError("UNSUPPORTED_MEDIA_TYPE", "The body must not be compressed");
  }
}

function parseJson(bytes: Buffer): unknown {
  let decoded: string;
  try {
    decoded = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new ApiError("BAD_REQUEST", "The body is not valid UTF-8", { cause });
  }
  let value: unknown;
  try {
    value = readJson(decoded);
  } catch (cause) {
    const position = /at position \d+/.exec((cause as SyntaxError).message)?.[0];
    throw new ApiError("BAD_REQUEST", `The body is not valid JSON${position === undefined ? "" : ` (${position})`}`, {
      cause,
    });
  }
  const issue = unicodeIssue(decoded, value, "body");
  if (issue !== undefined) throw validationError([issue]);
  return value;
}

function tooLarge(limitBytes: number): ApiError {
  return new ApiError("PAYLOAD_TOO_LARGE", `The body is larger than ${limitBytes} bytes`);
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}
