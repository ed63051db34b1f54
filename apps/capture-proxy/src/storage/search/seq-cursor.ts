/** Cursors are the number of the last entry shown, in base64url so that nobody counts on it. */
export function cursorOfSeq(seq: number): string {
  return Buffer.from(JSON.stringify({ s: seq })).toString("base64url");
}

/** A cursor from elsewhere. */
class CursorError extends Error {
  override readonly name = "CursorError";
}

/** The number in a cursor. Throws a sentence for what is none. */
export function seqOfCursor(cursor: string): number {
  try {
    const parsedCursor: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (typeof parsedCursor === "object" && parsedCursor !== null && "s" in parsedCursor) {
      const { s } = parsedCursor;
      if (typeof s === "number" && Number.isSafeInteger(s) && s >= 0) return s;
    }
  } catch {
    // Not JSON: refused below.
  }
  throw new CursorError("cursor: this is no cursor of this service");
}
