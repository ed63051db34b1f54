import type { EntryDiff } from "@headworks/capture-contract";

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
