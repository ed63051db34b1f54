import { createHash } from "node:crypto";
import { isJson } from "@headworks/http-fields";

/** Where the body of an answer goes, below the output directory. */
export interface MirrorPlace {
  /** The host first. */
  readonly directories: readonly string[];
  readonly file: string;
}

/** Beside a file stand its sidecar and perhaps the body of its request. */
export const SIDECAR_SUFFIX = ".meta.json";
export const REQUEST_SUFFIX = ".request";
/** Names of our own begin like this. */
export const OWN_PREFIX = ".weir-";

/** Leaves room for the suffixes of 255 bytes, which is what file systems take. */
const NAME_BYTES = 220;
/** What a whole path below the host may take; more is folded into a fingerprint. */
const PATH_BYTES = 1800;
const MAX_DIRECTORIES = 100;

/**
 * `<host>/<path of the URL>`. A path that ends in `/`, or whose last part has no extension, becomes a directory with
 * `index.json` or `index.html`, by the media type of the answer. The query is left out.
 *
 * Whatever the URL, the names are made of characters that every common file system takes, hold no separator and no `..`,
 * and cannot be those of a device, a sidecar or a file of our own. Escapes of harmless characters are undone; those of
 * others stay, and what is escaped here besides is escaped as in URLs, so that different URLs keep different files:
 * only `..`, separators and NUL are dropped.
 */
export function mirrorPlace(host: string, path: string, contentType: string | undefined): MirrorPlace {
  const [plain = ""] = path.split("?", 1);
  const parts = plain.split("/");
  const names = parts.map(fileName).filter((name) => name !== "");
  const isDirectory = parts.length === 0 || fileName(parts.at(-1) ?? "") === "" || !hasExtension(names.at(-1) ?? "");
  const file = isDirectory ? indexName(contentType) : (names.pop() ?? indexName(contentType));
  return { directories: [hostName(host), ...folded(names)], file };
}

/** The directory of a host on a port that another one of its ports came before. */
export function portDirectory(hostDirectory: string, port: number): string {
  return `${hostDirectory}_${port}`;
}

/** A name that differs from `name` where that is taken by something else: `app~dir.js`. */
export function otherName(name: string, mark: string): string {
  const dot = extensionAt(name);
  return `${name.slice(0, dot)}~${mark}${name.slice(dot)}`;
}

/** A short text that tells names apart which a file system holds for the same. */
export function fingerprint(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function indexName(contentType: string | undefined): string {
  return isJson(contentType) ? "index.json" : "index.html";
}

/** Brackets cannot be in a name of a host, so an address never shares its directory with one. */
function hostName(host: string): string {
  const bare = host.replace(/^\[|\]$/g, "");
  const name = bare.includes(":") ? `[${bare.replaceAll(":", "_")}]` : bare;
  const safe = fileName(name);
  if (safe === "") return "%2E";
  return safe.startsWith(".") ? `%2E${safe.slice(1)}` : safe;
}

/** One part of a path as a name, `""` where nothing is left of it. */
function fileName(part: string): string {
  const text = readable(part).replaceAll("..", "");
  if (text === "" || text === ".") return "";
  return shortened(withoutReserved(text), part);
}

/** Bytes of a part with harmless escapes undone, as text in which only harmless characters are not escaped. */
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

/** The percent sign itself, so that "%2541" is not "%41"; controls, what Windows refuses, what turns the direction of text around or is not seen. */
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

/** Text that some file systems would hold for another: the marks in it are escaped, so that it is nobody else's. */
function escapedMarks(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (character) => escaped(Buffer.from(character)));
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Bytes of the well-formed UTF-8 character at a place; 0 where there is none. */
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

/** Names that Windows keeps for devices, whatever their extension. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)\s*(?:\.|$)/iu;
const SUFFIXES = /(?<=\.)[mr](?=(?:eta\.json|equest)$)/iu;

function withoutReserved(text: string): string {
  let name = text.replace(SUFFIXES, (letter) => escaped(Buffer.from(letter)));
  if (DEVICE.test(name) || name.toLowerCase().startsWith(OWN_PREFIX)) name = escapedFirst(name);
  // Windows drops trailing dots and spaces, and with them the difference between two names.
  return name.replace(/[. ]$/, (last) => escaped(Buffer.from(last)));
}

function escapedFirst(name: string): string {
  const first = String.fromCodePoint(name.codePointAt(0) ?? 0);
  return escaped(Buffer.from(first)) + name.slice(first.length);
}

/** A name that is too long is cut, and told apart from others cut alike by a fingerprint. */
function shortened(name: string, part: string): string {
  if (Buffer.byteLength(name) <= NAME_BYTES) return name;
  const dot = extensionAt(name);
  const extension = Buffer.byteLength(name.slice(dot)) <= 16 ? name.slice(dot) : "";
  const mark = `~${fingerprint(part)}${extension}`;
  return cut(name, NAME_BYTES - Buffer.byteLength(mark)) + mark;
}

/** The longest start of a text that has at most so many bytes, without half of an escape. */
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

/** Directories that together are longer than paths may be end in a fingerprint of the rest. */
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

/** Where the extension begins, with its dot; the end of the name where it has none. */
function extensionAt(name: string): number {
  const dot = name.lastIndexOf(".");
  return dot > 0 && dot < name.length - 1 ? dot : name.length;
}
