import { isNumeric } from "@headworks/json";
import { randomInt, randomUUID } from "node:crypto";

export interface TemplateRequest {
  readonly method: string;
  readonly url: string;
  /** Without the query. */
  readonly path: string;
  readonly host: string;
  /** Without the question mark. */
  readonly query: string;
  header(name: string): string | undefined;
  queryParameter(name: string): string | undefined;
  /** The body as parsed JSON; undefined for other bodies. */
  json(): unknown;
  /** The body as text; empty for a binary body. */
  text(): string;
}

export interface Template {
  /** True when it uses the request body. */
  readonly needsBody: boolean;
  /** Returns at most `limitChars` characters and drops the rest. */
  render(request: TemplateRequest, nowMs: number, limitChars: number): string;
}

/** Maximum length of a name between braces; longer ones are plain text. */
const MAX_NAME_LENGTH = 512;
/** Maximum length of one inserted value. */
const MAX_VALUE_LENGTH = 1_048_576;

type Value = (request: TemplateRequest, nowMs: number) => string;
interface Variable {
  readonly value: Value;
  readonly needsBody: boolean;
}

/**
 * Compiles the `{{name}}` variables of a text. Templates contain no code: names are looked up in a fixed list or in the
 * request, absent values are empty, and unknown names stay as written.
 */
export function compileTemplate(text: string): Template {
  const parts: (string | Variable)[] = [];
  let from = 0;
  for (let open = text.indexOf("{{"); open !== -1; open = text.indexOf("{{", open + 1)) {
    if (open < from) continue;
    const inside = text.slice(open + 2, open + 2 + MAX_NAME_LENGTH + 2);
    const close = inside.indexOf("}}");
    const variable = close === -1 ? undefined : variableOf(inside.slice(0, close).trim());
    if (variable === undefined) continue;
    parts.push(text.slice(from, open), variable);
    from = open + close + 4;
  }
  parts.push(text.slice(from));
  return {
    needsBody: parts.some((part) => typeof part === "object" && part.needsBody),
    render: (request, nowMs, limitChars) => rendered(parts, request, nowMs, limitChars),
  };
}

function rendered(
  parts: readonly (string | Variable)[],
  request: TemplateRequest,
  nowMs: number,
  limitChars: number,
): string {
  let result = "";
  for (const part of parts) {
    if (result.length >= limitChars) break;
    const piece = typeof part === "string" ? part : part.value(request, nowMs).slice(0, MAX_VALUE_LENGTH);
    result += piece.length <= limitChars - result.length ? piece : piece.slice(0, limitChars - result.length);
  }
  return result;
}

const iso = (nowMs: number): string => new Date(nowMs).toISOString();

const PLAIN: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["timestamp", (_, nowMs) => String(Math.floor(nowMs / 1000))],
  ["timestamp_ms", (_, nowMs) => String(nowMs)],
  ["uuid", () => randomUUID()],
  ["date", (_, nowMs) => iso(nowMs).slice(0, 10)],
  ["time", (_, nowMs) => iso(nowMs).slice(11, 19)],
  ["datetime", (_, nowMs) => `${iso(nowMs).slice(0, 19)}Z`],
  ["random_int", () => String(randomInt(1_000_000))],
  ["random_float", () => (randomInt(100) / 100).toFixed(2)],
  ["request.method", (request) => request.method],
  ["request.url", (request) => request.url],
  ["request.path", (request) => request.path],
  ["request.host", (request) => request.host],
  ["request.query", (request) => request.query],
]);

const HEADERS = "request.headers.";
const QUERY = "request.query.";
const BODY = "request.body";

function variableOf(name: string): Variable | undefined {
  const plain = PLAIN.get(name);
  if (plain !== undefined) return { value: plain, needsBody: false };
  if (name.startsWith(HEADERS)) {
    const field = name.slice(HEADERS.length);
    return { value: (request) => request.header(field) ?? "", needsBody: false };
  }
  if (name.startsWith(QUERY)) {
    const parameter = name.slice(QUERY.length);
    return { value: (request) => request.queryParameter(parameter) ?? "", needsBody: false };
  }
  if (name === BODY) return { value: (request) => request.text(), needsBody: true };
  if (!name.startsWith(`${BODY}.`)) return undefined;
  const steps = name.slice(BODY.length + 1).split(".");
  return { value: (request) => shown(memberAt(request.json(), steps)), needsBody: true };
}

/** Own members only: inherited ones are not part of the body. */
function memberAt(root: unknown, steps: readonly string[]): unknown {
  let value = root;
  for (const step of steps) {
    if (typeof value !== "object" || value === null || isNumeric(value)) return undefined;
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

/** Strings unchanged, other values as JSON with numbers as sent; an absent value is empty. */
function shown(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
