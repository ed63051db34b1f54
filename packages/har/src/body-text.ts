import { isUtf8 } from "node:buffer";
import { isBase64Text, NOT_BASE64 } from "./base64-check.ts";
import type { HarText } from "./har.ts";
import { LARGE_TEXT_BYTES, LargeBody } from "./large-text.ts";

/** Bytes in HAR: text or base64. */
export interface BodyText {
  readonly text: string;
  readonly isBase64: boolean;
}

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Text if the bytes are valid UTF-8 and the media type names no other charset, so that encoding as UTF-8 restores them;
 * otherwise base64.
 */
export function bodyText(bytes: Uint8Array, contentType: string): BodyText {
  if (mayBeUtf8(contentType)) {
    try {
      return { text: STRICT.decode(bytes), isBase64: false };
    } catch {
      // Not UTF-8: use base64.
    }
  }
  return { text: toBase64(bytes), isBase64: true };
}

/** Like `bodyText`; the text of a large body is produced when written. */
export function bodyHarText(bytes: Uint8Array, contentType: string): { text: HarText; isBase64: boolean } {
  if (bytes.length < LARGE_TEXT_BYTES) return bodyText(bytes, contentType);
  const isBase64 = !mayBeUtf8(contentType) || !isUtf8(bytes);
  return { text: new LargeBody(bytes, isBase64), isBase64 };
}

function mayBeUtf8(contentType: string): boolean {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1]?.toLowerCase();
  return charset === undefined || charset === "utf-8" || charset === "utf8" || charset === "us-ascii";
}

/** Inverse of `bodyText`. Throws a sentence for invalid base64. */
export function bodyBytes(body: BodyText): Uint8Array {
  return body.isBase64 ? fromBase64(body.text) : new TextEncoder().encode(body.text);
}

/** Base64 of the bytes, produced when written if large. */
export function base64HarText(bytes: Uint8Array): HarText {
  return bytes.length < LARGE_TEXT_BYTES ? toBase64(bytes) : new LargeBody(bytes, true);
}

/** Standard base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Copies short results, which would keep Buffer's pool alive. */
function fromBase64(text: string): Uint8Array {
  if (!isBase64Text(text)) throw new Error(NOT_BASE64);
  const bytes = Buffer.from(text, "base64");
  const isAlone = bytes.length === bytes.buffer.byteLength;
  return isAlone ? new Uint8Array(bytes.buffer) : new Uint8Array(bytes);
}
