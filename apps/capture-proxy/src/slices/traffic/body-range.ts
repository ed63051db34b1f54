/** A part of a body: `end` exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a Range field (RFC 9110 section 14.2) for a body of `totalBytes`. Undefined: there is none, it has another
 * unit, several parts or bad syntax, or there is nothing to take a part of, and the whole body is to be sent. "outside": no byte
 * of it exists.
 */
export function parseRange(field: string | undefined, totalBytes: number): ByteRange | "outside" | undefined {
  const match = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/iu.exec(field ?? "");
  const [, first = "", last = ""] = match ?? [];
  if (match === null || totalBytes === 0 || (first === "" && last === "")) return undefined;
  if (first === "") {
    const suffixBytes = Number(last);
    return suffixBytes === 0 ? "outside" : { start: Math.max(0, totalBytes - suffixBytes), end: totalBytes };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  return start >= totalBytes
    ? "outside"
    : { start, end: last === "" ? totalBytes : Math.min(totalBytes, Number(last) + 1) };
}
