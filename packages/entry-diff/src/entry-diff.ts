import type { BodyDiff, EntryDiff, RequestData, ResponseData, Timings } from "@headworks/capture-contract";
import { isJson, isTextual, parseMediaType } from "@headworks/http-fields";
import { isNumeric, type Json, readJson } from "@headworks/json";
import { diffJson, type IgnoredPaths } from "./json-diff.ts";
import { diffText } from "./text-diff.ts";

type HeadersDiff = EntryDiff["request_headers"];

/** Whether a field is ignored, by lower-case name. */
export type HeaderMatcher = (lowerName: string) => boolean;

/** Fields that usually vary between equal responses. */
export const VOLATILE_HEADERS: readonly string[] = [
  "date",
  "age",
  "expires",
  "last-modified",
  "set-cookie",
  "content-length",
  "connection",
  "proxy-connection",
  "keep-alive",
  "transfer-encoding",
  "server-timing",
  "traceparent",
  "tracestate",
  "x-b3-*",
  "x-amz-*",
  "x-amzn-*",
  "x-cache*",
  "x-timer",
  "x-served-by",
  "x-runtime",
  "x-response-time",
  "x-*request-id",
  "x-*correlation-id",
  "x-trace-id",
  "x-cloud-trace-context",
  "cf-ray",
  "report-to",
  "nel",
];

/** Names may contain `*` as a wildcard. */
export function compileHeaderNames(names: readonly string[] = VOLATILE_HEADERS): HeaderMatcher {
  const lower = names.map((name) => name.trim().toLowerCase());
  const exact = new Set(lower.filter((name) => !name.includes("*")));
  const patterns = lower.filter((name) => name.includes("*")).map((name) => name.split("*"));
  return (name) => exact.has(name) || patterns.some((parts) => fits(name, parts));
}

/** Greedy match of the parts in order, anchored at both ends: linear for every pattern. */
function fits(name: string, parts: readonly string[]): boolean {
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= name.length - last.length;
}

/** Compares fields by name in any order; values of one name in order. */
export function compareHeaders(
  left: readonly (readonly [string, string])[],
  right: readonly (readonly [string, string])[],
  isIgnored: HeaderMatcher,
): HeadersDiff {
  const leftFields = byName(left);
  const rightFields = byName(right);
  const changed: HeadersDiff["changed"] = [];
  const ignored: HeadersDiff["ignored"] = [];
  for (const lower of new Set([...leftFields.keys(), ...rightFields.keys()])) {
    const before = leftFields.get(lower);
    const after = rightFields.get(lower);
    if (before && after && isSame(before.values, after.values)) continue;
    const name = before?.name ?? after?.name ?? lower;
    (isIgnored(lower) ? ignored : changed).push({ name, left: before?.values ?? null, right: after?.values ?? null });
  }
  return { changed, ignored };
}

interface Field {
  readonly name: string;
  readonly values: string[];
}

function byName(fields: readonly (readonly [string, string])[]): Map<string, Field> {
  const found = new Map<string, Field>();
  for (const [name, value] of fields) {
    const lower = name.toLowerCase();
    const known = found.get(lower);
    if (known) known.values.push(value);
    else found.set(lower, { name, values: [value] });
  }
  return found;
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((value, index) => value === right[index]);
}

/** A decoded body of one side. */
export type SideBody =
  | { readonly kind: "none" }
  | {
      readonly kind: "text";
      readonly text: string;
      readonly sizeBytes: number;
      readonly mayBeJson: boolean;
      readonly sha256: string | null;
    }
  /** `bytes` in any encoding that preserves equality, used if the hash is unknown. */
  | { readonly kind: "binary"; readonly sizeBytes: number; readonly sha256: string | null; readonly bytes?: string }
  | { readonly kind: "unknown"; readonly sizeBytes: number; readonly reason: string };

interface BodyOptions {
  readonly ignored: IgnoredPaths;
  /** Compare types of JSON values instead of values. */
  readonly shape: boolean;
}

/** Longer texts are compared bytewise only. */
const MAX_CHARACTERS = 4_194_304;
const MAX_JSON_CHANGES = 5000;
const MAX_PART_CHARACTERS = 1_048_576;

/** Deeper documents are compared as text. */
const MAX_JSON_DEPTH = 500;

/** A decoded body as the API shows it (`base64:` marks bytes), or null without one. */
export function sideBody(
  message: {
    readonly body: string | null;
    readonly content_type: string | null;
    readonly body_size: number;
    readonly body_state: string;
  },
  sha256: string | null,
): SideBody {
  const { body, content_type: contentType, body_size: sizeBytes, body_state: state } = message;
  if (state === "none" || sizeBytes === 0) return { kind: "none" };
  if (state !== "complete" || body === null) {
    return { kind: "unknown", sizeBytes, reason: state === "truncated" ? "was stored in part" : "was not stored" };
  }
  const type = contentType === null ? undefined : parseMediaType(contentType);
  const isText = type === undefined || isTextual(type) || isJson(type);
  if (body.startsWith("base64:")) return { kind: "binary", sizeBytes, sha256, bytes: body };
  if (!isText && body.includes("\0")) return { kind: "binary", sizeBytes, sha256, bytes: body };
  const mayBeJson = (type !== undefined && isJson(type)) || /^\s*[[{]/u.test(body);
  return { kind: "text", text: body, sizeBytes, mayBeJson, sha256 };
}

/** Compares JSON as trees, text by lines, everything else by hash. */
export function compareBodies(left: SideBody, right: SideBody, options: BodyOptions): BodyDiff {
  const sizes = { left_size: sizeOf(left), right_size: sizeOf(right), ...hashesOf(left, right) };
  if (left.kind === "none" && right.kind === "none") return { kind: "none", left_size: null, right_size: null };
  for (const [side, body] of [
    ["left", left],
    ["right", right],
  ] as const) {
    if (body.kind === "unknown") return { kind: "incomparable", ...sizes, reason: `The ${side} body ${body.reason}` };
  }
  if (isEqual(left, right)) return { kind: "same", ...sizes };
  const texts = [left, right].map((body) => (body.kind === "text" ? body.text : body.kind === "none" ? "" : undefined));
  const [leftText, rightText] = texts;
  if (leftText === undefined || rightText === undefined) return { kind: "binary", ...sizes };
  if (leftText.length > MAX_CHARACTERS || rightText.length > MAX_CHARACTERS) {
    return { kind: "binary", ...sizes, reason: "Too long to be compared as text" };
  }
  const json = jsonDiff(left, right, options);
  if (json !== undefined) return { ...json, ...sizes };
  const { parts, isTruncated } = diffText(leftText, rightText, MAX_PART_CHARACTERS);
  return { kind: "text", ...sizes, parts, ...(isTruncated ? { truncated: true } : {}) };
}

function sizeOf(body: SideBody): number | null {
  return body.kind === "none" ? null : body.sizeBytes;
}

function hashesOf(left: SideBody, right: SideBody): Pick<BodyDiff, "left_sha256" | "right_sha256"> {
  const hash = (body: SideBody): string | null => ("sha256" in body ? body.sha256 : null);
  return { left_sha256: hash(left), right_sha256: hash(right) };
}

function isEqual(left: SideBody, right: SideBody): boolean {
  if (left.kind === "text" && right.kind === "text") return left.text === right.text;
  if (left.kind !== "binary" || right.kind !== "binary" || left.sizeBytes !== right.sizeBytes) return false;
  if (left.sha256 !== null && right.sha256 !== null) return left.sha256 === right.sha256;
  return left.bytes !== undefined && left.bytes === right.bytes;
}

/** Undefined unless both are JSON: a text diff is used then. */
function jsonDiff(
  left: SideBody,
  right: SideBody,
  { ignored, shape }: BodyOptions,
): Omit<BodyDiff, "left_size" | "right_size"> | undefined {
  const leftJson = jsonOf(left);
  const rightJson = jsonOf(right);
  if (leftJson === undefined || rightJson === undefined) return undefined;
  const seen = (json: Json): Json => (shape ? shapeOf(json) : json);
  const { changes, ignoredChanges, isTruncated } = diffJson(seen(leftJson.json), seen(rightJson.json), {
    ignored,
    maxChanges: MAX_JSON_CHANGES,
  });
  if (changes.length === 0 && ignoredChanges === 0) return { kind: "same" };
  return { kind: "json", changes, ignored_changes: ignoredChanges, ...(isTruncated ? { truncated: true } : {}) };
}

function jsonOf(body: SideBody): { readonly json: Json } | undefined {
  if (body.kind !== "text" || !body.mayBeJson || isTooDeep(body.text)) return undefined;
  try {
    return { json: readJson(body.text) };
  } catch {
    return undefined;
  }
}

/** Counts brackets outside of strings, without recursion. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isInString) {
      if (character === "\\") at += 1;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === "[" || character === "{") {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return true;
    } else if (character === "]" || character === "}") depth -= 1;
  }
  return false;
}

interface Shape {
  readonly types: Set<string>;
  members: Map<string, Shape> | undefined;
  elements: Shape | undefined;
}

/**
 * Replaces values by their types: `{"id": 1, "tags": ["a"]}` becomes `{"id": "number", "tags": ["string"]}`. A list
 * becomes one element that merges all of its elements.
 */
export function shapeOf(value: Json): Json {
  const shape = emptyShape();
  gather(shape, value);
  return shown(shape);
}

function emptyShape(): Shape {
  return { types: new Set(), members: undefined, elements: undefined };
}

function gather(shape: Shape, value: Json): void {
  if (Array.isArray(value)) {
    shape.elements ??= emptyShape();
    for (const element of value as readonly Json[]) gather(shape.elements, element);
  } else if (typeof value === "object" && value !== null && !isNumeric(value)) {
    shape.members ??= new Map();
    for (const [name, member] of Object.entries(value)) {
      const known = shape.members.get(name) ?? emptyShape();
      shape.members.set(name, known);
      gather(known, member);
    }
  } else {
    shape.types.add(value === null ? "null" : isNumeric(value) ? "number" : typeof value);
  }
}

/** Mixed types are all shown. */
function shown({ types, members, elements }: Shape): Json {
  const kinds: Json[] = [];
  if (types.size > 0) kinds.push([...types].sort().join(" | "));
  if (members) kinds.push(Object.fromEntries([...members].map(([name, member]) => [name, shown(member)])));
  if (elements) kinds.push(isEmpty(elements) ? [] : [shown(elements)]);
  return kinds.length === 1 ? (kinds[0] as Json) : { "any of": kinds };
}

function isEmpty({ types, members, elements }: Shape): boolean {
  return types.size === 0 && members === undefined && elements === undefined;
}

/** An entry, or a replay that was not captured. */
export interface DiffSide {
  readonly id: string | null;
  readonly request: Pick<RequestData, "method" | "url" | "headers_list">;
  readonly response: Pick<ResponseData, "status_code" | "headers_list"> | null;
  readonly requestBody: SideBody;
  readonly responseBody: SideBody;
  readonly failureCode: string | null;
  readonly durationMs: number | null;
  readonly timings: Timings;
}

export interface EntryOptions extends BodyOptions {
  readonly ignoredHeaders: HeaderMatcher;
}

/** Compares two exchanges. Ignored paths, ignored headers and timings are reported but do not count as differences. */
export function compareEntries(left: DiffSide, right: DiffSide, options: EntryOptions): EntryDiff {
  const { ignoredHeaders } = options;
  const method = change(left.request.method, right.request.method);
  const url = change(left.request.url, right.request.url);
  const status = change(statusOf(left), statusOf(right));
  const failure = change(left.failureCode, right.failureCode);
  const requestHeaders = compareHeaders(left.request.headers_list, right.request.headers_list, ignoredHeaders);
  const responseHeaders = compareHeaders(
    left.response?.headers_list ?? [],
    right.response?.headers_list ?? [],
    ignoredHeaders,
  );
  const requestBody = compareBodies(left.requestBody, right.requestBody, options);
  const responseBody = compareBodies(left.responseBody, right.responseBody, options);
  const isRequestSame =
    method === null && url === null && requestHeaders.changed.length === 0 && isBodySame(requestBody);
  const isResponseSame =
    status === null && failure === null && responseHeaders.changed.length === 0 && isBodySame(responseBody);
  return {
    same: isRequestSame && isResponseSame,
    request_same: isRequestSame,
    response_same: isResponseSame,
    left_id: left.id,
    right_id: right.id,
    method,
    url,
    status,
    failure,
    request_headers: requestHeaders,
    response_headers: responseHeaders,
    request_body: requestBody,
    response_body: responseBody,
    timings: timingsOf(left, right),
  };
}

function change(left: string | null, right: string | null): { left: string | null; right: string | null } | null {
  return left === right ? null : { left, right };
}

function statusOf({ response }: DiffSide): string | null {
  return response === null ? null : String(response.status_code);
}

/** Whether the bodies are equal apart from ignored paths; incomparable bodies are not. */
export function isBodySame({ kind, changes, truncated }: EntryDiff["request_body"]): boolean {
  if (kind === "none" || kind === "same") return true;
  return kind === "json" && changes?.length === 0 && truncated !== true;
}

function timingsOf(left: DiffSide, right: DiffSide): EntryDiff["timings"] {
  const names = ["dns", "connect", "tls", "send", "wait", "receive"] as const;
  const pairs = [
    ["duration", left.durationMs, right.durationMs] as const,
    ...names.map((name) => [name, left.timings[name], right.timings[name]] as const),
  ];
  return Object.fromEntries(
    pairs.map(([name, before, after]) => {
      const delta = before === null || after === null ? null : Math.round((after - before) * 100) / 100;
      return [name, { left: before, right: after, delta }];
    }),
  );
}
