import { CONDITION_LIMITS, MOCK_LIMITS } from "@headworks/capture-contract";
import type { Condition, MockResponse, TrafficEntry } from "@headworks/capture-contract";
import { encodeAsDeclared } from "@headworks/http-fields/content-coding";
import { filledResponse, plainDraft } from "./mock-rule.ts";
import type { MockDraft } from "./mock-rule.ts";

/** A rule that was made, or a sentence about why none could be. */
export type DraftReading =
  | { readonly ok: true; readonly draft: MockDraft }
  | { readonly ok: false; readonly problem: string };

/** The rule that gives a captured answer again; `entry` with its bodies, content coding removed where that was possible. */
export function draftOfEntry(entry: TrafficEntry, namePrefix: string): DraftReading {
  const { request, response } = entry;
  if (entry.is_passthrough) return refused("A tunnel has no answer that could be given again");
  if (response === null) return refused("The entry has no answer");
  if (response.status_code < 200) return refused(`An answer with status ${response.status_code} cannot be given again`);
  if (response.body_state === "truncated") return refused("The body of the answer was not stored whole");
  if (response.body_state === "not_stored") return refused("The body of the answer was not stored");
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

/** Requests of a method to exactly one URL. A URL too long for a pattern counts by its beginning. */
export function exactly(method: string, url: string): Condition {
  const bare = url.replace(/#.*$/s, "");
  const whole = `^${escapedPattern(bare)}$`;
  const pattern = whole.length <= CONDITION_LIMITS.patternLength ? whole : longestBeginning(bare);
  return {
    type: "and",
    conditions: [
      { type: "url_pattern", pattern },
      { type: "method", method },
    ],
  };
}

function longestBeginning(url: string): string {
  let length = CONDITION_LIMITS.patternLength;
  while (escapedPattern(url.slice(0, length)).length + 1 > CONDITION_LIMITS.patternLength) length -= 1;
  return `^${escapedPattern(url.slice(0, length))}`;
}

/** A pattern that matches exactly this text. */
export function escapedPattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** Fields that belong to one message on one connection, or speak of a coding that was removed. */
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
 * An answer of these parts, or why there can be none. `bytes` are as `fields` say: a Content-Encoding that is still among
 * them is still on the bytes. `method` is that of its request: the length that a response to HEAD announces is kept.
 */
export function responseOf(
  status: number,
  fields: readonly (readonly [name: string, value: string])[],
  bytes: Buffer,
  method: string,
): MockResponse | string {
  if (bytes.length > MOCK_LIMITS.bodyBytes) {
    return `The body of ${bytes.length} bytes is larger than the ${MOCK_LIMITS.bodyBytes} that a rule may have`;
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

/** Whether a text is a name of a field (RFC 9110 section 5.6.2). */
export function isToken(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name);
}

/** Values of one name together, in their order; the first spelling of the name wins. */
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

/** The text that gives the same bytes again in an answer of this Content-Type, if they are one. */
function exactText(bytes: Buffer, type: string | undefined): string | undefined {
  try {
    const text = STRICT.decode(bytes);
    // Servers name charsets that their bytes are not in.
    return encodeAsDeclared(text, type).equals(bytes) ? text : undefined;
  } catch {
    return undefined;
  }
}
