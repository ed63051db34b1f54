/** A name and its value; names are in lower case, order and duplicates are kept. */
export type Parameter = readonly [name: string, value: string];

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Whether the text is a token (RFC 9110 section 5.6.2). */
export const isToken = (text: string): boolean => token.test(text);

/** Splits at `separator` outside quoted strings; pieces are trimmed, empty ones kept. */
export function splitOutsideQuotes(text: string, separator: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (isQuoted && character === "\\") index += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === separator && !isQuoted) {
      pieces.push(text.slice(start, index).trim());
      start = index + 1;
    }
  }
  pieces.push(text.slice(start).trim());
  return pieces;
}

/**
 * Parses `name=value` with an optional quoted value. Undefined without a token as name. An unclosed quoted string
 * extends to the end, and an unquoted value is taken as it is.
 */
export function parseParameter(text: string): Parameter | undefined {
  const equals = text.indexOf("=");
  if (equals === -1) return undefined;
  const name = text.slice(0, equals).trim().toLowerCase();
  return isToken(name) ? [name, unquoted(text.slice(equals + 1).trim())] : undefined;
}

/** The content of a quoted string (RFC 9110 section 5.6.4); other texts are returned unchanged. */
function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  let value = "";
  for (let index = 1; index < text.length; index += 1) {
    const character = text[index] ?? "";
    if (character === '"') break;
    if (character === "\\" && index + 1 < text.length) index += 1;
    value += text[index] ?? "";
  }
  return value;
}

export const parameterValue = (parameters: readonly Parameter[], name: string): string | undefined =>
  parameters.find(([each]) => each === name)?.[1];

/** A media type (RFC 9110 section 8.3.1), in lower case except for parameter values. */
export interface MediaType {
  type: string;
  subtype: string;
  /** `type/subtype` */
  essence: string;
  /** The part after the last `+` of the subtype, such as `json`; empty without one. */
  suffix: string;
  parameters: readonly Parameter[];
  /** The charset parameter, lower case. */
  charset: string | undefined;
}

/** Parses a Content-Type value, the first of several. Undefined without `type/subtype`. */
export function parseMediaType(text: string | undefined): MediaType | undefined {
  if (text === undefined) return undefined;
  const first = splitOutsideQuotes(text, ",")[0] ?? "";
  const [essence = "", ...rest] = splitOutsideQuotes(first, ";");
  const [type = "", subtype = "", ...more] = essence.toLowerCase().split("/");
  if (!isToken(type) || !isToken(subtype) || more.length > 0) return undefined;
  const parameters = rest.map(parseParameter).filter((parameter) => parameter !== undefined);
  const plus = subtype.lastIndexOf("+");
  return {
    type,
    subtype,
    essence: `${type}/${subtype}`,
    suffix: plus === -1 ? "" : subtype.slice(plus + 1),
    parameters,
    charset: parameterValue(parameters, "charset")?.toLowerCase(),
  };
}

/** The media type given, or the one a Content-Type value names. */
export type MediaTypeLike = MediaType | string | undefined;

export const toMediaType = (like: MediaTypeLike): MediaType | undefined =>
  typeof like === "object" ? like : parseMediaType(like);

const textualSubtypes = new Set([
  "csp-report",
  "csv",
  "ecmascript",
  "graphql",
  "javascript",
  "json",
  "json5",
  "jsonl",
  "jwt",
  "ld+json",
  "mpegurl",
  "ndjson",
  "pem-certificate-chain",
  "sdp",
  "sparql-query",
  "sql",
  "toml",
  "typescript",
  "vnd.apple.mpegurl",
  "www-form-urlencoded",
  "xml",
  "xml-dtd",
  "yaml",
  "sh",
]);

const textualSuffixes = new Set(["json", "xml", "yaml", "json-seq"]);

/** Whether a body of this type is text. False for a missing or malformed type. */
export function isTextual(like: MediaTypeLike): boolean {
  const mediaType = toMediaType(like);
  if (mediaType === undefined) return false;
  const { type, subtype, suffix } = mediaType;
  if (type === "text" || textualSuffixes.has(suffix)) return true;
  const plain = subtype.startsWith("x-") ? subtype.slice(2) : subtype;
  return (type === "application" || type === "audio") && textualSubtypes.has(plain);
}

/** Whether the type is JSON, by name or by suffix. */
export function isJson(like: MediaTypeLike): boolean {
  const mediaType = toMediaType(like);
  return mediaType !== undefined && (jsonEssences.has(mediaType.essence) || mediaType.suffix === "json");
}

const jsonEssences = new Set([
  "application/json",
  "text/json",
  "text/x-json",
  "application/x-json",
  "application/csp-report",
  "application/json5",
  "application/x-ndjson",
  "application/ndjson",
  "application/jsonl",
  "application/json-seq",
]);

/** Whether the type is XML, but not HTML, SVG or another specialised type. */
export function isXml(like: MediaTypeLike): boolean {
  const mediaType = toMediaType(like);
  if (mediaType === undefined) return false;
  return (
    ["text/xml", "application/xml", "application/xml-dtd"].includes(mediaType.essence) || mediaType.suffix === "xml"
  );
}

/** Whether a `Content-Type` is gRPC, in any of its forms. */
export function isGrpc(contentType: string | undefined): boolean {
  return contentType?.toLowerCase().startsWith("application/grpc") === true;
}

export interface MediaRange {
  /** Lower case; `*` for any. */
  type: string;
  subtype: string;
  /** Without `q`. */
  parameters: readonly Parameter[];
  /** 0 to 1. */
  quality: number;
}

const WEIGHT = /^(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Content codings of an Accept-Encoding value (RFC 9110 section 12.5.3) with their weights, in order, including `*`
 * and `identity`. Malformed members are skipped.
 */
export function parseAcceptEncoding(text: string): ReadonlyMap<string, number> {
  const codings = new Map<string, number>();
  for (const member of text.split(",")) {
    const [name = "", ...parameters] = member.split(";").map((piece) => piece.trim().toLowerCase());
    if (name === "" || parameters.length > 1) continue;
    const [weight = "q=1"] = parameters;
    if (!weight.startsWith("q=") || !WEIGHT.test(weight.slice(2))) continue;
    codings.set(name === "x-gzip" ? "gzip" : name, Number(weight.slice(2)));
  }
  return codings;
}

/** Parses an Accept value (RFC 9110 section 12.5.1), in order; malformed ranges are skipped. */
export function parseAccept(text: string): MediaRange[] {
  return splitOutsideQuotes(text, ",")
    .map(parseRange)
    .filter((range) => range !== undefined);
}

function parseRange(text: string): MediaRange | undefined {
  const [essence = "", ...rest] = splitOutsideQuotes(text, ";");
  const [type = "", subtype = "", ...more] = essence.toLowerCase().split("/");
  if (!isToken(type) || !isToken(subtype) || more.length > 0 || (type === "*" && subtype !== "*")) return undefined;
  const parameters: Parameter[] = [];
  let quality = 1;
  for (const piece of rest) {
    const parameter = parseParameter(piece);
    if (parameter?.[0] === "q") {
      if (!WEIGHT.test(parameter[1])) return undefined;
      quality = Number(parameter[1]);
      break;
    }
    if (parameter !== undefined) parameters.push(parameter);
  }
  return { type, subtype, parameters, quality };
}

/**
 * The offered media type that the client prefers, or undefined if it accepts none. The most specific range sets the
 * quality of an offer; of equal qualities the more specific range wins, then the first range, then the first offer.
 * Without an Accept field (or an empty one) the first offer is chosen.
 */
export function negotiate<T extends string>(accept: string | undefined, offers: readonly T[]): T | undefined {
  if (accept === undefined || accept.trim() === "") return offers[0];
  const ranges = parseAccept(accept);
  let best: { offer: T; rank: Rank } | undefined;
  for (const offer of offers) {
    const mediaType = parseMediaType(offer);
    const rank = mediaType === undefined ? undefined : rankOf(mediaType, ranges);
    if (rank !== undefined && rank.quality > 0 && (best === undefined || isBetter(rank, best.rank))) {
      best = { offer, rank };
    }
  }
  return best?.offer;
}

interface Rank {
  quality: number;
  specificity: number;
  position: number;
}

function rankOf(offer: MediaType, ranges: readonly MediaRange[]): Rank | undefined {
  let best: Rank | undefined;
  for (const [position, range] of ranges.entries()) {
    const specificity = specificityOf(range, offer);
    if (specificity === undefined) continue;
    if (best === undefined || specificity > best.specificity) best = { quality: range.quality, specificity, position };
  }
  return best;
}

/** 0 for any type, 1 for any subtype, 2 for an exact type, more with parameters; undefined without a match. */
function specificityOf(range: MediaRange, offer: MediaType): number | undefined {
  if (range.type !== "*" && range.type !== offer.type) return undefined;
  if (range.subtype !== "*" && range.subtype !== offer.subtype) return undefined;
  const offered = (parameter: Parameter): boolean =>
    offer.parameters.some(
      ([name, value]) => name === parameter[0] && value.toLowerCase() === parameter[1].toLowerCase(),
    );
  if (!range.parameters.every(offered)) return undefined;
  return (range.type === "*" ? 0 : range.subtype === "*" ? 1 : 2) + range.parameters.length;
}

function isBetter(one: Rank, other: Rank): boolean {
  if (one.quality !== other.quality) return one.quality > other.quality;
  if (one.specificity !== other.specificity) return one.specificity > other.specificity;
  return one.position < other.position;
}

/** Whether the client prefers HTML to JSON, as browsers do when they navigate; tools with `*\/*` do not. */
export const prefersHtml = (accept: string | undefined): boolean =>
  negotiate(accept, ["application/json", "text/html"]) === "text/html";

/** Types of exchanges, for filters and labels. */
export const resourceTypes = [
  "document",
  "script",
  "stylesheet",
  "image",
  "font",
  "media",
  "json",
  "xml",
  "text",
  "form",
  "websocket",
  "event-stream",
  "grpc",
  "wasm",
  "binary",
  "other",
] as const;

export type ResourceType = (typeof resourceTypes)[number];

export interface ResourceHints {
  /** The connection was upgraded to WebSocket. */
  isWebSocket?: boolean;
  /** The request's Sec-Fetch-Dest value. */
  destination?: string;
}

/**
 * Classifies an exchange by the Content-Type of its response; if that is missing, malformed or generic, by the
 * extension of the path, then by the browser's destination.
 */
export function resourceType(contentType: string | undefined, path: string, hints: ResourceHints = {}): ResourceType {
  if (hints.isWebSocket === true) return "websocket";
  const mediaType = parseMediaType(contentType);
  const named = mediaType === undefined ? undefined : typeOf(mediaType);
  if (named !== undefined && named !== "binary") return named;
  return byExtension.get(extensionOf(path)) ?? byDestination.get(hints.destination ?? "") ?? named ?? "other";
}

const byEssence = new Map<string, ResourceType>([
  ["text/html", "document"],
  ["application/xhtml+xml", "document"],
  ["text/css", "stylesheet"],
  ["text/event-stream", "event-stream"],
  ["application/wasm", "wasm"],
  ["application/x-www-form-urlencoded", "form"],
  ["multipart/form-data", "form"],
  ["application/vnd.ms-fontobject", "font"],
  ["application/vnd.apple.mpegurl", "media"],
  ["application/x-mpegurl", "media"],
  ["application/dash+xml", "media"],
  ["application/ogg", "media"],
]);

const byTopLevelType = new Map<string, ResourceType>([
  ["image", "image"],
  ["font", "font"],
  ["audio", "media"],
  ["video", "media"],
  ["text", "text"],
]);

const scriptSubtypes = new Set(["javascript", "x-javascript", "ecmascript", "x-ecmascript", "jscript", "livescript"]);

function typeOf(mediaType: MediaType): ResourceType | undefined {
  const { type, subtype, essence } = mediaType;
  const exact = byEssence.get(essence);
  if (exact !== undefined) return exact;
  if (/^grpc(?:-web)?(?:-text)?(?:\+|$)/.test(subtype) && type === "application") return "grpc";
  if (scriptSubtypes.has(subtype) || /^javascript1\.[0-5]$/.test(subtype)) return "script";
  if (/^(?:x-)?font-/.test(subtype)) return "font";
  if (isJson(mediaType)) return "json";
  if (type === "image") return "image";
  if (isXml(mediaType)) return "xml";
  return byTopLevelType.get(type) ?? (type === "application" ? "binary" : undefined);
}

const extensions: readonly [ResourceType, string][] = [
  ["document", "html htm xhtml"],
  ["script", "js mjs cjs"],
  ["stylesheet", "css"],
  ["image", "png jpg jpeg gif webp avif svg ico bmp apng jxl heic tif tiff"],
  ["font", "woff woff2 ttf otf eot"],
  ["media", "mp4 m4v m4a m4s webm mp3 ogg oga ogv wav flac aac mov mkv avi m3u8 mpd ts opus"],
  ["json", "json map webmanifest jsonl ndjson"],
  ["xml", "xml rss atom xsd xsl"],
  ["text", "txt md csv yaml yml toml log"],
  ["wasm", "wasm"],
  ["binary", "zip gz tgz br zst 7z rar tar exe dmg pkg deb rpm apk ipa bin iso pdf"],
];

const byExtension = new Map(extensions.flatMap(([type, list]) => list.split(" ").map((each) => [each, type] as const)));

const byDestination = new Map<string, ResourceType>([
  ["document", "document"],
  ["iframe", "document"],
  ["frame", "document"],
  ["script", "script"],
  ["worker", "script"],
  ["sharedworker", "script"],
  ["serviceworker", "script"],
  ["style", "stylesheet"],
  ["image", "image"],
  ["font", "font"],
  ["audio", "media"],
  ["video", "media"],
  ["track", "text"],
  ["manifest", "json"],
  ["xslt", "xml"],
]);

/** The extension of the last path segment, lower case, without dot, query or fragment. */
function extensionOf(path: string): string {
  const end = path.search(/[?#]/);
  const bare = end === -1 ? path : path.slice(0, end);
  const name = bare.slice(bare.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return dot === -1 ? "" : name.slice(dot + 1).toLowerCase();
}
