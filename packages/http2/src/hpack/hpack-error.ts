/** A field block that cannot be decoded: COMPRESSION_ERROR of its connection (RFC 9113, 4.3). */
export class HpackError extends Error {
  override readonly name = "HpackError";
}
