/** A request for snippets. Strings hold the bytes on the wire, one character per byte. */
export interface SnippetRequest {
  readonly method: string;
  readonly scheme: "http" | "https";
  /** Host, with the port unless it is the scheme's default; IPv6 in brackets. */
  readonly authority: string;
  readonly target: string;
  readonly version: "HTTP/1.0" | "HTTP/1.1" | "HTTP/2";
  /** In original order, case and repetition. */
  readonly fields: readonly Field[];
  readonly body: Uint8Array;
}

export type Field = readonly [name: string, value: string];

/** Fields that concern one connection only; tools write their own. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set(["connection", "keep-alive", "proxy-connection"]);

export function valuesOf(request: SnippetRequest, lowerName: string): string[] {
  return request.fields.filter(([name]) => name.toLowerCase() === lowerName).map(([, value]) => value);
}

export function hasField(request: SnippetRequest, lowerName: string): boolean {
  return request.fields.some(([name]) => name.toLowerCase() === lowerName);
}

/** True if the body matches the Content-Length field or there is none: tools will write the same. */
function announcesOwnLength(request: SnippetRequest): boolean {
  return valuesOf(request, "content-length").every((value) => value === String(request.body.length));
}

/** True if the request had a body, even an empty one. */
export function sendsBody(request: SnippetRequest): boolean {
  return request.body.length > 0 || hasField(request, "content-length") || hasField(request, "transfer-encoding");
}

/**
 * Fields that a tool must be given: all except those it writes itself with the same value (Host, Content-Length) and
 * those of the connection, unless they carry an option of the request (`Upgrade`, `TE`). `writes` tells whether the
 * tool writes a field by itself.
 */
export function writtenFields(request: SnippetRequest, writes: (name: string) => boolean = () => true): Field[] {
  const isComputed = announcesOwnLength(request);
  return request.fields.filter(([name, value]) => {
    const lower = name.toLowerCase();
    if (lower === "host") return value !== request.authority || !writes(name);
    if (lower === "content-length") return !isComputed || !writes(name);
    if (!OF_THE_CONNECTION.has(lower)) return true;
    return lower === "connection" && !/^[\s,]*(?:(?:keep-alive|close)[\s,]*)*$/iu.test(value);
  });
}

/** Comments on a tool's changes to fields, in plain words: some shells interpret comments. */
export function changedFields(
  tool: string,
  request: SnippetRequest,
  added: readonly string[],
  joinsRepeated: boolean,
): string[] {
  const missing = added.filter((name) => !hasField(request, name.toLowerCase()));
  const names = writtenFields(request).map(([name]) => name.toLowerCase());
  const isRepeated = new Set(names).size < names.length;
  return [
    ...(missing.length > 0 ? [`${tool} adds fields that the request does not have: ${missing.join(", ")}`] : []),
    ...(joinsRepeated && isRepeated ? [`${tool} joins repeated fields`] : []),
  ];
}

/** The URL without protection from rewriting by tools. */
export function urlOf(request: SnippetRequest): string {
  return `${request.scheme}://${request.authority}${request.target === "*" ? "/" : request.target}`;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Control characters, bidirectional and invisible marks, and line separators. */
const UNSAFE_TO_SHOW = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u;
const UNSAFE_TO_SHOW_BUT_LINE_ENDS = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u;

/**
 * Bytes decoded as UTF-8 for use in a snippet; undefined if they are no text or contain characters that a terminal
 * would interpret or that would disguise the text.
 */
export function shownText(bytes: Uint8Array, options: { readonly lineEnds: boolean }): string | undefined {
  try {
    const text = UTF8.decode(bytes);
    return (options.lineEnds ? UNSAFE_TO_SHOW_BUT_LINE_ENDS : UNSAFE_TO_SHOW).test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The bytes of a string with one character per byte. */
export function wireBytes(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}
