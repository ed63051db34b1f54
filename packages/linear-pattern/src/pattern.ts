import {
  Automaton,
  buildProgram,
  MAX_PROGRAM_SIZE,
  type Program,
  ProgramTooLarge,
  requiredStart,
} from "./automaton.ts";
import { buildCaptureProgram, CaptureMachine, type CaptureProgram } from "./capture-machine.ts";
import { type CharSet, parsePattern, type PatternNode, PatternRefusal } from "./syntax.ts";

/** Longer texts find no more than these. */
const MAX_LITERAL_LENGTH = 200;
const NOTHING: Sure = { exact: undefined, prefix: "", suffix: "", best: "" };

/** Why a pattern is refused; offsets are relative to its source, in UTF-16 units, `end` exclusive. */
export interface PatternError {
  readonly message: string;
  readonly start: number;
  readonly end: number;
}

export type PatternCheck = { readonly ok: true } | { readonly ok: false; readonly error: PatternError };

/** The leftmost match of a pattern; of several with the same start, the one that ECMAScript's `RegExp` would find. */
export interface PatternMatch {
  /** Offsets of the whole match, in UTF-16 units; `end` exclusive. */
  readonly start: number;
  readonly end: number;
  /** Captures by group number; 0 is the whole match. Undefined for a group that did not participate. */
  readonly groups: readonly (string | undefined)[];
  /** Captures of named groups, by name; without a prototype. */
  readonly named: Readonly<Record<string, string | undefined>>;
}

/** A compiled pattern. All methods take linear time for any pattern and text. */
export interface LinearPattern {
  /** Literal start of every matching text, for patterns that begin with `^` and plain characters; else empty. */
  readonly requiredStart: string;
  /** A text in lower case that every match contains; empty if unknown. */
  readonly requiredText: string;
  /** Number of capturing groups, including named ones. */
  readonly groupCount: number;
  /** Names of its groups, in order. */
  readonly groupNames: readonly string[];
  /** Whether the pattern matches somewhere in the text. Also false for a text beyond the work budget; see `search`. */
  test(text: string): boolean;
  /**
   * Whether the pattern matches somewhere in the text. `gave-up` for a text that exceeds the work budget, which takes
   * a pattern of hundreds of states and a long text crafted for it: neither result would be true.
   */
  search(text: string): boolean | "gave-up";
  /**
   * The first match at or after `from`; undefined if there is none. Costs more than `search`, and has the same
   * budget. The text before `from` still counts for `^` and `\b`.
   */
  match(text: string, from?: number): PatternMatch | undefined | "gave-up";
  /**
   * The text with every match replaced, left to right without overlaps, and the number of matches. `gave-up` if the
   * matches cost too many steps per unit of the text, or the result exceeds `maxUnits`.
   */
  replaceAll(text: string, replacement: (match: PatternMatch) => string, maxUnits?: number): Replaced | "gave-up";
}

export interface Replaced {
  readonly text: string;
  readonly count: number;
}

const MAX_SOURCE_LENGTH = 1000;

interface Built {
  readonly program: Program;
  readonly captures: CaptureProgram;
  readonly groupNames: readonly (string | undefined)[];
  readonly requiredStart: string;
  readonly requiredText: string;
}

function build(source: string, flags: string): Built | PatternError {
  if (source.length > MAX_SOURCE_LENGTH) {
    return {
      message: `a pattern may have at most ${MAX_SOURCE_LENGTH} characters`,
      start: MAX_SOURCE_LENGTH,
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
    const parsed = parsePattern(source, modes);
    return {
      program: buildProgram(parsed.node),
      captures: buildCaptureProgram(parsed),
      groupNames: parsed.groupNames,
      requiredStart: requiredStart(parsed.node),
      requiredText: requiredText(parsed.node),
    };
  } catch (error) {
    if (error instanceof PatternRefusal) return { message: error.message, start: error.start, end: error.end };
    if (error instanceof ProgramTooLarge) {
      return {
        message: `the pattern unfolds into more than ${MAX_PROGRAM_SIZE} steps; use smaller counts`,
        start: 0,
        end: source.length,
      };
    }
    throw error;
  }
}

/**
 * Checks whether `compilePattern` can run a pattern in linear time: the syntax of ECMAScript patterns (flags `i`,
 * `m`, `s`) without backreferences and look-around, at most 1,000 characters and 100 groups, counts up to 1,000.
 * Nested quantifiers and ambiguous alternatives are allowed, because nothing backtracks. A valid pattern is *not*
 * thereby safe for `RegExp`.
 */
export function checkPattern(source: string, flags = ""): PatternCheck {
  const built = build(source, flags);
  return "program" in built ? { ok: true } : { ok: false, error: built };
}

/** Default limit of visited instructions per text. */
const MAX_WORK = 2_000_000;

/**
 * Compiles a pattern. `maxWork` bounds the cost of one text, in steps of some tens of nanoseconds. Throws a
 * `RangeError` for a pattern that `checkPattern` refuses.
 */
export function compilePattern(source: string, flags = "", maxWork = MAX_WORK): LinearPattern {
  const built = build(source, flags);
  if (!("program" in built)) throw new RangeError(`pattern /${source}/: ${built.message}`);
  return new CompiledPattern(built, maxWork);
}

class CompiledPattern implements LinearPattern {
  readonly requiredStart: string;
  readonly requiredText: string;
  readonly groupCount: number;
  readonly groupNames: readonly string[];
  readonly #built: Built;
  readonly #maxWork: number;
  readonly #automaton: Automaton;
  /** Created for the first match: most patterns are only tested. */
  #machine: CaptureMachine | undefined;

  constructor(built: Built, maxWork: number) {
    this.#built = built;
    this.#maxWork = maxWork;
    this.#automaton = new Automaton(built.program, built.requiredStart, maxWork);
    this.requiredStart = built.requiredStart;
    this.requiredText = built.requiredText;
    this.groupCount = built.groupNames.length;
    this.groupNames = built.groupNames.filter((name) => name !== undefined);
  }

  test(text: string): boolean {
    return this.#automaton.search(text) === true;
  }

  search(text: string): boolean | "gave-up" {
    return this.#automaton.search(text);
  }

  match(text: string, from = 0): PatternMatch | undefined | "gave-up" {
    // The automaton is an order of magnitude faster, and most texts do not match most patterns.
    if (this.#automaton.search(text, from) === false) return undefined;
    const { captures, program, groupNames } = this.#built;
    const machine = (this.#machine ??= new CaptureMachine(captures, program.anchored, this.#maxWork));
    const slots = machine.run(text, from);
    return slots === undefined || slots === "gave-up" ? slots : matchOf(text, slots, groupNames);
  }

  replaceAll(text: string, replacement: (match: PatternMatch) => string, maxUnits = Infinity): Replaced | "gave-up" {
    const maxWork = Math.max(this.#maxWork, text.length * WORK_PER_UNIT);
    const pieces: string[] = [];
    let work = 0;
    let count = 0;
    let added = 0;
    let kept = 0;
    for (let from = 0; from <= text.length;) {
      const match = this.match(text, from);
      work += this.#machine?.work ?? 0;
      if (match === "gave-up" || work > maxWork) return "gave-up";
      if (match === undefined) break;
      const by = replacement(match);
      added += by.length;
      if (text.length + added > maxUnits) return "gave-up";
      pieces.push(text.slice(kept, match.start), by);
      count += 1;
      kept = match.end;
      from = match.end > match.start ? match.end : match.end + unitsOfCharacter(text, match.end);
    }
    return count === 0 ? { text, count } : { text: pieces.join("") + text.slice(kept), count };
  }
}

/** Work limit of replacing, per unit of a long text. */
const WORK_PER_UNIT = 64;

/** An empty match must not split a surrogate pair. */
function unitsOfCharacter(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

function matchOf(text: string, slots: Readonly<Int32Array>, groupNames: readonly (string | undefined)[]): PatternMatch {
  const groups: (string | undefined)[] = [];
  for (let slot = 0; slot + 1 < slots.length; slot += 2) {
    const start = slots[slot] ?? -1;
    groups.push(start === -1 ? undefined : text.slice(start, slots[slot + 1]));
  }
  const named = Object.create(null) as Record<string, string | undefined>;
  for (const [index, name] of groupNames.entries()) if (name !== undefined) named[name] = groups[index + 1];
  return { start: slots[0] ?? 0, end: slots[1] ?? 0, groups, named };
}

/** Known text of a node's matches; `exact` if it matches one text only. */
interface Sure {
  readonly exact: string | undefined;
  readonly prefix: string;
  readonly suffix: string;
  readonly best: string;
}

/** A lower-case text that every match contains; empty if unknown. One search skips many patterns. */
function requiredText(node: PatternNode): string {
  return sureOf(node).best;
}

function exactly(text: string): Sure {
  const kept = text.slice(0, MAX_LITERAL_LENGTH);
  return kept === text
    ? { exact: text, prefix: text, suffix: text, best: text }
    : { exact: undefined, prefix: kept, suffix: text.slice(-MAX_LITERAL_LENGTH), best: kept };
}

function sureOf(node: PatternNode): Sure {
  switch (node.kind) {
    case "empty":
    case "assert":
      return exactly("");
    case "set": {
      const unit = singleUnit(node.set);
      return unit === undefined ? NOTHING : exactly(String.fromCharCode(unit));
    }
    case "group":
      return sureOf(node.item);
    case "choice": {
      const [first, ...rest] = node.items.map(sureOf);
      const isOne = first?.exact !== undefined && rest.every(({ exact }) => exact === first.exact);
      return isOne ? first : NOTHING;
    }
    case "repeat": {
      if (node.min === 0) return NOTHING;
      const item = sureOf(node.item);
      if (item.exact === undefined) return item;
      const all = exactly(item.exact.repeat(Math.min(node.min, MAX_LITERAL_LENGTH)));
      return node.min === node.max ? all : { ...all, exact: undefined };
    }
    case "sequence":
      return sequence(node.items.map(sureOf));
  }
}

function sequence(items: readonly Sure[]): Sure {
  let prefix = "";
  let isPrefixOpen = true;
  let run = "";
  let best = "";
  for (const item of items) {
    if (isPrefixOpen) prefix += item.prefix;
    best = longer(best, longer(item.best, run + item.prefix));
    if (item.exact === undefined) {
      isPrefixOpen = false;
      run = item.suffix;
    } else run += item.exact;
    run = run.slice(-MAX_LITERAL_LENGTH);
    prefix = prefix.slice(0, MAX_LITERAL_LENGTH);
  }
  best = longer(best, run).slice(0, MAX_LITERAL_LENGTH);
  return { exact: isPrefixOpen && prefix.length < MAX_LITERAL_LENGTH ? prefix : undefined, prefix, suffix: run, best };
}

function longer(left: string, right: string): string {
  return right.length > left.length ? right : left;
}

/** The only unit of a set, in lower case: a plain character, or an ASCII letter in both cases. */
function singleUnit(set: CharSet): number | undefined {
  const [first = 0, firstEnd, second, secondEnd] = set;
  if (first !== firstEnd) return undefined;
  const isUpper = first >= 0x41 && first <= 0x5a;
  if (set.length === 2) return isUpper ? first + 32 : first;
  const isBothCases = set.length === 4 && isUpper && second === first + 32 && secondEnd === second;
  return isBothCases ? second : undefined;
}

export type Replacement = (match: PatternMatch) => string;

export type ReplacementCheck =
  | { readonly ok: true; readonly replacement: Replacement }
  | { readonly ok: false; readonly error: PatternError };

/** `$$`, `$&`, `$<name>`, `${name}`, `${12}`, `$12`. */
const REFERENCE = /\$(?:([$&])|<([^>]*)>|\{([^}]*)\}|([0-9]{1,2}))/g;

/**
 * Parses a replacement: `$1` to `$99`, `$<name>`, `${1}` and `${name}` are captures (empty for a group that did not
 * participate), `$&` and `$0` the whole match, `$$` a dollar sign; any other dollar sign is literal. As in
 * ECMAScript, `$12` is group 1 and a 2 with fewer than twelve groups. A group that the pattern does not have is an
 * error.
 */
export function readReplacement(
  source: string,
  { groupCount, groupNames }: Pick<LinearPattern, "groupCount" | "groupNames">,
): ReplacementCheck {
  const parts: (string | ((match: PatternMatch) => string | undefined))[] = [];
  let kept = 0;
  for (const reference of source.matchAll(REFERENCE)) {
    const [whole, sign, angled, braced, digits] = reference;
    parts.push(source.slice(kept, reference.index));
    kept = reference.index + whole.length;
    const name = angled ?? braced;
    if (sign === "$") parts.push("$");
    else if (sign === "&") parts.push(({ groups }) => groups[0]);
    else if (name !== undefined && !/^[0-9]{1,3}$/.test(name)) {
      if (!groupNames.includes(name)) {
        return refused(`the pattern has no group called \`${name}\``, reference.index, kept);
      }
      parts.push(({ named }) => named[name]);
    } else {
      const text = name ?? digits ?? "";
      const number = name === undefined && Number(text) > groupCount && text.length === 2 ? text.slice(0, 1) : text;
      if (Number(number) > groupCount) {
        return refused(
          `the pattern has ${groupCount === 0 ? "no groups" : `${groupCount} groups only`}`,
          reference.index,
          kept,
        );
      }
      parts.push(({ groups }) => groups[Number(number)], text.slice(number.length));
    }
  }
  parts.push(source.slice(kept));
  const plain = parts.every((part) => typeof part === "string") ? parts.join("") : undefined;
  if (plain !== undefined) return { ok: true, replacement: () => plain };
  return {
    ok: true,
    replacement: (match) =>
      parts.reduce<string>((text, part) => text + (typeof part === "string" ? part : (part(match) ?? "")), ""),
  };
}

function refused(message: string, start: number, end: number): ReplacementCheck {
  return { ok: false, error: { message, start, end } };
}

export type TextPredicate = Pick<LinearPattern, "requiredText" | "test" | "search">;

/** Limit of the examined text, which bounds the time of a condition on traffic. */
const MAX_EXAMINED_LENGTH = 1_048_576;

/** As {@link compilePattern}, but only the first 1,048,576 UTF-16 units of a text count. */
export function compileTextPredicate(source: string, flags: string, maxWork?: number): TextPredicate {
  const compiled = compilePattern(source, flags, maxWork);
  const examined = (text: string): string =>
    text.length > MAX_EXAMINED_LENGTH ? text.slice(0, MAX_EXAMINED_LENGTH) : text;
  return {
    requiredText: compiled.requiredText,
    test: (text) => compiled.test(examined(text)),
    search: (text) => compiled.search(examined(text)),
  };
}
