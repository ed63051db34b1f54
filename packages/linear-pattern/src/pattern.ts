import { Automaton } from "./automaton.ts";
import { buildProgram, LARGEST_PROGRAM, ProgramTooLarge, type Program } from "./program.ts";
import { parsePattern, PatternRefusal } from "./syntax.ts";

/** Why a pattern is refused; offsets are relative to its source, in UTF-16 units, `end` exclusive. */
export interface PatternError {
  readonly message: string;
  readonly start: number;
  readonly end: number;
}

/** The outcome of checking a pattern. */
export type PatternCheck = { readonly ok: true } | { readonly ok: false; readonly error: PatternError };

/** A compiled pattern. */
export interface LinearPattern {
  /** Whether the pattern matches somewhere in the text; takes time linear in the text, whatever pattern and text are. */
  test(text: string): boolean;
}

const LONGEST_SOURCE = 1000;

function build(source: string, flags: string): Program | PatternError {
  if (source.length > LONGEST_SOURCE) {
    return {
      message: `a pattern may have at most ${LONGEST_SOURCE} characters`,
      start: LONGEST_SOURCE,
      end: source.length,
    };
  }
  const wrong = /[^ims]|(.).*\1/s.exec(flags);
  if (wrong !== null) {
    return {
      message: `the flags \`${flags}\` are not supported; use \`i\`, \`m\` or \`s\`, each once`,
      start: source.length,
      end: source.length + 1 + flags.length,
    };
  }
  const modes = { ignoreCase: flags.includes("i"), multiline: flags.includes("m"), dotAll: flags.includes("s") };
  try {
    return buildProgram(parsePattern(source, modes));
  } catch (error) {
    if (error instanceof PatternRefusal) return { message: error.message, start: error.start, end: error.end };
    if (error instanceof ProgramTooLarge) {
      return {
        message: `the pattern unfolds into more than ${LARGEST_PROGRAM} steps; use smaller counts`,
        start: 0,
        end: source.length,
      };
    }
    throw error;
  }
}

/**
 * Says whether a pattern can be run in linear time by `compilePattern`: the syntax of ECMAScript patterns (flags `i`,
 * `m`, `s`) without backreferences and look-around, at most 1,000 characters, counts up to 1,000. Nested quantifiers
 * and ambiguous alternatives are fine, because nothing here backtracks. A pattern that passes is *not* thereby safe
 * for `RegExp`.
 */
export function checkPattern(source: string, flags = ""): PatternCheck {
  const built = build(source, flags);
  return "instructions" in built ? { ok: true } : { ok: false, error: built };
}

/** Compiles a pattern. Throws a `RangeError` for one that `checkPattern` refuses. */
export function compilePattern(source: string, flags = ""): LinearPattern {
  const built = build(source, flags);
  if (!("instructions" in built)) throw new RangeError(`pattern /${source}/: ${built.message}`);
  return new Automaton(built);
}
