// Tested by exchange.test.ts
/** Bytes as HAR can hold them: text, or text that is base64. */
export interface BodyText {
  readonly text: string;
  readonly isBase64: boolean;
}

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Text when the bytes are valid UTF-8 and the media type does not name another charset, so that encoding the text as
 * UTF-8 gives the same bytes again; base64 otherwise.
 */
export function bodyText(bytes: Uint8Array, contentType: string): BodyText {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1]?.toLowerCase();
  if (charset === undefined || charset === "utf-8" || charset === "utf8" || charset === "us-ascii") {
    try {
      return { text: STRICT.decode(bytes), isBase64: false };
    } catch {
      // Not UTF-8 after all.
    }
  }
  return { text: toBase64(bytes), isBase64: true };
}

/** The bytes that `bodyText` was made of. Characters that are not base64 are passed over. */
export function bodyBytes(body: BodyText): Uint8Array {
  return body.isBase64 ? fromBase64(body.text) : new TextEncoder().encode(body.text);
}

/** Standard base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Bytes of base64 text. Short ones lie in a pool that they must not keep alive; long ones are not copied. */
export function fromBase64(text: string): Uint8Array {
  const bytes = Buffer.from(text, "base64");
  const isAlone = bytes.length === bytes.buffer.byteLength;
  return isAlone ? new Uint8Array(bytes.buffer) : new Uint8Array(bytes);
}
