import {
  type Condition,
  CONDITION_LIMITS,
  MOCK_LIMITS,
  type MockResponse,
  type TrafficEntry,
} from "@headworks/capture-contract";
import { encodeAsDeclared } from "@headworks/http-fields/content-coding";
import { filledResponse, type MockDraft, plainDraft } from "./mock-rule.ts";

export type DraftReading =
  | { readonly ok: true; readonly draft: MockDraft }
  | { readonly ok: false; readonly problem: string };

/** The rule that repeats a captured response; `entry` has its bodies, decoded where possible. */
export function draftOfEntry(entry: TrafficEntry, namePrefix: string): DraftReading {
  const { request, response } = entry;
  if (entry.is_passthrough) return refused("A tunnel has no response to replay");
  if (response === null) return refused("The entry has no response");
  if (response.status_code < 200) return refused(`A response with status ${response.status_code} cannot be replayed`);
  if (response.body_state === "truncated") return refused("The response body was not stored completely");
  if (response.body_state === "not_stored") return refused("The response body was not stored");
  const bytes = wireBytes(response.body, response.body_encoding);
  const made = responseOf(response.status_code, response.headers_list, bytes, request.method);
  if (typeof made === "string") return refused(made);
  const condition = exactly(request.method, request.url);
  const name = `${namePrefix}${request.method} ${request.url}`;
  return { ok: true, draft: plainDraft(name, condition, { type: "single", response: made }) };
}

function refused(problem: string): DraftReading {
  return { ok: false, problem };
}

function wireBytes(body: string | null, encoding: "utf8" | "base64" | null): Buffer {
  if (body === null) return Buffer.alloc(0);
  return encoding === "base64" ? Buffer.from(body.replace(/^base64:/, ""), "base64") : Buffer.from(body);
}

/** A condition for a method and exact URL. For a URL too long for a pattern it matches the beginning. */
export function exactly(method: string, url: string): Condition {
  const bare = url.replace(/#.*$/s, "");
  const whole = `^${escapedPattern(bare)}$`;
  const pattern = whole.length <= CONDITION_LIMITS.patternLength ? whole : beginningWithinLimit(bare);
  return {
    type: "and",
    conditions: [
      { type: "url_pattern", pattern },
      { type: "method", method },
    ],
  };
}

function beginningWithinLimit(url: string): string {
  let length = CONDITION_LIMITS.patternLength;
  while (escapedPattern(url.slice(0, length)).length + 1 > CONDITION_LIMITS.patternLength) length -= 1;
  return `^${escapedPattern(url.slice(0, length))}`;
}

export function escapedPattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** Hop-by-hop fields, and fields about a removed coding. */
const LEFT_OUT = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "alt-svc",
]);

/**
 * A response of these parts, or the reason why there is none. `bytes` are encoded as `fields` declare. `method` is that
 * of the request: a response to HEAD keeps its announced length.
 */
export function responseOf(
  status: number,
  fields: readonly (readonly [name: string, value: string])[],
  bytes: Buffer,
  method: string,
): MockResponse | string {
  if (bytes.length > MOCK_LIMITS.bodyBytes) {
    return `The body of ${bytes.length} bytes is larger than the limit of ${MOCK_LIMITS.bodyBytes}`;
  }
  const isKept = (lowerName: string): boolean =>
    !LEFT_OUT.has(lowerName) || (lowerName === "content-length" && (method === "HEAD" || status === 304));
  const kept = fields.filter(([name]) => isKept(name.toLowerCase()) && isToken(name));
  const headers = joinedFields(kept);
  const isCoded = kept.some(([name]) => name.toLowerCase() === "content-encoding");
  const type = kept.find(([name]) => name.toLowerCase() === "content-type")?.[1];
  const text = isCoded ? undefined : exactText(bytes, type);
  if (bytes.length === 0) return filledResponse({ status_code: status, headers });
  if (text !== undefined) return filledResponse({ status_code: status, headers, body: text });
  return filledResponse({ status_code: status, headers, body_base64: bytes.toString("base64") });
}

/** Token of RFC 9110 section 5.6.2. */
export function isToken(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name);
}

/** Values grouped by name, in order; the first spelling of a name wins. */
function joinedFields(fields: readonly (readonly [string, string])[]): Record<string, string | string[]> {
  const byName = new Map<string, { readonly name: string; readonly values: string[] }>();
  for (const [name, value] of fields) {
    const clean = value.replace(/[\u0000-\u0008\u000a-\u001f\u007f]/g, " ");
    const known = byName.get(name.toLowerCase());
    if (known === undefined) byName.set(name.toLowerCase(), { name, values: [clean] });
    else if (known.values.length < 100) known.values.push(clean);
  }
  return Object.fromEntries(
    [...byName.values()].map(({ name, values }) => [name, values.length === 1 ? (values[0] ?? "") : values]),
  );
}

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text that encodes to the same bytes under this Content-Type; undefined when there is none. */
function exactText(bytes: Buffer, type: string | undefined): string | undefined {
  try {
    const text = STRICT.decode(bytes);
    // Servers declare charsets that their bodies are not in.
    return encodeAsDeclared(text, type).equals(bytes) ? text : undefined;
  } catch {
    return undefined;
  }
}
