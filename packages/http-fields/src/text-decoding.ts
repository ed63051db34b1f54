import { isXml, toMediaType, type MediaType, type MediaTypeLike } from "./media-type.ts";

/** Decoded text and its encoding. */
export interface DecodedText {
  text: string;
  /** The encoding's name in the WHATWG Encoding standard, such as `utf-8` or `windows-1252`. */
  charset: string;
  /** The source of the encoding; `assumed` if there was none. */
  source: "bom" | "header" | "document" | "assumed";
  /** Whether octets that do not fit the encoding were replaced by U+FFFD. */
  isDamaged: boolean;
}

/** Length of the prefix that is searched for a declaration (WHATWG HTML, encoding sniffing). */
const prescanBytes = 1024;

/**
 * Decodes a body: a byte order mark wins, then the charset of the Content-Type, then the document's own declaration
 * (HTML `meta`, XML declaration, CSS `@charset`), else UTF-8, and windows-1252 (what browsers call Latin-1) when the
 * bytes are not UTF-8. Unknown charset names count as absent. A character cut off at the end is not damage.
 */
export function decodeText(bytes: Uint8Array, contentType?: MediaTypeLike): DecodedText {
  const mediaType = toMediaType(contentType);
  const mark = byteOrderMark(bytes);
  if (mark !== undefined) return decodeAs(bytes, mark, "bom");
  const declared = knownCharset(mediaType?.charset);
  if (declared !== undefined) return decodeAs(bytes, declared, "header");
  const own = knownCharset(ownCharset(bytes, mediaType));
  if (own !== undefined) return decodeAs(bytes, own, "document");
  const utf8 = decodeAs(bytes, "utf-8", "assumed");
  return utf8.isDamaged ? decodeAs(bytes, "windows-1252", "assumed") : utf8;
}

function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : undefined;
}

/** The standard name of an encoding label; undefined if the platform does not support it. */
function knownCharset(label: string | undefined): string | undefined {
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

function decodeAs(bytes: Uint8Array, charset: string, source: DecodedText["source"]): DecodedText {
  try {
    // With `stream` an incomplete last character is held back instead of being an error.
    const text = new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: true });
    return { text, charset, source, isDamaged: false };
  } catch {
    return { text: new TextDecoder(charset).decode(bytes), charset, source, isDamaged: true };
  }
}

function ownCharset(bytes: Uint8Array, mediaType: MediaType | undefined): string | undefined {
  if (mediaType === undefined) return undefined;
  let start = "";
  for (const octet of bytes.subarray(0, prescanBytes)) start += String.fromCharCode(octet);
  const isHtml = mediaType.essence === "text/html";
  let label: string | undefined;
  if (isXml(mediaType)) label = /^<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/.exec(start)?.[1];
  else if (isHtml) label = /<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)/i.exec(start)?.[1];
  else if (mediaType.essence === "text/css") label = /^@charset "([^"]+)";/.exec(start)?.[1];
  // A declaration that could be read as ASCII cannot be in UTF-16.
  return label !== undefined && /^utf-?16/i.test(label) ? "utf-8" : label;
}
