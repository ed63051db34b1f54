import { checkPattern, compileTextPredicate, type TextPredicate } from "@headworks/linear-pattern";

export interface PatternMode {
  readonly caseless: boolean;
  /** A wildcard matches the whole text, any part, or a URL at its path or host. */
  readonly wildcard: "whole" | "part" | "url";
}

/** Offsets are UTF-16 units, `end` exclusive. */
export interface PatternIssue {
  readonly message: string;
  readonly start: number;
  readonly end: number;
}

/** Source and flags for the linear-time engine. */
export interface PatternReading {
  readonly kind: "regex" | "wildcard";
  readonly source: string;
  readonly flags: string;
}

/** Step limit per text, some tens of nanoseconds each; only malicious patterns reach it. */
const MAX_WORK = 500_000;

/** Characters that occur in regular expressions but not in wildcards people write. */
const ONLY_IN_REGEX = /[\\^$()[\]{}|+]/;
/** Leading flags as in `(?i)users`, which other engines support. */
const LEADING_FLAGS = /^\(\?([ims]{1,3})\)/;

/**
 * Parses a pattern as a regular expression or wildcard. `*` without any regular expression character is a wildcard
 * (`/api/*`, `*.example.com`), and so is a pattern that begins with `*`, and one that is neither a valid regular
 * expression nor contains its characters. In a wildcard `*` matches any text and `?` one character; `?` alone makes no
 * wildcard, because `https?://` is a regular expression.
 */
export function readPattern(pattern: string, mode: PatternMode): PatternReading | PatternIssue {
  if (looksLikeWildcard(pattern)) return checked(wildcardReading(pattern, mode), pattern, 0);
  const leading = LEADING_FLAGS.exec(pattern);
  const skipped = leading?.[0].length ?? 0;
  const flags = [...new Set((mode.caseless ? "i" : "") + (leading?.[1] ?? ""))].join("");
  const reading: PatternReading = { kind: "regex", source: pattern.slice(skipped), flags };
  const result = checked(reading, pattern, skipped);
  if ("source" in result || !/[*?]/.test(pattern)) return result;
  const isWildcard = /^[*?]/.test(pattern) || !ONLY_IN_REGEX.test(pattern);
  return isWildcard ? checked(wildcardReading(pattern, mode), pattern, 0) : result;
}

function looksLikeWildcard(pattern: string): boolean {
  return pattern.includes("*") && !ONLY_IN_REGEX.test(pattern) && !/\.[*?]/.test(pattern);
}

function checked(reading: PatternReading, pattern: string, offset: number): PatternReading | PatternIssue {
  const check = checkPattern(reading.source, reading.flags);
  if (check.ok) return reading;
  // Positions in the generated expression would be misleading.
  if (reading.kind === "wildcard") return { message: check.error.message, start: 0, end: pattern.length };
  const { message, start, end } = check.error;
  return { message, start: start + offset, end: end + offset };
}

const SCHEME_IN_FRONT = /^(?:\*|[a-z*][a-z0-9*+.-]*:\/\/)/i;

function wildcardReading(pattern: string, mode: PatternMode): PatternReading {
  const body = pattern.replace(/\*+|\?|[^*?]+/g, (part) =>
    part.startsWith("*") ? ".*" : part === "?" ? "." : part.replace(/[\\^$.()[\]{}|+/]/g, "\\$&"),
  );
  const flags = mode.caseless ? "is" : "s";
  if (mode.wildcard === "part") return { kind: "wildcard", source: trimmedStars(body), flags };
  const start =
    mode.wildcard === "whole" || SCHEME_IN_FRONT.test(pattern)
      ? "^"
      : pattern.startsWith("/")
        ? "^[^:/?#]+:\\/\\/[^/?#]*"
        : "^[^:/?#]+:\\/\\/";
  return { kind: "wildcard", source: `${start}${body}$`, flags };
}

/** Leading and trailing wildcards are redundant in unanchored matches. */
function trimmedStars(source: string): string {
  return source.replace(/^(?:\.\*)+/, "").replace(/(?<!\\)(?:\.\*)+$/, "");
}

/** Compiled patterns in use, by key: rules are recompiled on any change, and most patterns stay. */
const inUse = new Map<string, WeakRef<TextPredicate>>();
const released = new FinalizationRegistry<string>((key) => {
  if (inUse.get(key)?.deref() === undefined) inUse.delete(key);
});

/** Throws a `RangeError` for a pattern that `readPattern` rejects. */
export function compileTextPattern(pattern: string, mode: PatternMode): TextPredicate {
  return compiledOnce(`${mode.caseless} ${mode.wildcard} ${pattern}`, pattern, () => readPattern(pattern, mode));
}

/**
 * A pattern in which `*` matches any text, `?` one character and all others themselves, in any case; it matches whole
 * texts. Throws a `RangeError` for one that is too long.
 */
export function compileWildcard(pattern: string): TextPredicate {
  const mode: PatternMode = { caseless: true, wildcard: "whole" };
  return compiledOnce(`wildcard ${pattern}`, pattern, () => checked(wildcardReading(pattern, mode), pattern, 0));
}

function compiledOnce(key: string, pattern: string, read: () => PatternReading | PatternIssue): TextPredicate {
  const known = inUse.get(key)?.deref();
  if (known !== undefined) return known;
  const reading = read();
  if ("message" in reading) throw new RangeError(`the pattern \`${pattern}\`: ${reading.message}`);
  const made = compileTextPredicate(reading.source, reading.flags, MAX_WORK);
  inUse.set(key, new WeakRef(made));
  released.register(made, key);
  return made;
}
