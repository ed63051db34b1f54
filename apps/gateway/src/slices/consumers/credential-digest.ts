import { hash, timingSafeEqual } from "node:crypto";

/** SHA-256 of what a client sent: field values are bytes, one in each character. */
export function digestOfWire(value: string): Buffer {
  return hash("sha256", Buffer.from(value, "latin1"), "buffer");
}

/** SHA-256 of what a document says: text, which clients send as UTF-8. */
export function digestOfText(text: string): Buffer {
  return hash("sha256", Buffer.from(text, "utf8"), "buffer");
}

/** What a digest is looked up by. */
export function selectorOf(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("latin1");
}

/** Whether two digests are the same, in a time that does not tell where they differ. */
export function isSameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
