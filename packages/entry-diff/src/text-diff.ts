/** Elements of both sides or of one; indexes from 0. */
export interface Run {
  readonly kind: "same" | "removed" | "added";
  readonly left: number;
  readonly right: number;
  readonly count: number;
}

/** Bounds the quadratic search; beyond it the rest counts as replaced. */
const MAX_STEPS = 20_000_000;
const MAX_EDITS = 2000;

/**
 * A shortest edit script (Myers, "An O(ND) difference algorithm", 1986) over numbers that are equal for equal elements.
 * Sequences with too little in common count as replaced between common prefix and suffix, which bounds the time.
 */
export function diffSequences(left: readonly number[], right: readonly number[]): Run[] {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let tail = 0;
  const max = Math.min(left.length, right.length) - start;
  while (tail < max && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail += 1;
  const runs: Run[] = [];
  push(runs, "same", 0, 0, start);
  for (const run of middle(left, right, start, left.length - tail, right.length - tail)) {
    push(runs, run.kind, run.left, run.right, run.count);
  }
  push(runs, "same", left.length - tail, right.length - tail, tail);
  return runs;
}

/** Appends a run, merging it with a previous one of its kind. */
function push(runs: Run[], kind: Run["kind"], left: number, right: number, count: number): void {
  if (count === 0) return;
  const last = runs.at(-1);
  if (last?.kind === kind) runs[runs.length - 1] = { ...last, count: last.count + count };
  else runs.push({ kind, left, right, count });
}

function middle(
  left: readonly number[],
  right: readonly number[],
  start: number,
  leftEnd: number,
  rightEnd: number,
): Run[] {
  const leftCount = leftEnd - start;
  const rightCount = rightEnd - start;
  const replaced: Run[] = [
    { kind: "removed", left: start, right: start, count: leftCount },
    { kind: "added", left: leftEnd, right: start, count: rightCount },
  ];
  if (leftCount === 0 || rightCount === 0) return replaced;
  const furthest = search(left, right, start, leftCount, rightCount);
  return furthest === undefined ? replaced : backtrack(furthest, start, leftCount, rightCount);
}

/** Furthest left position of each diagonal per number of edits. Undefined beyond the limit. */
function search(
  left: readonly number[],
  right: readonly number[],
  start: number,
  leftCount: number,
  rightCount: number,
): Int32Array[] | undefined {
  const history: Int32Array[] = [];
  let steps = 0;
  let before = new Int32Array([0, 0, 0]);
  for (let edits = 0; edits <= Math.min(MAX_EDITS, leftCount + rightCount); edits += 1) {
    const reached = new Int32Array(2 * edits + 3);
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = edits === 0 ? 0 : startPosition(before, edits - 1, diagonal);
      let y = x - diagonal;
      while (x < leftCount && y < rightCount && left[start + x] === right[start + y]) {
        x += 1;
        y += 1;
        steps += 1;
      }
      reached[diagonal + edits + 1] = x;
      if (x >= leftCount && y >= rightCount) {
        history.push(reached);
        return history;
      }
    }
    steps += edits;
    if (steps > MAX_STEPS) return undefined;
    history.push(reached);
    before = reached;
  }
  return undefined;
}

/** Start of a diagonal after one more edit: an insertion from the right or a removal from the left. */
function startPosition(before: Int32Array, edits: number, diagonal: number): number {
  return isAdding(before, edits, diagonal)
    ? (before[diagonal + 1 + edits + 1] as number)
    : (before[diagonal - 1 + edits + 1] as number) + 1;
}

function isAdding(before: Int32Array, edits: number, diagonal: number): boolean {
  if (diagonal <= -edits) return true;
  if (diagonal >= edits) return false;
  return (before[diagonal - 1 + edits + 1] as number) < (before[diagonal + 1 + edits + 1] as number);
}

function backtrack(history: readonly Int32Array[], start: number, leftCount: number, rightCount: number): Run[] {
  const reversed: Run[] = [];
  let x = leftCount;
  let y = rightCount;
  for (let edits = history.length - 1; edits > 0; edits -= 1) {
    const before = history[edits - 1] as Int32Array;
    const diagonal = x - y;
    const adds = isAdding(before, edits - 1, diagonal);
    const from = startPosition(before, edits - 1, diagonal);
    const fromY = from - diagonal;
    if (x > from) reversed.push({ kind: "same", left: start + from, right: start + fromY, count: x - from });
    x = adds ? from : from - 1;
    y = adds ? fromY - 1 : fromY;
    reversed.push({ kind: adds ? "added" : "removed", left: start + x, right: start + y, count: 1 });
  }
  if (x > 0) reversed.push({ kind: "same", left: start, right: start, count: x });
  return reversed.reverse();
}

/** Lines of both texts or of one; unchanged lines outside of the context are only counted. */
export interface TextPart {
  readonly kind: "same" | "removed" | "added";
  /** From 1. */
  readonly left_line: number;
  readonly right_line: number;
  readonly line_count: number;
  readonly lines: string[];
}

export interface TextDiff {
  readonly parts: TextPart[];
  /** The texts continue beyond the parts. */
  readonly isTruncated: boolean;
}

const CONTEXT_LINES = 3;

/** Compares texts by lines, which end before LF. `maxCharacters` limits the parts. */
export function diffText(left: string, right: string, maxCharacters = Number.POSITIVE_INFINITY): TextDiff {
  const leftLines = left.split("\n");
  const rightLines = right.split("\n");
  const numbers = new Map<string, number>();
  const numbered = (lines: readonly string[]): number[] =>
    lines.map((line) => {
      const known = numbers.get(line);
      if (known !== undefined) return known;
      numbers.set(line, numbers.size);
      return numbers.size - 1;
    });
  const runs = diffSequences(numbered(leftLines), numbered(rightLines));
  const parts: TextPart[] = [];
  let room = maxCharacters;
  for (const [index, { kind, left: from, right: to, count }] of runs.entries()) {
    const lines = kind === "added" ? rightLines.slice(to, to + count) : leftLines.slice(from, from + count);
    const made =
      kind === "same" ? inContext(lines, from, to, index > 0, index < runs.length - 1) : [part(kind, from, to, lines)];
    room -= made.reduce(
      (sum, { lines: shown }) => sum + shown.reduce((length, line) => length + line.length + 1, 0),
      0,
    );
    if (room < 0) return { parts, isTruncated: true };
    parts.push(...made);
  }
  return { parts, isTruncated: false };
}

function part(kind: TextPart["kind"], left: number, right: number, lines: string[], count = lines.length): TextPart {
  return { kind, left_line: left + 1, right_line: right + 1, line_count: count, lines };
}

/** Context of unchanged lines: after a change, the omitted middle, and before the next change. */
function inContext(lines: string[], left: number, right: number, isBehind: boolean, isBefore: boolean): TextPart[] {
  const head = isBehind ? CONTEXT_LINES : 0;
  const tail = isBefore ? CONTEXT_LINES : 0;
  if (lines.length <= head + tail) return [part("same", left, right, lines)];
  const hidden = lines.length - head - tail;
  const parts = [part("same", left + head, right + head, [], hidden)];
  if (head > 0) parts.unshift(part("same", left, right, lines.slice(0, head)));
  if (tail > 0) parts.push(part("same", left + head + hidden, right + head + hidden, lines.slice(-tail)));
  return parts;
}

/** Rebuilds the right text from complete parts. Throws `RangeError` for parts of other texts. */
export function applyTextParts(left: string, parts: readonly TextPart[]): string {
  const leftLines = left.split("\n");
  const made: string[] = [];
  let at = 0;
  for (const { kind, left_line: line, line_count: count, lines } of parts) {
    if (line !== at + 1 || at > leftLines.length) throw new RangeError("These parts are of another text");
    if (kind === "added") made.push(...lines);
    else {
      if (kind === "same") for (const same of leftLines.slice(at, at + count)) made.push(same);
      at += count;
    }
  }
  if (at !== leftLines.length) throw new RangeError("These parts are of another text");
  return made.join("\n");
}
