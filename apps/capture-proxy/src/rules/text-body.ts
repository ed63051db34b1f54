import { isUtf8 } from "node:buffer";
import { isTextual, parseMediaType } from "@headworks/http-fields";
import { declaredCharset, decodeText, encodeText } from "@headworks/http-fields/content-coding";

/** Invalid octets are mapped to lone surrogates from here on, which valid text never contains. */
const ESCAPE = 0xdc00;
const ESCAPED = /[\udc80-\udcff]/;
const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isTrail = (octet: number): boolean => (octet & 0xc0) === 0x80;

/** A body as text that encodes to exactly the same bytes. */
export interface TextBody {
  readonly text: string;
  /** Name of the charset; `octets` is UTF-8 with invalid octets in between. */
  readonly charset: string;
  /** The byte order mark of the original. */
  readonly mark: Buffer;
}

const NO_MARK = Buffer.alloc(0);
const MARKS: Readonly<Record<string, Buffer>> = {
  "utf-8": Buffer.of(0xef, 0xbb, 0xbf),
  "utf-16le": Buffer.of(0xff, 0xfe),
  "utf-16be": Buffer.of(0xfe, 0xff),
};

/** Types that are never edited as text. */
const MEDIA = new Set(["image", "audio", "video", "font"]);

/**
 * Decodes a body without content coding; undefined for images, audio and the like. Bodies of other types that are
 * invalid in their charset, such as forms with files, become text with escaped octets.
 */
export function readTextBody(bytes: Buffer, contentType: string | undefined): TextBody | undefined {
  const mediaType = parseMediaType(contentType);
  const isText = isTextual(mediaType);
  if (mediaType !== undefined && MEDIA.has(mediaType.type) && !isText) return undefined;
  const { text, charset, source, isDamaged } = decodeText(bytes, mediaType);
  const mark = source === "bom" ? (MARKS[charset] ?? NO_MARK) : NO_MARK;
  // A body that only counts as Latin-1 because it is invalid UTF-8 is most likely binary.
  const isGuess = source === "assumed" && charset !== "utf-8" && !isText;
  if (!isDamaged && !isGuess && isExact(text, charset, bytes.subarray(mark.length))) return { text, charset, mark };
  return { text: decodeOctets(bytes), charset: "octets", mark: NO_MARK };
}

/** True when ASCII words can be searched in the raw bytes of this charset. */
export function hasPlainAscii(bytes: Buffer, contentType: string | undefined): boolean {
  const mediaType = parseMediaType(contentType);
  if (mediaType !== undefined && MEDIA.has(mediaType.type) && !isTextual(mediaType)) return false;
  const [first, second] = bytes;
  const isUtf16 = (first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe);
  if (isUtf16) return false;
  const charset = declaredCharset(contentType);
  // ISO-2022-JP, which a document may declare itself, uses ASCII octets after escapes.
  return charset === undefined
    ? isUtf8(bytes) && !bytes.includes(0x1b)
    : /^(?:utf-8|windows-125\d|iso-8859-\d+|koi8-[ru])$/.test(charset);
}

function isExact(text: string, charset: string, bytes: Buffer): boolean {
  // An incomplete last character is missing in the text; nothing else can be lost with UTF-8.
  if (charset === "utf-8") return Buffer.byteLength(text, "utf8") === bytes.length;
  // Some legacy charsets have two encodings for a character.
  return encodeText(text, charset)?.equals(bytes) === true;
}

/** The encoded text, and its charset when it changed. */
export function writeTextBody(text: string, { charset, mark }: TextBody): { bytes: Buffer; newCharset?: string } {
  if (charset === "octets") return { bytes: encodeOctets(text) };
  const encoded = encodeText(text, charset);
  if (encoded === undefined) return { bytes: Buffer.from(text, "utf8"), newCharset: "utf-8" };
  return { bytes: mark.length === 0 ? encoded : Buffer.concat([mark, encoded]) };
}

/** Returns the Content-Type with this charset and otherwise unchanged. */
export function withCharset(contentType: string, charset: string): string {
  const declared = /;\s*charset\s*=\s*(?:"[^"]*"|[^;\s]*)/i;
  return declared.test(contentType)
    ? contentType.replace(declared, `; charset=${charset}`)
    : `${contentType}; charset=${charset}`;
}

/** Decodes UTF-8 with invalid octets as lone surrogates, so that {@link encodeOctets} is exact. */
export function decodeOctets(bytes: Buffer): string {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes, at);
    if (length > 0) {
      at += length;
      continue;
    }
    pieces.push(bytes.toString("utf8", from, at), String.fromCharCode(ESCAPE + (bytes[at] ?? 0)));
    at += 1;
    from = at;
  }
  pieces.push(bytes.toString("utf8", from));
  return pieces.join("");
}

/** The inverse of {@link decodeOctets}. Other lone surrogates become U+FFFD. */
export function encodeOctets(text: string): Buffer {
  if (!ESCAPED.test(text)) return Buffer.from(text, "utf8");
  const pieces: Buffer[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < ESCAPE + 0x80 || unit > ESCAPE + 0xff || isHigh(text.charCodeAt(at - 1))) continue;
    if (at > from) pieces.push(Buffer.from(text.slice(from, at), "utf8"));
    pieces.push(Buffer.of(unit - ESCAPE));
    from = at + 1;
  }
  pieces.push(Buffer.from(text.slice(from), "utf8"));
  return Buffer.concat(pieces);
}

/** Length of the well-formed UTF-8 sequence (Unicode, table 3-7) at `at`; 0 when there is none. */
function sequenceLength(bytes: Buffer, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  const second = bytes[at + 1] ?? 0;
  if (lead >= 0xc2 && lead <= 0xdf) return isTrail(second) ? 2 : 0;
  const isThird = isTrail(bytes[at + 2] ?? 0);
  if (lead >= 0xe0 && lead <= 0xef) {
    const low = lead === 0xe0 ? 0xa0 : 0x80;
    const high = lead === 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high && isThird ? 3 : 0;
  }
  if (lead < 0xf0 || lead > 0xf4) return 0;
  const low = lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high && isThird && isTrail(bytes[at + 3] ?? 0) ? 4 : 0;
}
