import { isUtf8 } from "node:buffer";
import { isTextual, parseMediaType } from "@headworks/http-fields";
import { declaredCharset, decodeText, encodeText } from "@headworks/http-fields/content-coding";
import { decodeOctets, encodeOctets } from "./octet-text.ts";

/** A body as text that can be turned back into exactly the bytes it was made of. */
export interface TextBody {
  readonly text: string;
  /** Name of the charset; `octets`: UTF-8 with other bytes in between. */
  readonly charset: string;
  /** The byte order mark that stood before it. */
  readonly mark: Buffer;
}

const NO_MARK = Buffer.alloc(0);
const MARKS: Readonly<Record<string, Buffer>> = {
  "utf-8": Buffer.of(0xef, 0xbb, 0xbf),
  "utf-16le": Buffer.of(0xff, 0xfe),
  "utf-16be": Buffer.of(0xfe, 0xff),
};

/** Types whose bodies nobody edits as text. */
const MEDIA = new Set(["image", "audio", "video", "font"]);

/**
 * The text of a body whose codings are undone; undefined for pictures, sound and the like. Bodies of other types that
 * are no text of their charset, such as forms with files in them, are text with octets in between.
 */
export function readTextBody(bytes: Buffer, contentType: string | undefined): TextBody | undefined {
  const mediaType = parseMediaType(contentType);
  const isText = isTextual(mediaType);
  if (mediaType !== undefined && MEDIA.has(mediaType.type) && !isText) return undefined;
  const { text, charset, source, isDamaged } = decodeText(bytes, mediaType);
  const mark = source === "bom" ? (MARKS[charset] ?? NO_MARK) : NO_MARK;
  // What is only taken for Latin letters because it is no UTF-8 is most likely no text at all.
  const isGuess = source === "assumed" && charset !== "utf-8" && !isText;
  if (!isDamaged && !isGuess && isExact(text, charset, bytes.subarray(mark.length))) return { text, charset, mark };
  return { text: decodeOctets(bytes), charset: "octets", mark: NO_MARK };
}

/**
 * Whether ASCII words can be looked for in the bytes as they are: text whose charset has ASCII in it, each character as its
 * own octet that stands for nothing else.
 */
export function hasPlainAscii(bytes: Buffer, contentType: string | undefined): boolean {
  const mediaType = parseMediaType(contentType);
  if (mediaType !== undefined && MEDIA.has(mediaType.type) && !isTextual(mediaType)) return false;
  const [first, second] = bytes;
  const isUtf16 = (first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe);
  if (isUtf16) return false;
  const charset = declaredCharset(contentType);
  // ISO-2022-JP, which a document may name itself, is ASCII octets behind escapes.
  return charset === undefined
    ? isUtf8(bytes) && !bytes.includes(0x1b)
    : /^(?:utf-8|windows-125\d|iso-8859-\d+|koi8-[ru])$/.test(charset);
}

/** Whether the text gives the same bytes again. */
function isExact(text: string, charset: string, bytes: Buffer): boolean {
  // A character that is cut off at the end is not in the text, so it would get lost; nothing else can be with UTF-8.
  if (charset === "utf-8") return Buffer.byteLength(text, "utf8") === bytes.length;
  // Charsets of old say some characters in two ways.
  return encodeText(text, charset)?.equals(bytes) === true;
}

/** The bytes of an edited text, and the charset they are in when it is another one than before. */
export function writeTextBody(text: string, { charset, mark }: TextBody): { bytes: Buffer; newCharset?: string } {
  if (charset === "octets") return { bytes: encodeOctets(text) };
  const encoded = encodeText(text, charset);
  if (encoded === undefined) return { bytes: Buffer.from(text, "utf8"), newCharset: "utf-8" };
  return { bytes: mark.length === 0 ? encoded : Buffer.concat([mark, encoded]) };
}

/** A Content-Type that names this charset and is otherwise as it was. */
export function withCharset(contentType: string, charset: string): string {
  const declared = /;\s*charset\s*=\s*(?:"[^"]*"|[^;\s]*)/i;
  return declared.test(contentType)
    ? contentType.replace(declared, `; charset=${charset}`)
    : `${contentType}; charset=${charset}`;
}
