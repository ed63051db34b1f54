import { type Assertion, type CharSet, contains, LINE_ENDS, type PatternNode, rangesOf, WORD } from "./syntax.ts";

/** One instruction of the automaton; numbers are indexes of instructions. */
type Instruction =
  | { readonly kind: "consume"; readonly set: CharSet; next: number }
  | { readonly kind: "fork"; first: number; second: number }
  | { readonly kind: "assert"; readonly what: Assertion; next: number }
  | { readonly kind: "jump"; next: number }
  | { readonly kind: "match" };

/** A nondeterministic automaton (Thompson's construction) with its unit classes. */
export interface Program {
  readonly instructions: readonly Instruction[];
  /** First units of the classes, ascending; the first is 0. */
  readonly boundaries: readonly number[];
  /** Whether a match can only be at the beginning. */
  readonly anchored: boolean;
}

/** Thrown when a pattern unfolds into more than `MAX_PROGRAM_SIZE` instructions. */
export class ProgramTooLarge extends Error {}

/** Bounds the time per character and the memory of one pattern. */
export const MAX_PROGRAM_SIZE = 2000;

/** Builds the automaton of a pattern. Throws `ProgramTooLarge`. */
export function buildProgram(node: PatternNode): Program {
  const instructions: Instruction[] = [];
  const add = (instruction: Instruction): number => {
    if (instructions.length >= MAX_PROGRAM_SIZE) throw new ProgramTooLarge("the pattern is too large");
    return instructions.push(instruction) - 1;
  };
  const match = add({ kind: "match" });
  const start = emit(node, match, add, { all: instructions, visits: 0 });
  instructions.push({ kind: "jump", next: start });
  return { instructions, boundaries: boundariesOf(instructions), anchored: beginsAtStart(node) };
}

type Add = (instruction: Instruction) => number;

/** `visits` bounds the unfolding of counted groups that emit nothing, such as `(){1000}` inside itself. */
interface Output {
  readonly all: readonly Instruction[];
  visits: number;
}

const MAX_VISITS = 20 * MAX_PROGRAM_SIZE;

/** Emits the node so that it continues at `next`, and returns its first instruction. Built from back to front. */
function emit(node: PatternNode, next: number, add: Add, output: Output): number {
  output.visits += 1;
  if (output.visits > MAX_VISITS) throw new ProgramTooLarge("the pattern is too large");
  switch (node.kind) {
    case "empty":
      return next;
    case "set":
      return add({ kind: "consume", set: node.set, next });
    case "assert":
      return add({ kind: "assert", what: node.what, next });
    case "group":
      return emit(node.item, next, add, output);
    case "sequence":
      return node.items.reduceRight((following, item) => emit(item, following, add, output), next);
    case "choice":
      return node.items
        .map((item) => emit(item, next, add, output))
        .reduceRight((second, first) => add({ kind: "fork", first, second }));
    case "repeat": {
      let following = next;
      if (node.max === Infinity) {
        const loop = add({ kind: "fork", first: next, second: next });
        const body = emit(node.item, loop, add, output);
        const fork = output.all[loop];
        if (fork?.kind === "fork") fork.first = body;
        following = loop;
      } else {
        for (let count = node.min; count < node.max; count += 1) {
          following = add({ kind: "fork", first: emit(node.item, following, add, output), second: next });
        }
      }
      for (let count = 0; count < node.min; count += 1) following = emit(node.item, following, add, output);
      return following;
    }
  }
}

function beginsAtStart(node: PatternNode): boolean {
  if (node.kind === "assert") return node.what === "start";
  if (node.kind === "sequence") return node.items[0] !== undefined && beginsAtStart(node.items[0]);
  if (node.kind === "choice") return node.items.every(beginsAtStart);
  if (node.kind === "group") return beginsAtStart(node.item);
  return node.kind === "repeat" && node.min > 0 && beginsAtStart(node.item);
}

/** Literal start of every match: the characters after `^` up to the first choice; else empty. */
export function requiredStart(node: PatternNode): string {
  const items = node.kind === "sequence" ? node.items : [node];
  const [first, ...rest] = items;
  if (first?.kind !== "assert" || first.what !== "start") return "";
  let start = "";
  for (const item of rest) {
    const [from, to] = item.kind === "set" && item.set.length === 2 ? item.set : [];
    if (from === undefined || from !== to) break;
    start += String.fromCharCode(from);
  }
  return start;
}

function boundariesOf(instructions: readonly Instruction[]): readonly number[] {
  const starts = new Set([0]);
  const cut = (set: CharSet): void => {
    for (const [from, to] of rangesOf(set)) starts.add(from).add(to + 1);
  };
  for (const instruction of instructions) {
    if (instruction.kind === "consume") cut(instruction.set);
    if (instruction.kind === "assert") {
      cut(instruction.what === "boundary" || instruction.what === "notBoundary" ? WORD : LINE_ENDS);
    }
  }
  return [...starts].filter((start) => start <= 0xffff).sort((left, right) => left - right);
}

/** Context before the current position, which decides assertions. */
export const AT_START = 1;
const AFTER_WORD = 2;
const AFTER_LINE_END = 4;
const UNKNOWN = -1;
const ACCEPT = -2;
const DEAD = -3;
const GAVE_UP = -4;

/** Limit of cached states; beyond it the table is cleared. */
const MAX_STATES = 1000;

/** The same limit in table cells, for patterns with many unit classes. */
const MAX_CELLS = 1_000_000;

/**
 * Runs a program over texts in linear time. States of the deterministic automaton are created on demand and cached;
 * each text unit then costs one table lookup. A pattern that keeps creating states is bounded by a work budget per
 * text.
 */
export class Automaton {
  readonly #program: Program;
  readonly #maxWork: number;
  readonly #literal: string;
  /** The state after `#literal`, once a text has reached it. */
  #afterLiteral = UNKNOWN;
  readonly #classCount: number;
  readonly #classOfLow = new Uint16Array(256);
  readonly #boundaries: Uint16Array;
  readonly #start: number;
  #kernels: (readonly number[])[] = [];
  #contexts: number[] = [];
  #ids = new Map<string, number>();
  #table: Int32Array;
  #kernelSize = 0;
  #work = 0;
  readonly #maxStates: number;
  readonly #seen: Uint32Array;
  #mark = 0;

  /** `literal`: required start of every match. `maxWork`: limit of instructions beyond table lookups. */
  constructor(program: Program, literal: string, maxWork: number) {
    this.#program = program;
    this.#literal = literal;
    this.#maxWork = maxWork;
    this.#boundaries = Uint16Array.from(program.boundaries);
    this.#classCount = program.boundaries.length;
    for (let unit = 0; unit < 256; unit += 1) this.#classOfLow[unit] = this.#search(unit);
    this.#start = program.instructions.length - 1;
    this.#seen = new Uint32Array(program.instructions.length);
    this.#maxStates = Math.max(16, Math.min(MAX_STATES, Math.floor(MAX_CELLS / (this.#classCount + 1))));
    this.#table = new Int32Array(0);
    this.#clear();
  }

  /** Whether the pattern matches at or after `from`; `gave-up` if the work budget is exhausted. */
  search(text: string, from = 0): boolean | "gave-up" {
    if (from > 0) return !this.#program.anchored && this.#searchFrom(text, from);
    const low = this.#classOfLow;
    const width = this.#classCount + 1;
    const literal = this.#literal;
    if (literal !== "" && !text.startsWith(literal)) return false;
    this.#work = 0;
    const isKnown = this.#afterLiteral !== UNKNOWN;
    let state = isKnown ? this.#afterLiteral : 0;
    for (let at = isKnown ? literal.length : 0; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      const index = unit < 256 ? (low[unit] ?? 0) : this.#search(unit);
      let next = this.#table[state * width + index] ?? UNKNOWN;
      if (next < 0) {
        if (next === UNKNOWN) next = this.#step(state, index);
        if (next === ACCEPT) return true;
        if (next === DEAD) return false;
        if (next === GAVE_UP) return "gave-up";
      }
      state = next;
      if (at + 1 === literal.length) this.#afterLiteral = state;
    }
    return this.#acceptsEnd(state);
  }

  #searchFrom(text: string, from: number): boolean | "gave-up" {
    const low = this.#classOfLow;
    const width = this.#classCount + 1;
    this.#work = 0;
    let state = this.#state([this.#start], contextAfter(text.charCodeAt(from - 1)));
    for (let at = from; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      const index = unit < 256 ? (low[unit] ?? 0) : this.#search(unit);
      let next = this.#table[state * width + index] ?? UNKNOWN;
      if (next < 0) {
        if (next === UNKNOWN) next = this.#step(state, index);
        if (next === ACCEPT) return true;
        if (next === DEAD) return false;
        if (next === GAVE_UP) return "gave-up";
      }
      state = next;
    }
    return this.#acceptsEnd(state);
  }

  #acceptsEnd(state: number): boolean {
    let end = this.#table[state * (this.#classCount + 1) + this.#classCount] ?? UNKNOWN;
    if (end === UNKNOWN) end = this.#step(state, this.#classCount);
    return end === ACCEPT;
  }

  #search(unit: number): number {
    let low = 0;
    let high = this.#boundaries.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#boundaries[middle] ?? 0) <= unit) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #clear(): void {
    this.#afterLiteral = UNKNOWN;
    this.#kernels = [];
    this.#kernelSize = 0;
    this.#contexts = [];
    this.#ids = new Map();
    this.#table = new Int32Array(16 * (this.#classCount + 1)).fill(UNKNOWN);
    this.#state([this.#start], AT_START);
  }

  /** The number of a state; `kernel` holds its instructions before assertions are decided. */
  #state(kernel: readonly number[], context: number): number {
    const key = `${context};${kernel.join()}`;
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const id = this.#kernels.length;
    const width = this.#classCount + 1;
    if ((id + 1) * width > this.#table.length) {
      const larger = new Int32Array(this.#table.length * 2).fill(UNKNOWN);
      larger.set(this.#table);
      this.#table = larger;
    }
    this.#kernels.push(kernel);
    this.#kernelSize += kernel.length;
    this.#contexts.push(context);
    this.#ids.set(key, id);
    return id;
  }

  /** Computes and caches the successor of a state for a class of units, or for the end of the text. */
  #step(state: number, index: number): number {
    const kernel = this.#kernels[state] ?? [];
    const before = this.#contexts[state] ?? 0;
    const atEnd = index === this.#classCount;
    const unit = this.#boundaries[index] ?? 0;
    const waiting = this.#close(kernel, before, atEnd ? undefined : unit);
    let result: number;
    if (waiting === undefined) result = ACCEPT;
    else if (atEnd) result = DEAD;
    else if (this.#work > this.#maxWork) return GAVE_UP;
    else {
      const next = this.#advance(waiting, unit);
      if (next.length === 0) result = DEAD;
      else {
        const full = this.#kernels.length >= this.#maxStates || this.#kernelSize > MAX_CELLS;
        if (full) this.#clear();
        result = this.#state(next, contextAfter(unit));
        if (full) return result;
      }
    }
    this.#table[state * (this.#classCount + 1) + index] = result;
    return result;
  }

  /** Follows forks and the assertions that hold here; undefined when the match instruction is reached. */
  #close(kernel: readonly number[], before: number, unit: number | undefined): number[] | undefined {
    const waiting: number[] = [];
    const stack = [...kernel];
    this.#mark += 1;
    for (let pc = stack.pop(); pc !== undefined; pc = stack.pop()) {
      if (this.#seen[pc] === this.#mark) continue;
      this.#seen[pc] = this.#mark;
      this.#work += 1;
      const instruction = this.#program.instructions[pc];
      if (instruction === undefined) continue;
      if (instruction.kind === "match") return undefined;
      if (instruction.kind === "consume") waiting.push(pc);
      else if (instruction.kind === "jump") stack.push(instruction.next);
      else if (instruction.kind === "fork") stack.push(instruction.second, instruction.first);
      else if (holds(instruction.what, before, unit)) stack.push(instruction.next);
    }
    return waiting;
  }

  #advance(waiting: readonly number[], unit: number): number[] {
    const next = new Set<number>();
    for (const pc of waiting) {
      const instruction = this.#program.instructions[pc];
      if (instruction?.kind === "consume" && contains(instruction.set, unit)) next.add(instruction.next);
    }
    if (!this.#program.anchored) next.add(this.#start);
    return [...next].sort((left, right) => left - right);
  }
}

/** The context that the preceding unit gives to assertions. */
export function contextAfter(unit: number): number {
  return (contains(WORD, unit) ? AFTER_WORD : 0) | (contains(LINE_ENDS, unit) ? AFTER_LINE_END : 0);
}

/** Whether an assertion holds between the preceding context and the next unit. */
export function holds(what: Assertion, before: number, unit: number | undefined): boolean {
  switch (what) {
    case "start":
      return (before & AT_START) !== 0;
    case "end":
      return unit === undefined;
    case "lineStart":
      return (before & (AT_START | AFTER_LINE_END)) !== 0;
    case "lineEnd":
      return unit === undefined || contains(LINE_ENDS, unit);
    case "boundary":
    case "notBoundary": {
      const differs = ((before & AFTER_WORD) !== 0) !== (unit !== undefined && contains(WORD, unit));
      return differs === (what === "boundary");
    }
  }
}
