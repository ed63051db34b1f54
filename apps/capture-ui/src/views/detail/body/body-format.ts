import type { RequestData, ResponseData } from "@headworks/capture-contract";
import { parseMediaType } from "@headworks/http-fields";

export type BodyKind =
  | "empty"
  | "json"
  | "xml"
  | "html"
  | "css"
  | "javascript"
  | "text"
  | "form"
  | "multipart"
  | "image"
  | "svg"
  | "audio"
  | "video"
  | "binary";

export type BodyViewName =
  | "pretty"
  | "raw"
  | "tree"
  | "table"
  | "preview"
  | "image"
  | "media"
  | "form"
  | "multipart"
  | "hex";

export const VIEW_LABELS: Readonly<Record<BodyViewName, string>> = {
  pretty: "Pretty",
  raw: "Raw",
  tree: "Tree",
  table: "Table",
  preview: "Preview",
  image: "Image",
  media: "Play",
  form: "Form",
  multipart: "Parts",
  hex: "Hex",
};

/** Views of each kind; the first is the default. */
export const KIND_VIEWS: Readonly<Record<BodyKind, readonly BodyViewName[]>> = {
  empty: [],
  json: ["pretty", "raw", "tree", "table", "hex"],
  xml: ["pretty", "raw", "hex"],
  html: ["pretty", "raw", "preview", "hex"],
  css: ["pretty", "raw", "hex"],
  javascript: ["pretty", "raw", "hex"],
  text: ["raw", "hex"],
  form: ["form", "raw", "hex"],
  multipart: ["multipart", "raw", "hex"],
  image: ["image", "hex"],
  svg: ["image", "pretty", "raw", "hex"],
  audio: ["media", "hex"],
  video: ["media", "hex"],
  binary: ["hex", "raw"],
};

/** Image types supported by all browsers; others are shown as bytes. */
const IMAGE_TYPES = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "image/bmp",
  "image/x-icon",
  "image/vnd.microsoft.icon",
  "image/apng",
]);

/**
 * Detects the kind from the declared media type, and from the first bytes if the type is absent, generic or
 * contradicted. `prefix` holds the first bytes after content decoding; about 1,000 suffice.
 */
export function detectBody(
  contentType: string | null,
  prefix: Uint8Array,
): { readonly kind: BodyKind; readonly type: string } {
  if (prefix.length === 0) return { kind: "empty", type: "" };
  const media = parseMediaType(contentType ?? "");
  const type = media?.essence ?? "";
  const magic = magicType(prefix);
  if (magic !== null && (type === "" || isGeneric(type) || /^(?:image|audio|video|text)\//u.test(type))) {
    return { kind: kindOfType(magic) ?? "binary", type: magic };
  }
  if (type === "multipart/form-data" || type.startsWith("multipart/")) return { kind: "multipart", type };
  // Declared text may use any charset, which the service converts. Undeclared text must be UTF-8.
  const readable = fromUtf16(media?.charset, prefix);
  const isText = looksLikeText(readable) || (kindOfType(type) !== null && isLegacyText(readable));
  if (type === "application/x-www-form-urlencoded" && isText) return { kind: "form", type };
  const declared = kindOfType(type);
  if (declared !== null && declared !== "text") {
    const isMedia = declared === "audio" || declared === "video" || declared === "image";
    return { kind: isMedia || isText ? declared : "binary", type };
  }
  if (!isText) return { kind: "binary", type };
  // JavaScript, Markdown and CSV have no signature; only unambiguous content is detected as more than text.
  const sniffed = declared === null || type === "text/plain" || type === "text/html" ? sniffText(readable) : null;
  return { kind: sniffed ?? "text", type };
}

function isGeneric(type: string): boolean {
  return type === "application/octet-stream" || type === "binary/octet-stream" || type === "application/binary";
}

function kindOfType(type: string): BodyKind | null {
  if (type === "image/svg+xml") return "svg";
  if (IMAGE_TYPES.has(type)) return "image";
  if (type.startsWith("audio/")) return "audio";
  if (type.startsWith("video/")) return "video";
  if (type === "text/html" || type === "application/xhtml+xml") return "html";
  if (type === "text/css") return "css";
  if (/^(?:text|application)\/(?:x-)?(?:javascript|ecmascript)$/u.test(type) || type === "text/typescript") {
    return "javascript";
  }
  if (/[/+]json$/u.test(type) || /\/(?:x-)?(?:ndjson|jsonlines|json5|csp-report|har|manifest\+json)$/u.test(type)) {
    return "json";
  }
  if (/[/+]xml$/u.test(type) || type === "application/xml-dtd") return "xml";
  if (type.startsWith("text/")) return "text";
  return null;
}

const MAGIC: readonly (readonly [type: string, at: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/bmp", 0, "BM"],
  ["image/avif", 4, "ftypavif"],
  ["video/mp4", 4, "ftyp"],
  ["video/webm", 0, "\x1aE\xdf\xa3"],
  ["audio/ogg", 0, "OggS"],
  ["audio/mpeg", 0, "ID3"],
  ["audio/flac", 0, "fLaC"],
];

/** The type proven by a signature, if any. */
function magicType(prefix: Uint8Array): string | null {
  const text = String.fromCharCode(...prefix.subarray(0, 16));
  if (text.startsWith("RIFF")) {
    if (text.startsWith("WEBP", 8)) return "image/webp";
    return text.startsWith("WAVE", 8) ? "audio/wav" : null;
  }
  for (const [type, at, bytes] of MAGIC) {
    // Two-byte signatures are weak: a bitmap also has zero bytes near its beginning.
    if (text.startsWith(bytes, at) && (bytes.length > 2 || !looksLikeText(prefix))) return type;
  }
  return null;
}

function sniffText(prefix: Uint8Array): BodyKind | null {
  const text = new TextDecoder().decode(prefix.subarray(0, 1024)).trimStart();
  if (/^<(?:!doctype\s+html|html|head|body)\b/iu.test(text)) return "html";
  if (/^<svg\b/iu.test(text)) return "svg";
  if (/^<(?:\?xml\b|[a-z][\w.-]*:?[\w.-]*[\s>])/iu.test(text)) return "xml";
  if (/^(?:\{\s*(?:"|\}|$)|\[\s*(?:["{[\]\d-]|true|false|null|$))/u.test(text)) return "json";
  return null;
}

/** A prefix this long may end inside a character. */
const CUT_BYTES = 1000;

/** Valid UTF-8 (up to a character cut at the end) without control characters other than white space. */
function looksLikeText(prefix: Uint8Array): boolean {
  if (prefix.some(isControl)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(prefix, { stream: prefix.length >= CUT_BYTES });
    return true;
  } catch {
    return false;
  }
}

function isControl(byte: number): boolean {
  return byte < 9 || byte === 11 || (byte > 13 && byte < 32 && byte !== 27);
}

/**
 * The prefix converted to UTF-8 if it is declared as UTF-16 and valid: half of its bytes look like control characters.
 */
function fromUtf16(charset: string | undefined, prefix: Uint8Array): Uint8Array {
  if (charset === undefined || hasUtf16Mark(prefix)) return prefix;
  try {
    const decoder = new TextDecoder(charset, { fatal: true });
    if (!decoder.encoding.startsWith("utf-16")) return prefix;
    return new TextEncoder().encode(decoder.decode(prefix, { stream: prefix.length >= CUT_BYTES }));
  } catch {
    return prefix;
  }
}

/** Text in another charset: no control characters, or a UTF-16 byte order mark. */
function isLegacyText(prefix: Uint8Array): boolean {
  return hasUtf16Mark(prefix) || !prefix.some(isControl);
}

function hasUtf16Mark(prefix: Uint8Array): boolean {
  return (prefix[0] === 0xff && prefix[1] === 0xfe) || (prefix[0] === 0xfe && prefix[1] === 0xff);
}

/** Whether the service must convert a text to UTF-8. */
export function needsConversion(contentType: string | null, prefix: Uint8Array): boolean {
  const charset = parseMediaType(contentType ?? "")?.charset ?? "";
  return !looksLikeText(prefix) || !["", "utf-8", "utf8", "us-ascii", "ascii"].includes(charset);
}

export function isTextKind(kind: BodyKind): boolean {
  return ["json", "xml", "html", "css", "javascript", "text", "form", "svg"].includes(kind);
}

/** The parts of a message needed to display its body. */
export type Message = Pick<
  RequestData | ResponseData,
  "headers_list" | "content_type" | "body_state" | "body_size" | "body_stored_size"
>;

export type Side = "request" | "response";

/** Owner of the bytes: one side, or one message of a stream. */
export type BodyOwner = Side | "message";
