import { contains, LINE_ENDS, WORD } from "./char-set.ts";
import type { Program } from "./program.ts";
import type { Assertion } from "./syntax.ts";

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

  /**
   * `literal`: the required start of every matching text. `maxWork`: limit of visited instructions per text beyond
   * table lookups.
   */
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
