import { isXml, type MediaType, type MediaTypeLike, toMediaType } from "./media-type.ts";

/** Text as the octets of a field value, one character for each: Latin-1 if possible, otherwise UTF-8. */
export function wireText(text: string): string {
  return BEYOND_OCTETS.test(text) ? utf8Octets(text) : text;
}

/** Text as the octets of its UTF-8, one character for each. */
export function utf8Octets(text: string): string {
  if (!BEYOND_ASCII.test(text)) return text;
  let octets = "";
  for (const octet of new TextEncoder().encode(text)) octets += String.fromCharCode(octet);
  return octets;
}

/** The octets of a field value read as UTF-8; undefined if they are the same in Latin-1, or no UTF-8. */
export function utf8Reading(octets: string): string | undefined {
  if (!BEYOND_ASCII.test(octets) || BEYOND_OCTETS.test(octets)) return undefined;
  const bytes = Uint8Array.from(octets, (octet) => octet.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Whether a comparison with a field value depends on its charset, so that both readings must be tried. In a pattern,
 * escapes may stand for non-ASCII characters.
 */
export function dependsOnReading(asked: string, isPattern = false): boolean {
  return BEYOND_ASCII.test(asked) || (isPattern && /\\[uxp]/iu.test(asked));
}

const BEYOND_ASCII = /[^\0-\x7f]/u;
const BEYOND_OCTETS = /[^\0-\xff]/u;

/** One piece between `&`s, raw and decoded. */
export interface QueryParameter {
  rawName: string;
  /** Undefined when there was no `=`. */
  rawValue: string | undefined;
  /** Decoded: `+` is a space, percent sequences are UTF-8 octets; broken ones stay as they are. */
  name: string;
  /** Decoded; empty when there was no `=`. */
  value: string;
}

/**
 * The parameters of a query string (without a leading `?`) or of an `application/x-www-form-urlencoded` body, in
 * order with duplicates; empty pieces are skipped.
 */
export function parseUrlEncoded(text: string): QueryParameter[] {
  const bare = text.startsWith("?") ? text.slice(1) : text;
  const parameters: QueryParameter[] = [];
  for (const piece of bare.split("&")) {
    if (piece === "") continue;
    const equals = piece.indexOf("=");
    const rawName = equals === -1 ? piece : piece.slice(0, equals);
    const rawValue = equals === -1 ? undefined : piece.slice(equals + 1);
    parameters.push({ rawName, rawValue, name: formDecoded(rawName), value: formDecoded(rawValue ?? "") });
  }
  return parameters;
}

export function parseQuery(url: string): QueryParameter[] {
  const hash = url.indexOf("#");
  const bare = hash === -1 ? url : url.slice(0, hash);
  const mark = bare.indexOf("?");
  return mark === -1 ? [] : parseUrlEncoded(bare.slice(mark + 1));
}

/** Names and values as `application/x-www-form-urlencoded`. */
export const formatUrlEncoded = (parameters: readonly { name: string; value: string }[]): string =>
  new URLSearchParams(parameters.map(({ name, value }): [string, string] => [name, value])).toString();

const formDecoded = (text: string): string => percentDecoded(text.replaceAll("+", " "));

/** Decodes percent sequences as UTF-8; broken sequences stay, invalid UTF-8 becomes U+FFFD. Never throws. */
export function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) => {
    const octets = new Uint8Array(run.length / 3);
    for (let index = 0; index < octets.length; index += 1) {
      octets[index] = Number.parseInt(run.slice(index * 3 + 1, index * 3 + 3), 16);
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(octets);
  });
}

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
