import { isToken, parameterValue, parseParameter, splitOutsideQuotes, type Parameter } from "./parameters.ts";

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

/**
 * Parses a Content-Type value. Undefined without `type/subtype`; malformed parameters are skipped. Of several values
 * joined by commas the first counts.
 */
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
