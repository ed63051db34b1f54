import { checkPattern, compileTextPredicate, type TextPredicate } from "@headworks/linear-pattern";

/** How the texts of a kind of condition are compared with its pattern. */
export interface PatternManner {
  /** Letters compare without case. */
  readonly caseless: boolean;
  /**
   * What a wildcard covers: the whole text; any part of it; or a URL, where one that begins with a slash begins at the path
   * and one without a scheme at the host.
   */
  readonly wildcard: "whole" | "part" | "url";
}

/** Why a pattern is refused: offsets in UTF-16 units, `end` exclusive. */
export interface PatternIssue {
  readonly message: string;
  readonly start: number;
  readonly end: number;
}

/** A pattern as it is run: source and flags for the linear-time engine. */
export interface PatternReading {
  readonly kind: "regex" | "wildcard";
  readonly source: string;
  readonly flags: string;
}

/** Steps that one text may cost, some tens of nanoseconds each; only patterns made to be slow spend them. */
const MAX_WORK = 500_000;

/** Characters that only regular expressions have; what contains one of them is none of the wildcards people write. */
const ONLY_IN_REGEX = /[\\^$()[\]{}|+]/;
/** Flags in front, as in `(?i)users`, which other engines know. */
const LEADING_FLAGS = /^\(\?([ims]{1,3})\)/;

/**
 * Reads a pattern as a regular expression or as a wildcard. `*` without any sign of a regular expression is a wildcard
 * (`/api/*`, `*.example.com`), and so is what begins with `*` or what is no regular expression and has no sign of one.
 * In a wildcard `*` stands for any text and `?` for one character; alone, `?` makes no wildcard, because `https?://` is
 * meant as it stands.
 */
export function readPattern(pattern: string, manner: PatternManner): PatternReading | PatternIssue {
  if (looksLikeWildcard(pattern)) return checked(wildcardReading(pattern, manner), pattern, 0);
  const leading = LEADING_FLAGS.exec(pattern);
  const skipped = leading?.[0].length ?? 0;
  const flags = [...new Set((manner.caseless ? "i" : "") + (leading?.[1] ?? ""))].join("");
  const reading: PatternReading = { kind: "regex", source: pattern.slice(skipped), flags };
  const result = checked(reading, pattern, skipped);
  if ("source" in result || !/[*?]/.test(pattern)) return result;
  const isWildcard = /^[*?]/.test(pattern) || !ONLY_IN_REGEX.test(pattern);
  return isWildcard ? checked(wildcardReading(pattern, manner), pattern, 0) : result;
}

function looksLikeWildcard(pattern: string): boolean {
  return pattern.includes("*") && !ONLY_IN_REGEX.test(pattern) && !/\.[*?]/.test(pattern);
}

function checked(reading: PatternReading, pattern: string, offset: number): PatternReading | PatternIssue {
  const check = checkPattern(reading.source, reading.flags);
  if (check.ok) return reading;
  // Places in what a wildcard was turned into would mislead.
  if (reading.kind === "wildcard") return { message: check.error.message, start: 0, end: pattern.length };
  const { message, start, end } = check.error;
  return { message, start: start + offset, end: end + offset };
}

const SCHEME_IN_FRONT = /^(?:\*|[a-z*][a-z0-9*+.-]*:\/\/)/i;

function wildcardReading(pattern: string, manner: PatternManner): PatternReading {
  const body = pattern.replace(/\*+|\?|[^*?]+/g, (part) =>
    part.startsWith("*") ? ".*" : part === "?" ? "." : part.replace(/[\\^$.()[\]{}|+/]/g, "\\$&"),
  );
  const flags = manner.caseless ? "is" : "s";
  if (manner.wildcard === "part") return { kind: "wildcard", source: trimmedStars(body), flags };
  const start =
    manner.wildcard === "whole" || SCHEME_IN_FRONT.test(pattern)
      ? "^"
      : pattern.startsWith("/")
        ? "^[^:/?#]+:\\/\\/[^/?#]*"
        : "^[^:/?#]+:\\/\\/";
  return { kind: "wildcard", source: `${start}${body}$`, flags };
}

/** Any text in front or behind says nothing where the match may lie anywhere. */
function trimmedStars(source: string): string {
  return source.replace(/^(?:\.\*)+/, "").replace(/(?<!\\)(?:\.\*)+$/, "");
}

/**
 * Patterns that somebody holds, by what they were made of: rules are compiled anew at every change of one of them, and most of
 * their patterns are the same as before.
 */
const held = new Map<string, WeakRef<TextPredicate>>();
const released = new FinalizationRegistry<string>((key) => {
  if (held.get(key)?.deref() === undefined) held.delete(key);
});

/** Throws a `RangeError` for a pattern that `readPattern` refuses. */
export function compileTextPattern(pattern: string, manner: PatternManner): TextPredicate {
  const key = `${manner.caseless} ${manner.wildcard} ${pattern}`;
  const known = held.get(key)?.deref();
  if (known !== undefined) return known;
  const reading = readPattern(pattern, manner);
  if ("message" in reading) throw new RangeError(`the pattern \`${pattern}\`: ${reading.message}`);
  const made = compileTextPredicate(reading.source, reading.flags, MAX_WORK);
  held.set(key, new WeakRef(made));
  released.register(made, key);
  return made;
}
