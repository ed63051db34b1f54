import { diffSequences } from "./sequence-diff.ts";

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

/**
 * Compares texts by lines. A line ends before LF, so that line ends count.
 * @param maxCharacters limit of the characters in the parts
 */
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
