import { Buffer } from "node:buffer";
import { parseMediaType } from "./media-type.ts";

/** Encodes a text in one charset; undefined for a text with unsupported characters. */
type Encode = (text: string) => Buffer | undefined;

const encoders = new Map<string, Encode | undefined>();

/**
 * Text as bytes of `charset` (a WHATWG Encoding name as in `decodeText`); undefined if the charset cannot be encoded,
 * or not with this text. Platforms only decode legacy charsets, so their tables are inverted when first needed.
 */
export function encodeText(text: string, charset: string): Buffer | undefined {
  if (!encoders.has(charset)) encoders.set(charset, encoderOf(charset));
  return encoders.get(charset)?.(text);
}

/** The WHATWG name of the charset of a Content-Type; undefined for none or an unknown one. */
export function declaredCharset(contentType: string | undefined): string | undefined {
  const label = parseMediaType(contentType)?.charset;
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

/**
 * Encodes text without original bytes in the charset of its Content-Type, which readers use; in UTF-8 if there is
 * none, or if it cannot represent the text.
 */
export function encodeAsDeclared(text: string, contentType: string | undefined): Buffer {
  const charset = declaredCharset(contentType);
  return (charset === undefined ? undefined : encodeText(text, charset)) ?? Buffer.from(text, "utf8");
}

/** Charsets with switching sequences, which no table can represent. */
const STATEFUL = new Set(["iso-2022-jp", "replacement", "x-user-defined"]);

function encoderOf(charset: string): Encode | undefined {
  if (charset === "utf-8") return (text) => Buffer.from(text, "utf8");
  if (charset === "utf-16le") return (text) => Buffer.from(text, "utf16le");
  if (charset === "utf-16be") return (text) => Buffer.from(text, "utf16le").swap16();
  if (STATEFUL.has(charset)) return undefined;
  const table = reversedTable(charset);
  return table && ((text) => encodeBy(table, text));
}

/** Code points and their octets, as numbers. Sequences of up to three octets; four exist only in gb18030. */
function reversedTable(charset: string): ReadonlyMap<number, number> | undefined {
  const decode = strictDecoder(charset);
  if (decode === undefined) return undefined;
  const table = new Map<number, number>();
  const add = (octets: readonly number[]): boolean => {
    const text = decode(Uint8Array.from(octets));
    const point = text?.codePointAt(0);
    if (text === undefined || point === undefined) return false;
    if (text.length !== (point > 0xffff ? 2 : 1)) return true;
    const code = octets.reduce((sum, octet) => sum * 256 + octet, 0);
    if (!table.has(point)) table.set(point, code);
    return true;
  };
  const leads: number[] = [];
  for (let octet = 0; octet < 256; octet += 1) if (!add([octet])) leads.push(octet);
  for (const lead of leads) for (let trail = 0x30; trail < 256; trail += 1) add([lead, trail]);
  // The supplementary table of EUC-JP has its own prefix.
  if (charset === "euc-jp") {
    for (let row = 0xa1; row < 0xff; row += 1) for (let cell = 0xa1; cell < 0xff; cell += 1) add([0x8f, row, cell]);
  }
  return table;
}

function strictDecoder(charset: string): ((bytes: Uint8Array) => string | undefined) | undefined {
  try {
    const decoder = new TextDecoder(charset, { fatal: true, ignoreBOM: true });
    return (bytes) => {
      try {
        return decoder.decode(bytes);
      } catch {
        return undefined;
      }
    };
  } catch {
    return undefined;
  }
}

function encodeBy(table: ReadonlyMap<number, number>, text: string): Buffer | undefined {
  const bytes = Buffer.allocUnsafe(text.length * 3);
  let at = 0;
  for (const character of text) {
    const code = table.get(character.codePointAt(0) ?? 0);
    if (code === undefined) return undefined;
    if (code > 0xffff) bytes[at++] = code >> 16;
    if (code > 0xff) bytes[at++] = (code >> 8) & 0xff;
    bytes[at++] = code & 0xff;
  }
  return bytes.subarray(0, at);
}
