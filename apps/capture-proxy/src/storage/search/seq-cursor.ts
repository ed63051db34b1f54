/** base64url makes the number opaque. */
export function cursorOfSeq(seq: number): string {
  return Buffer.from(JSON.stringify({ s: seq })).toString("base64url");
}

class CursorError extends Error {
  override readonly name = "CursorError";
}

/** Throws for an invalid cursor. */
export function seqOfCursor(cursor: string): number {
  try {
    const parsedCursor: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (typeof parsedCursor === "object" && parsedCursor !== null && "s" in parsedCursor) {
      const { s } = parsedCursor;
      if (typeof s === "number" && Number.isSafeInteger(s) && s >= 0) return s;
    }
  } catch {
    // Not JSON: rejected below.
  }
  throw new CursorError("cursor: this is no cursor of this service");
}
