import { ProgramTooLarge, MAX_PROGRAM_SIZE } from "./program.ts";
import type { CharSet } from "./char-set.ts";
import type { Assertion, ParsedPattern, PatternNode } from "./syntax.ts";

/** One instruction of the program that finds what groups capture; numbers are indexes of instructions. */
export type CaptureInstruction =
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
      const place = this.#add(fork);
      const body = this.#optional(node.item, groups, place);
      if (node.isGreedy) fork.first = body;
      else fork.second = body;
      following = place;
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
