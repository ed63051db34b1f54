/** A request as snippets reproduce it. Texts are what was on the wire, one character per byte. */
export interface SnippetRequest {
  readonly method: string;
  readonly scheme: "http" | "https";
  /** Host with the port where it is not the scheme's own; IPv6 in brackets. */
  readonly authority: string;
  /** The request target: path and query as sent, or `*`. */
  readonly target: string;
  readonly version: "HTTP/1.0" | "HTTP/1.1" | "HTTP/2";
  /** In the order, with the case and the repetitions of the original. */
  readonly fields: readonly Field[];
  /** Without transfer coding. */
  readonly body: Uint8Array;
}

/** Name and value. */
export type Field = readonly [name: string, value: string];

/** Says what speaks of one connection only; tools make their own. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set(["connection", "keep-alive", "proxy-connection"]);

/** The values of a field by its lower-case name. */
export function valuesOf(request: SnippetRequest, lowerName: string): string[] {
  return request.fields.filter(([name]) => name.toLowerCase() === lowerName).map(([, value]) => value);
}

/** Whether a field is there. */
export function hasField(request: SnippetRequest, lowerName: string): boolean {
  return request.fields.some(([name]) => name.toLowerCase() === lowerName);
}

/** The body has the length that its own field announces, or none announces one: tools will write the same. */
function announcesOwnLength(request: SnippetRequest): boolean {
  return valuesOf(request, "content-length").every((value) => value === String(request.body.length));
}

/** Whether the request had a body, if only an empty one. */
export function sendsBody(request: SnippetRequest): boolean {
  return request.body.length > 0 || hasField(request, "content-length") || hasField(request, "transfer-encoding");
}

/**
 * The fields that a tool has to be told: without those that it writes itself with the same value (Host,
 * Content-Length) and those of the connection, unless they carry an option of the request (`Upgrade`, `TE`).
 * @param writes  whether the tool writes a field of this name itself; it does unless this says no
 */
export function fieldsToTell(request: SnippetRequest, writes: (name: string) => boolean = () => true): Field[] {
  const isComputed = announcesOwnLength(request);
  return request.fields.filter(([name, value]) => {
    const lower = name.toLowerCase();
    if (lower === "host") return value !== request.authority || !writes(name);
    if (lower === "content-length") return !isComputed || !writes(name);
    if (!OF_THE_CONNECTION.has(lower)) return true;
    return lower === "connection" && !/^[\s,]*(?:(?:keep-alive|close)[\s,]*)*$/iu.test(value);
  });
}

/**
 * What a tool does to fields: those of `added` that the request does not have, and whether repeated ones become one. In
 * plain words: some shells look into comments, too.
 */
export function changedFields(
  tool: string,
  request: SnippetRequest,
  added: readonly string[],
  joinsRepeated: boolean,
): string[] {
  const missing = added.filter((name) => !hasField(request, name.toLowerCase()));
  const names = fieldsToTell(request).map(([name]) => name.toLowerCase());
  const isRepeated = new Set(names).size < names.length;
  return [
    ...(missing.length > 0 ? [`${tool} adds fields that the request does not have: ${missing.join(", ")}`] : []),
    ...(joinsRepeated && isRepeated ? [`${tool} joins repeated fields`] : []),
  ];
}

/** The URL; whatever a tool might rewrite in the target is the caller's concern. */
export function urlOf(request: SnippetRequest): string {
  return `${request.scheme}://${request.authority}${request.target === "*" ? "/" : request.target}`;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Controls, marks that reorder or hide text, and line separators: nothing that belongs on a screen to be copied from. */
const UNSAFE_TO_SHOW = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u;
const UNSAFE_TO_SHOW_BUT_LINE_ENDS = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u;

/**
 * The text that bytes spell in UTF-8 when it can stand in a snippet as it is: undefined when it is no text, or has
 * characters that a terminal would act on or that would make it look like another one.
 */
export function shownText(bytes: Uint8Array, options: { readonly lineEnds: boolean }): string | undefined {
  try {
    const text = UTF8.decode(bytes);
    return (options.lineEnds ? UNSAFE_TO_SHOW_BUT_LINE_ENDS : UNSAFE_TO_SHOW).test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The bytes of a text of one character per byte. */
export function wireBytes(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}
