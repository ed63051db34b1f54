import { isJson, isXml, parseMediaType, type MediaType } from "./media-type.ts";

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
