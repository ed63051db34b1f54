/** A set of UTF-16 units as sorted, disjoint, inclusive ranges: from, to, from, to. */
export type CharSet = readonly number[];

/** The largest UTF-16 unit. */
const LAST_UNIT = 0xffff;

/** Creates a set from ranges in any order. */
export function charSet(ranges: readonly (readonly [number, number])[]): CharSet {
  const sorted = ranges.toSorted((left, right) => left[0] - right[0]);
  const set: number[] = [];
  for (const [from, to] of sorted) {
    const end = set.at(-1);
    if (end !== undefined && from <= end + 1) set[set.length - 1] = Math.max(end, to);
    else set.push(from, to);
  }
  return set;
}

/** The ranges of a set as pairs. */
export function rangesOf(set: CharSet): [number, number][] {
  const ranges: [number, number][] = [];
  for (let index = 0; index + 1 < set.length; index += 2) ranges.push([set[index] ?? 0, set[index + 1] ?? 0]);
  return ranges;
}

function complement(set: CharSet): CharSet {
  const ranges: [number, number][] = [];
  let from = 0;
  for (const [low, high] of rangesOf(set)) {
    if (low > from) ranges.push([from, low - 1]);
    from = high + 1;
  }
  if (from <= LAST_UNIT) ranges.push([from, LAST_UNIT]);
  return charSet(ranges);
}

export function contains(set: CharSet, unit: number): boolean {
  let low = 0;
  let high = set.length / 2 - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (unit < (set[middle * 2] ?? 0)) high = middle - 1;
    else if (unit > (set[middle * 2 + 1] ?? 0)) low = middle + 1;
    else return true;
  }
  return false;
}

/** `\d`. */
const DIGITS = charSet([[0x30, 0x39]]);

/** `\w`. */
export const WORD = charSet([
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);

/** `\s`: white space and line terminators of ECMAScript. */
const SPACES = charSet([
  [9, 13],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);

/** Line terminators of ECMAScript. */
export const LINE_ENDS = charSet([
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
]);

/** ECMAScript's `Canonicalize` for patterns without the `u` flag (ECMA-262, 22.2.2.7.3). */
function canonical(unit: number): number {
  const upper = String.fromCharCode(unit).toUpperCase();
  if (upper.length !== 1) return unit;
  const folded = upper.charCodeAt(0);
  return unit >= 128 && folded < 128 ? unit : folded;
}

let caseGroups: ReadonlyMap<number, readonly number[]> | undefined;

/** For each unit with case variants: all variants, including itself. */
function groups(): ReadonlyMap<number, readonly number[]> {
  if (caseGroups !== undefined) return caseGroups;
  const byUnit = new Map<number, number[]>();
  for (let unit = 0; unit <= LAST_UNIT; unit += 1) {
    const folded = canonical(unit);
    if (folded === unit) continue;
    const group = byUnit.get(folded) ?? [folded];
    group.push(unit);
    byUnit.set(folded, group).set(unit, group);
  }
  caseGroups = byUnit;
  return caseGroups;
}

/** The set with all case variants of its members. */
function withoutCase(set: CharSet): CharSet {
  const extra: [number, number][] = [];
  const add = (group: readonly number[]): void => {
    for (const unit of group) extra.push([unit, unit]);
  };
  if (set.length === 2 && set[0] === set[1]) add(groups().get(set[0] ?? 0) ?? []);
  else for (const [unit, group] of groups()) if (contains(set, unit)) add(group);
  return extra.length === 0 ? set : charSet([...rangesOf(set), ...extra]);
}

/** A parsed pattern. */
export type PatternNode =
  | { readonly kind: "empty" }
  | { readonly kind: "set"; readonly set: CharSet }
  | { readonly kind: "sequence"; readonly items: readonly PatternNode[] }
  | { readonly kind: "choice"; readonly items: readonly PatternNode[] }
  | {
      readonly kind: "repeat";
      readonly item: PatternNode;
      readonly min: number;
      readonly max: number;
      /** Tries more repetitions before fewer; affects captures, never whether a text matches. */
      readonly isGreedy: boolean;
    }
  /** A capturing group; numbers start at 1, in the order of the opening parentheses. */
  | { readonly kind: "group"; readonly item: PatternNode; readonly number: number }
  | { readonly kind: "assert"; readonly what: Assertion };

/** Zero-width assertions. */
export type Assertion = "start" | "end" | "lineStart" | "lineEnd" | "boundary" | "notBoundary";

/** A pattern and the names of its groups. */
export interface ParsedPattern {
  readonly node: PatternNode;
  /** Names of capturing groups, in order; undefined for unnamed ones. */
  readonly groupNames: readonly (string | undefined)[];
}

/** The problem of a pattern; offsets are relative to its source. */
export class PatternRefusal extends Error {
  readonly start: number;
  readonly end: number;

  constructor(message: string, start: number, end: number) {
    super(message);
    this.start = start;
    this.end = end;
  }
}

interface PatternFlags {
  readonly ignoreCase: boolean;
  readonly multiline: boolean;
  readonly dotAll: boolean;
}

const MAX_COUNT = 1000;
const MAX_GROUP_DEPTH = 100;

/** Bounds the memory of a match, which keeps the groups of every thread. */
const MAX_GROUPS = 100;
const CONTROL: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 };

const NAMED_SETS: Readonly<Record<string, CharSet>> = {
  d: DIGITS,
  w: WORD,
  s: SPACES,
  D: complement(DIGITS),
  W: complement(WORD),
  S: complement(SPACES),
};

/**
 * Parses the regular part of ECMAScript's pattern syntax. Refuses, with the position, malformed patterns and
 * constructs without a linear-time implementation (backreferences, look-around).
 */
export function parsePattern(source: string, flags: PatternFlags): ParsedPattern {
  return new PatternParser(source, flags).run();
}

class PatternParser {
  readonly #source: string;
  readonly #flags: PatternFlags;
  readonly #groupNames: (string | undefined)[] = [];
  #at = 0;
  #depth = 0;

  constructor(source: string, flags: PatternFlags) {
    this.#source = source;
    this.#flags = flags;
  }

  run(): ParsedPattern {
    const node = this.#choice();
    if (this.#at < this.#source.length) this.#refuse("this `)` has no `(`", this.#at, this.#at + 1);
    return { node, groupNames: this.#groupNames };
  }

  #refuse(message: string, start: number, end = this.#at): never {
    throw new PatternRefusal(message, start, Math.max(start, Math.min(end, this.#source.length)));
  }

  #peek(): string {
    return this.#source.charAt(this.#at);
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #choice(): PatternNode {
    const items = [this.#sequence()];
    while (this.#take("|")) items.push(this.#sequence());
    const [first] = items;
    return items.length === 1 && first !== undefined ? first : { kind: "choice", items };
  }

  #sequence(): PatternNode {
    const items: PatternNode[] = [];
    for (let next = this.#peek(); next !== "" && next !== "|" && next !== ")"; next = this.#peek()) {
      items.push(this.#quantified());
    }
    const [first] = items;
    if (first === undefined) return { kind: "empty" };
    return items.length === 1 ? first : { kind: "sequence", items };
  }

  #quantified(): PatternNode {
    const start = this.#at;
    const item = this.#atom();
    const count = this.#count();
    if (count === undefined) return item;
    if (item.kind === "assert") this.#refuse("an assertion cannot be repeated", start);
    const isGreedy = !this.#take("?");
    const again = this.#at;
    if (this.#count() !== undefined) this.#refuse("a quantifier follows a quantifier", again);
    return { kind: "repeat", item, ...count, isGreedy };
  }

  #count(): { readonly min: number; readonly max: number } | undefined {
    if (this.#take("*")) return { min: 0, max: Infinity };
    if (this.#take("+")) return { min: 1, max: Infinity };
    if (this.#take("?")) return { min: 0, max: 1 };
    const braces = /\{(\d+)(?:(,)(\d*))?\}/y;
    braces.lastIndex = this.#at;
    const match = braces.exec(this.#source);
    if (match === null) return undefined;
    const start = this.#at;
    this.#at = braces.lastIndex;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === "" || match[3] === undefined ? Infinity : Number(match[3]);
    if (min > max) this.#refuse("the numbers of this quantifier are out of order", start);
    if (min > MAX_COUNT || (max !== Infinity && max > MAX_COUNT)) {
      this.#refuse(`a quantifier may count to at most ${MAX_COUNT}`, start);
    }
    return { min, max };
  }

  #atom(): PatternNode {
    const start = this.#at;
    const char = this.#peek();
    this.#at += 1;
    if (char === "^") return { kind: "assert", what: this.#flags.multiline ? "lineStart" : "start" };
    if (char === "$") return { kind: "assert", what: this.#flags.multiline ? "lineEnd" : "end" };
    if (char === ".") return { kind: "set", set: this.#flags.dotAll ? [0, LAST_UNIT] : complement(LINE_ENDS) };
    if (char === "(") return this.#group(start);
    if (char === "[") return { kind: "set", set: this.#class(start) };
    if (char === "\\") return this.#escape(start);
    if (char === "*" || char === "+" || char === "?") {
      this.#refuse(`nothing stands before \`${char}\` to be repeated`, start);
    }
    if (char === "{" && /^\{\d+(?:,\d*)?\}/.test(this.#source.slice(start))) {
      this.#refuse("nothing stands before this quantifier", start);
    }
    return this.#literal(char.charCodeAt(0));
  }

  #literal(unit: number): PatternNode {
    return { kind: "set", set: this.#cased([unit, unit]) };
  }

  #cased(set: CharSet): CharSet {
    return this.#flags.ignoreCase ? withoutCase(set) : set;
  }

  #group(start: number): PatternNode {
    let name: string | undefined;
    let captures = true;
    if (this.#take("?")) {
      if (this.#take("=") || this.#take("!")) {
        this.#refuse("look-ahead is not supported: it cannot run in linear time", start);
      }
      if (this.#take("<=") || this.#take("<!")) {
        this.#refuse("look-behind is not supported: it cannot run in linear time", start);
      }
      if (this.#take(":")) captures = false;
      else name = this.#groupName(start);
    }
    // Numbers follow the opening parentheses, so the number is assigned before the content is parsed.
    const number = captures ? this.#groupNames.push(name) : 0;
    if (number > MAX_GROUPS) this.#refuse(`a pattern may have at most ${MAX_GROUPS} groups; use \`(?:…)\``, start);
    this.#depth += 1;
    if (this.#depth > MAX_GROUP_DEPTH) this.#refuse(`groups may be nested at most ${MAX_GROUP_DEPTH} deep`, start);
    const item = this.#choice();
    if (!this.#take(")")) this.#refuse("the group is not closed: `)` is missing", start);
    this.#depth -= 1;
    return captures ? { kind: "group", item, number } : item;
  }

  #groupName(start: number): string {
    const bracketed = /^<[A-Za-z_$][\w$]*>/.exec(this.#source.slice(this.#at))?.[0];
    if (bracketed === undefined) this.#refuse("unknown kind of group; use `(?:…)`", start, this.#at + 1);
    const name = bracketed.slice(1, -1);
    if (this.#groupNames.includes(name)) {
      this.#refuse(`two groups are called ${bracketed}`, start, this.#at + bracketed.length);
    }
    this.#at += bracketed.length;
    return name;
  }

  #escape(start: number): PatternNode {
    const char = this.#peek();
    if (char === "b" || char === "B") {
      this.#at += 1;
      return { kind: "assert", what: char === "b" ? "boundary" : "notBoundary" };
    }
    const set = this.#classEscape(start);
    return { kind: "set", set: typeof set === "number" ? this.#cased([set, set]) : this.#cased(set) };
  }

  /** The escape after a backslash, inside or outside a class: one unit or a named set. */
  #classEscape(start: number): number | CharSet {
    const char = this.#peek();
    if (char === "") this.#refuse("the pattern ends with a backslash", start);
    this.#at += 1;
    if (Object.hasOwn(NAMED_SETS, char)) return NAMED_SETS[char] ?? [];
    const control = Object.hasOwn(CONTROL, char) ? CONTROL[char] : undefined;
    if (control !== undefined) return control;
    if (/[1-9]/.test(char)) this.#refuse("backreferences are not supported: they cannot run in linear time", start);
    if (char === "k") this.#refuse("backreferences are not supported: they cannot run in linear time", start);
    if (char === "0") {
      if (/\d/.test(this.#peek())) this.#refuse("octal escapes are not supported", start, this.#at + 1);
      return 0;
    }
    if (char === "x" || char === "u") {
      const digits = (char === "x" ? /^[0-9A-Fa-f]{2}/ : /^[0-9A-Fa-f]{4}/).exec(
        this.#source.slice(this.#at, this.#at + 4),
      )?.[0];
      if (digits === undefined) {
        this.#refuse(`\`\\${char}\` needs ${char === "x" ? "two" : "four"} hexadecimal digits`, start);
      }
      this.#at += digits.length;
      return Number.parseInt(digits, 16);
    }
    if (/[A-Za-z]/.test(char)) this.#refuse(`unknown escape \`\\${char}\``, start);
    return char.charCodeAt(0);
  }

  #class(start: number): CharSet {
    const negated = this.#take("^");
    const ranges: [number, number][] = [];
    while (!this.#take("]")) {
      if (this.#peek() === "") this.#refuse("the character class is not closed: `]` is missing", start);
      const from = this.#classAtom();
      const at = this.#at;
      if (
        this.#peek() === "-" &&
        this.#source.charAt(this.#at + 1) !== "]" &&
        this.#source.charAt(this.#at + 1) !== ""
      ) {
        this.#at += 1;
        const to = this.#classAtom();
        if (typeof from !== "number" || typeof to !== "number") {
          this.#refuse("a range needs single characters at its ends", at);
        }
        if (from > to) this.#refuse("the ends of this range are out of order", at - 1);
        ranges.push([from, to]);
      } else if (typeof from === "number") ranges.push([from, from]);
      else ranges.push(...rangesOf(from));
    }
    const set = this.#cased(charSet(ranges));
    return negated ? complement(set) : set;
  }

  #classAtom(): number | CharSet {
    const start = this.#at;
    const char = this.#peek();
    this.#at += 1;
    if (char !== "\\") return char.charCodeAt(0);
    if (this.#take("b")) return 8;
    if (this.#take("-")) return 45;
    return this.#classEscape(start);
  }
}
