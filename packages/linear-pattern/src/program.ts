import { WORD, LINE_ENDS, rangesOf, type CharSet } from "./char-set.ts";
import type { Assertion, PatternNode } from "./syntax.ts";

/** One instruction of the automaton; numbers are indexes of instructions. */
export type Instruction =
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

/**
 * Literal start of every matching text: the characters after `^`, up to the first choice. Empty for patterns that can
 * match elsewhere.
 */
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
