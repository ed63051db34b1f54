import { hash, timingSafeEqual } from "node:crypto";

/** SHA-256 of a field value, one byte per character. */
export function digestOfWire(value: string): Buffer {
  return hash("sha256", Buffer.from(value, "latin1"), "buffer");
}

/** SHA-256 of a text, which clients send as UTF-8. */
export function digestOfText(text: string): Buffer {
  return hash("sha256", Buffer.from(text, "utf8"), "buffer");
}

/** The map key of a digest. */
export function selectorOf(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("latin1");
}

/** Constant-time comparison. */
export function isSameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
