import { AT_START, contextAfter, holds, MAX_PROGRAM_SIZE, ProgramTooLarge } from "./automaton.ts";
import {
  type Assertion,
  charSet,
  type CharSet,
  contains,
  type ParsedPattern,
  type PatternNode,
  rangesOf,
} from "./syntax.ts";

/** One instruction of the program that finds what groups capture; numbers are indexes of instructions. */
type CaptureInstruction =
  | { readonly kind: "consume"; readonly set: CharSet; readonly next: number }
  /** Tries `first`, and `second` only when that fails. */
  | { readonly kind: "fork"; readonly first: number; readonly second: number }
  | { readonly kind: "assert"; readonly what: Assertion; readonly next: number }
  | { readonly kind: "save"; readonly slot: number; readonly next: number }
  /**
   * Clears the slots from `from` up to `to`, exclusive: each repetition begins without captures of the previous one.
   */
  | { readonly kind: "clear"; readonly from: number; readonly to: number; readonly next: number }
  /** Start of an optional repetition; `end` lets it pass only if it consumed something. */
  | { readonly kind: "begin"; readonly next: number }
  | { readonly kind: "end"; readonly next: number }
  | { readonly kind: "match" };

/** A program whose fork order is the order of preference, as in ECMAScript's backtracking. */
export interface CaptureProgram {
  readonly instructions: readonly CaptureInstruction[];
  readonly start: number;
  /** Two for each group and for the whole match, which is group 0. */
  readonly slotCount: number;
}

const MAX_CAPTURE_PROGRAM_SIZE = 4 * MAX_PROGRAM_SIZE;
const MAX_VISITS = 20 * MAX_PROGRAM_SIZE;

/** Builds the program from back to front. Throws `ProgramTooLarge`. */
export function buildCaptureProgram(pattern: ParsedPattern): CaptureProgram {
  const builder = new Builder();
  const start = builder.whole(pattern.node);
  return { instructions: builder.instructions, start, slotCount: 2 * (pattern.groupNames.length + 1) };
}

class Builder {
  readonly instructions: CaptureInstruction[] = [];
  #visits = 0;

  whole(node: PatternNode): number {
    const match = this.#add({ kind: "match" });
    const end = this.#add({ kind: "save", slot: 1, next: match });
    return this.#add({ kind: "save", slot: 0, next: this.#emit(node, end) });
  }

  #add(instruction: CaptureInstruction): number {
    if (this.instructions.length >= MAX_CAPTURE_PROGRAM_SIZE) throw new ProgramTooLarge("the pattern is too large");
    return this.instructions.push(instruction) - 1;
  }

  #emit(node: PatternNode, next: number): number {
    this.#visits += 1;
    if (this.#visits > MAX_VISITS) throw new ProgramTooLarge("the pattern is too large");
    switch (node.kind) {
      case "empty":
        return next;
      case "set":
        return this.#add({ kind: "consume", set: node.set, next });
      case "assert":
        return this.#add({ kind: "assert", what: node.what, next });
      case "sequence":
        return node.items.reduceRight((following, item) => this.#emit(item, following), next);
      case "choice":
        return node.items
          .map((item) => this.#emit(item, next))
          .reduceRight((second, first) => this.#add({ kind: "fork", first, second }));
      case "group": {
        const end = this.#add({ kind: "save", slot: 2 * node.number + 1, next });
        return this.#add({ kind: "save", slot: 2 * node.number, next: this.#emit(node.item, end) });
      }
      case "repeat":
        return this.#repeat(node, next);
    }
  }

  #repeat(node: PatternNode & { readonly kind: "repeat" }, next: number): number {
    const groups = groupRange(node.item);
    let following = next;
    if (node.max === Infinity) {
      const fork = { kind: "fork" as const, first: next, second: next };
      const position = this.#add(fork);
      const body = this.#optional(node.item, groups, position);
      if (node.isGreedy) fork.first = body;
      else fork.second = body;
      following = position;
    } else {
      for (let count = node.min; count < node.max; count += 1) {
        const body = this.#optional(node.item, groups, following);
        following = this.#add(
          node.isGreedy ? { kind: "fork", first: body, second: next } : { kind: "fork", first: next, second: body },
        );
      }
    }
    for (let count = 0; count < node.min; count += 1) following = this.#cleared(node.item, groups, following);
    return following;
  }

  /** ECMA-262, 22.2.2.3.1 (RepeatMatcher): a repetition beyond the minimum fails if it consumes nothing. */
  #optional(item: PatternNode, groups: GroupRange, next: number): number {
    if (!canBeEmpty(item)) return this.#cleared(item, groups, next);
    const body = this.#cleared(item, groups, this.#add({ kind: "end", next }));
    return this.#add({ kind: "begin", next: body });
  }

  #cleared(item: PatternNode, groups: GroupRange, next: number): number {
    const body = this.#emit(item, next);
    if (groups === undefined) return body;
    return this.#add({ kind: "clear", from: 2 * groups.first, to: 2 * groups.last + 2, next: body });
  }
}

type GroupRange = { readonly first: number; readonly last: number } | undefined;

/** The numbers of the groups inside a node, which are consecutive. */
function groupRange(node: PatternNode): GroupRange {
  switch (node.kind) {
    case "group":
      return { first: node.number, last: groupRange(node.item)?.last ?? node.number };
    case "repeat":
      return groupRange(node.item);
    case "sequence":
    case "choice": {
      const ranges = node.items.map(groupRange).filter((range) => range !== undefined);
      const [first] = ranges;
      const last = ranges.at(-1);
      return first === undefined || last === undefined ? undefined : { first: first.first, last: last.last };
    }
    default:
      return undefined;
  }
}

function canBeEmpty(node: PatternNode): boolean {
  switch (node.kind) {
    case "set":
      return false;
    case "empty":
    case "assert":
      return true;
    case "sequence":
      return node.items.every(canBeEmpty);
    case "choice":
      return node.items.some(canBeEmpty);
    case "group":
      return canBeEmpty(node.item);
    case "repeat":
      return node.min === 0 || canBeEmpty(node.item);
  }
}

const UNSET = -1;

/** The threads at one position of the text, in order of preference, with their captures. */
interface Threads {
  count: number;
  /** Instructions, each one that consumes or matches. */
  readonly at: Int32Array;
  readonly slots: Int32Array;
}

/**
 * Runs a program over a text once, following all threads simultaneously (Pike's machine). Of several threads at the
 * same instruction and position only the preferred one continues, so time is bounded by text times program and memory
 * by the program. Threads are also distinguished by whether a repetition has consumed something since it began,
 * because that decides whether it may end.
 */
export class CaptureMachine {
  readonly #program: CaptureProgram;
  readonly #anchored: boolean;
  readonly #maxWork: number;
  readonly #seen: Uint32Array;
  readonly #slots: Int32Array;
  readonly #best: Int32Array;
  readonly #firstUnits: FirstUnits | undefined;
  readonly #stack: number[] = [];
  #current: Threads;
  #following: Threads;
  #mark = 0;
  #work = 0;

  /** `maxWork`: limit of visited instructions per text. */
  constructor(program: CaptureProgram, anchored: boolean, maxWork: number) {
    this.#program = program;
    this.#maxWork = maxWork;
    this.#anchored = anchored;
    const states = 2 * program.instructions.length;
    this.#seen = new Uint32Array(states);
    this.#slots = new Int32Array(program.slotCount);
    this.#best = new Int32Array(program.slotCount);
    this.#firstUnits = firstUnits(program);
    this.#current = emptyThreads(states, program.slotCount);
    this.#following = emptyThreads(states, program.slotCount);
  }

  /** Cost of the last `run`. */
  get work(): number {
    return this.#work;
  }

  /** The leftmost match at or after `from`: group offsets, -1 for none. Valid until the next call. */
  run(text: string, from = 0): Readonly<Int32Array> | undefined | "gave-up" {
    let hasMatch = false;
    this.#work = 0;
    this.#nextPosition();
    this.#current.count = 0;
    for (let at = from; at <= text.length; at += 1) {
      if (!hasMatch && (at === 0 || !this.#anchored)) {
        if (this.#current.count === 0 && this.#firstUnits !== undefined) {
          const next = this.#firstUnits.next(text, at);
          if (next === text.length) break;
          // Visited marks belong to a skipped position.
          if (next !== at) this.#nextPosition();
          at = next;
        }
        this.#slots.fill(UNSET);
        this.#follow(this.#current, this.#program.start, 0, text, at);
      }
      if (this.#current.count === 0 && (hasMatch || this.#anchored)) break;
      if (this.#work > this.#maxWork) return "gave-up";
      if (this.#step(text, at)) hasMatch = true;
    }
    return hasMatch ? this.#best : undefined;
  }

  #nextPosition(): void {
    this.#mark += 1;
    // Old marks must not look new when the counter wraps.
    if (this.#mark > 0xffff_ffff) {
      this.#seen.fill(0);
      this.#mark = 1;
    }
  }

  /**
   * Advances every thread over the unit at `at`. True if a match was found: less preferred threads are then dropped.
   */
  #step(text: string, at: number): boolean {
    const { instructions, slotCount } = this.#program;
    const { count, at: positions, slots } = this.#current;
    const unit = at < text.length ? text.charCodeAt(at) : -1;
    this.#nextPosition();
    this.#following.count = 0;
    let hasMatch = false;
    for (let index = 0; index < count && !hasMatch; index += 1) {
      const instruction = instructions[positions[index] ?? 0];
      const own = slots.subarray(index * slotCount, (index + 1) * slotCount);
      if (instruction?.kind === "match") {
        this.#best.set(own);
        hasMatch = true;
      } else if (instruction?.kind === "consume" && unit !== -1 && contains(instruction.set, unit)) {
        this.#slots.set(own);
        this.#follow(this.#following, instruction.next, 1, text, at + 1);
      }
    }
    [this.#current, this.#following] = [this.#following, this.#current];
    return hasMatch;
  }

  /**
   * Adds to `ways` all instructions reachable without consuming, in order of preference. The stack holds states
   * (instruction and whether something was consumed), and negative entries that restore a slot to the value below
   * them.
   */
  #follow(threads: Threads, start: number, hasConsumed: 0 | 1, text: string, at: number): void {
    const { instructions, slotCount } = this.#program;
    const slots = this.#slots;
    const stack = this.#stack;
    const before = at === 0 ? AT_START : contextAfter(text.charCodeAt(at - 1));
    const unit = at < text.length ? text.charCodeAt(at) : undefined;
    stack.push(2 * start + hasConsumed);
    for (let state = stack.pop(); state !== undefined; state = stack.pop()) {
      if (state < 0) {
        slots[-state - 1] = stack.pop() ?? UNSET;
        continue;
      }
      if (this.#seen[state] === this.#mark) continue;
      this.#seen[state] = this.#mark;
      this.#work += 1;
      const flag = state & 1;
      const position = state >> 1;
      const instruction = instructions[position];
      if (instruction === undefined) continue;
      switch (instruction.kind) {
        case "consume":
        case "match":
          threads.at[threads.count] = position;
          threads.slots.set(slots, threads.count * slotCount);
          threads.count += 1;
          break;
        case "fork":
          stack.push(2 * instruction.second + flag, 2 * instruction.first + flag);
          break;
        case "assert":
          if (holds(instruction.what, before, unit)) stack.push(2 * instruction.next + flag);
          break;
        case "save":
          stack.push(slots[instruction.slot] ?? UNSET, -instruction.slot - 1, 2 * instruction.next + flag);
          slots[instruction.slot] = at;
          break;
        case "clear":
          for (let slot = instruction.from; slot < instruction.to; slot += 1) {
            stack.push(slots[slot] ?? UNSET, -slot - 1);
            slots[slot] = UNSET;
          }
          stack.push(2 * instruction.next + flag);
          break;
        case "begin":
          stack.push(2 * instruction.next);
          break;
        case "end":
          if (flag === 1) stack.push(2 * instruction.next + flag);
      }
    }
  }
}

/** The units with which a match can begin. */
interface FirstUnits {
  /** The first position at or after `from` with such a unit; the text's length if there is none. */
  next(text: string, from: number): number;
}

/** Undefined for a program that can match the empty text. Assertions are assumed to hold. */
function firstUnits(program: CaptureProgram): FirstUnits | undefined {
  const sets: CharSet[] = [];
  const seen = new Set<number>();
  const stack = [program.start];
  for (let position = stack.pop(); position !== undefined; position = stack.pop()) {
    if (seen.has(position)) continue;
    seen.add(position);
    const instruction = program.instructions[position];
    if (instruction === undefined || instruction.kind === "match") return undefined;
    if (instruction.kind === "consume") sets.push(instruction.set);
    else if (instruction.kind === "fork") stack.push(instruction.second, instruction.first);
    else stack.push(instruction.next);
  }
  const all = charSet(sets.flatMap(rangesOf));
  const [only, last] = all;
  if (all.length === 2 && only !== undefined && only === last) {
    const unit = String.fromCharCode(only);
    return {
      next: (text, from) => {
        const found = text.indexOf(unit, from);
        return found === -1 ? text.length : found;
      },
    };
  }
  const low = Uint8Array.from({ length: 256 }, (_, unit) => Number(contains(all, unit)));
  return {
    next: (text, from) => {
      let at = from;
      for (; at < text.length; at += 1) {
        const unit = text.charCodeAt(at);
        if (unit < 256 ? low[unit] === 1 : contains(all, unit)) break;
      }
      return at;
    },
  };
}

function emptyThreads(states: number, slotCount: number): Threads {
  return { count: 0, at: new Int32Array(states), slots: new Int32Array(states * slotCount) };
}
