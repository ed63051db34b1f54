import { createHash } from "node:crypto";
import { isJson } from "@headworks/http-fields";

/** File path of a response body below the output directory. */
export interface MirrorPath {
  /** Begins with the host. */
  readonly directories: readonly string[];
  readonly file: string;
}

/** Suffix of the sidecar beside each file. */
export const SIDECAR_SUFFIX = ".meta.json";
export const REQUEST_SUFFIX = ".request";
/** Prefix of the mirror's own files. */
export const OWN_PREFIX = ".weir-";

/** Leaves room for suffixes within the 255 bytes that file systems allow. */
const NAME_BYTES = 220;
/** Maximum bytes of the path below the host; the rest is replaced by a fingerprint. */
const PATH_BYTES = 1800;
const MAX_DIRECTORIES = 100;

/**
 * `<host>/<path of the URL>`. A path that ends in `/`, or whose last part has no extension, becomes a directory with
 * `index.json` or `index.html`, by the response's media type. The query is left out. Names contain only characters that
 * common file systems accept, no separator and no `..`, and never equal a device, a sidecar or a file of the mirror's
 * own. Escapes of harmless characters are decoded; all others stay, and unsafe characters are percent-encoded, so that
 * different URLs keep different files: only `..`, separators and NUL are dropped.
 */
export function mirrorPath(host: string, path: string, contentType: string | undefined): MirrorPath {
  const [plain = ""] = path.split("?", 1);
  const parts = plain.split("/");
  const names = parts.map(fileName).filter((name) => name !== "");
  const isDirectory = parts.length === 0 || fileName(parts.at(-1) ?? "") === "" || !hasExtension(names.at(-1) ?? "");
  const file = isDirectory ? indexName(contentType) : (names.pop() ?? indexName(contentType));
  return { directories: [hostName(host), ...folded(names)], file };
}

/** Directory of a host's port when another port owns the plain name. */
export function portDirectory(hostDirectory: string, port: number): string {
  return `${hostDirectory}_${port}`;
}

/** A variant of `name` for the case that it is taken: `app~dir.js`. */
export function otherName(name: string, mark: string): string {
  const dot = extensionAt(name);
  return `${name.slice(0, dot)}~${mark}${name.slice(dot)}`;
}

/** A short hash that separates names which a file system treats as equal. */
export function fingerprint(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function indexName(contentType: string | undefined): string {
  return isJson(contentType) ? "index.json" : "index.html";
}

/** Host names cannot contain brackets, so an IPv6 address never shares a directory with one. */
function hostName(host: string): string {
  const bare = host.replace(/^\[|\]$/g, "");
  const name = bare.includes(":") ? `[${bare.replaceAll(":", "_")}]` : bare;
  const safe = fileName(name);
  if (safe === "") return "%2E";
  return safe.startsWith(".") ? `%2E${safe.slice(1)}` : safe;
}

/** One part of a path as a name; `""` if nothing remains. */
function fileName(part: string): string {
  const text = readable(part).replaceAll("..", "");
  if (text === "" || text === ".") return "";
  return shortened(withoutReserved(text), part);
}

/** Bytes of a part with harmless escapes decoded; only harmless characters are unescaped in the result. */
function readable(part: string): string {
  const bytes: number[] = [];
  const raw = Buffer.from(part, hasWideCharacters(part) ? "utf8" : "latin1");
  for (let at = 0; at < raw.length; at += 1) {
    const value = raw[at] === PERCENT ? escapedByte(raw, at) : undefined;
    if (value !== undefined) at += 2;
    const byte = value ?? raw[at] ?? 0;
    if (byte !== 0 && byte !== SLASH && byte !== BACKSLASH) bytes.push(byte);
  }
  return escapedText(Buffer.from(bytes));
}

const PERCENT = 0x25;
const SLASH = 0x2f;
const BACKSLASH = 0x5c;

function hasWideCharacters(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 0xff) return true;
  return false;
}

function escapedByte(raw: Buffer, at: number): number | undefined {
  const digits = raw.toString("latin1", at + 1, at + 3);
  return /^[0-9a-f]{2}$/i.test(digits) ? Number.parseInt(digits, 16) : undefined;
}

/** Percent sign, control characters, characters Windows refuses, bidirectional and invisible ones. */
const UNSAFE = /[%<>:"|?*\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

function escapedText(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes, at);
    const character = length === 0 ? escaped(bytes.subarray(at, at + 1)) : bytes.toString("utf8", at, at + length);
    text += length === 0 ? character : character.replace(UNSAFE, (unsafe) => escaped(Buffer.from(unsafe)));
    at += Math.max(1, length);
  }
  return text.normalize("NFC") === text ? text : escapedMarks(text);
}

/** Escapes non-ASCII characters in text that some file systems would normalize into another name. */
function escapedMarks(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (character) => escaped(Buffer.from(character)));
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Length of the well-formed UTF-8 character at an index; 0 if there is none. */
function sequenceLength(bytes: Buffer, at: number): number {
  const first = bytes[at] ?? 0;
  const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
  if (length <= 1) return length;
  if (at + length > bytes.length) return 0;
  try {
    UTF8.decode(bytes.subarray(at, at + length));
    return length;
  } catch {
    return 0;
  }
}

function escaped(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return text;
}

/** Windows device names, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)\s*(?:\.|$)/iu;
const SUFFIXES = /(?<=\.)[mr](?=(?:eta\.json|equest)$)/iu;

function withoutReserved(text: string): string {
  let name = text.replace(SUFFIXES, (letter) => escaped(Buffer.from(letter)));
  if (DEVICE.test(name) || name.toLowerCase().startsWith(OWN_PREFIX)) name = escapedFirst(name);
  // Windows drops trailing dots and spaces, which would make two names equal.
  return name.replace(/[. ]$/, (last) => escaped(Buffer.from(last)));
}

function escapedFirst(name: string): string {
  const first = String.fromCodePoint(name.codePointAt(0) ?? 0);
  return escaped(Buffer.from(first)) + name.slice(first.length);
}

/** Cuts a name that is too long and appends a fingerprint. */
function shortened(name: string, part: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES) return name;
  const dot = extensionAt(name);
  const extension = Buffer.byteLength(name.slice(dot)) <= 16 ? name.slice(dot) : "";
  const mark = `~${fingerprint(part)}${extension}`;
  return cut(name, NAME_BYTES - Buffer.byteLength(mark)) + mark;
}

/** The longest prefix of at most `maxBytes` that does not split an escape. */
function cut(text: string, maxBytes: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) break;
    end += character.length;
  }
  return text.slice(0, end).replace(/%[0-9A-F]?$/, "");
}

/** Replaces the excess of directories beyond the path limit by a fingerprint. */
function folded(names: readonly string[]): string[] {
  const kept: string[] = [];
  let bytes = 0;
  for (const [index, name] of names.entries()) {
    bytes += Buffer.byteLength(name) + 1;
    if (bytes > PATH_BYTES || kept.length >= MAX_DIRECTORIES) {
      return [...kept, `~${fingerprint(names.slice(index).join("/"))}`];
    }
    kept.push(name);
  }
  return kept;
}

function hasExtension(name: string): boolean {
  return extensionAt(name) < name.length - 1;
}

/** Index of the extension's dot; the end of the name without one. */
function extensionAt(name: string): number {
  const dot = name.lastIndexOf(".");
  return dot > 0 && dot < name.length - 1 ? dot : name.length;
}
