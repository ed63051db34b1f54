const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Bytes per row: two groups of eight, or one in narrow panes. */
export type HexRowBytes = 8 | 16;

export interface HexRow {
  readonly offset: number;
  /** Two digits per byte in groups of eight. */
  readonly hex: string;
  /** Printable ASCII; dots for other bytes. */
  readonly ascii: string;
}

/** Rows of bytes that start at `offset` of the body (a multiple of `rowBytes`). */
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

/** Digits needed for offsets of the body: at least six. */
export function offsetDigits(size: number): number {
  return Math.max(6, Math.max(0, size - 1).toString(16).length);
}
