const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Bytes of one row: two groups of eight, or one where there is no room for two. */
export type HexRowBytes = 8 | 16;

export interface HexRow {
  readonly offset: number;
  /** Two digits a byte in groups of eight. */
  readonly hex: string;
  /** Printable ASCII; a dot for the rest. */
  readonly ascii: string;
}

/** Rows for bytes that begin at `offset` of the body (a multiple of `rowBytes`). */
export function hexRows(bytes: Uint8Array, offset: number, rowBytes: HexRowBytes): HexRow[] {
  const rows: HexRow[] = [];
  for (let at = 0; at < bytes.length; at += rowBytes) {
    const part = bytes.subarray(at, at + rowBytes);
    const hex = Array.from(part, (byte) => DIGITS[byte] ?? "");
    rows.push({
      offset: offset + at,
      hex: `${hex.slice(0, 8).join(" ")}  ${hex.slice(8).join(" ")}`.trimEnd(),
      ascii: String.fromCharCode(...part).replaceAll(/[^\x20-\x7e]/gu, "·"),
    });
  }
  return rows;
}

/** Digits that the offsets of a body need: at least six. */
export function offsetDigits(size: number): number {
  return Math.max(6, Math.max(0, size - 1).toString(16).length);
}
