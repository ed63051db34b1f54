import { readJson } from "@headworks/json";
import { unicodeIssue } from "@headworks/contract-kit/server";
import { ApiError, validationError } from "#api/api-error.ts";

/** A JSON object of unknown members. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The value as an object. Throws 400 naming the place. */
export function objectAt(value: unknown, path: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw validationError([{ path, message: "must be an object" }]);
  }
  return value as JsonObject;
}

/** A name inside a JSON pointer (RFC 6901 section 3). */
export function pointerName(name: string): string {
  return name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1");
}

/**
 * Reads an uploaded JSON document whole. Throws 413 above the limit, 400 for what is not UTF-8 or not JSON.
 */
export async function readJsonUpload(pieces: AsyncIterable<Uint8Array>, limitBytes: number): Promise<unknown> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let sizeBytes = 0;
  try {
    for await (const piece of pieces) {
      sizeBytes += piece.length;
      if (sizeBytes > limitBytes) {
        throw new ApiError("PAYLOAD_TOO_LARGE", `The body is larger than ${limitBytes} bytes`);
      }
      text += decoder.decode(piece, { stream: true });
    }
    text += decoder.decode();
  } catch (cause) {
    // What the decoder throws is a TypeError; broken connections are reported as they are.
    if (!(cause instanceof TypeError)) throw cause;
    throw new ApiError("BAD_REQUEST", "The body is not valid UTF-8", { cause });
  }
  return parseJsonText(text, "The body", "body");
}

/**
 * Parses JSON from outside, numbers with their digits; `what` begins the sentence of the refusal, and `at` the place of a text with half of a surrogate
 * pair, which is refused, too.
 */
export function parseJsonText(text: string, what: string, at: string): unknown {
  let value: unknown;
  try {
    value = readJson(text);
  } catch (cause) {
    const position = /at position \d+/.exec((cause as SyntaxError).message)?.[0];
    const message = `${what} is not valid JSON${position === undefined ? "" : ` (${position})`}`;
    throw new ApiError("BAD_REQUEST", message, { cause });
  }
  const issue = unicodeIssue(text, value, at);
  if (issue !== undefined) throw validationError([issue]);
  return value;
}
