import { isAlias, isCollection, isMap, isNode, isScalar, isSeq } from "yaml";
import type { Document } from "yaml";

/** Lines of a text that are comments, with the empty lines around them. */
interface Block {
  readonly lines: readonly string[];
  /** Where they stood, in the text without any. */
  readonly at: number;
}

/** A text without its lines that are comments, and these. */
export interface Uncommented {
  readonly text: string;
  readonly blocks: readonly Block[];
}

/**
 * Takes the comments out of a text that have lines to themselves. What is commented out is often a part of the document
 * that waits to be needed, which the library moves to places where it would be part of something else.
 */
export function withoutCommentLines(text: string, document: Document.Parsed): Uncommented {
  const opaque = leaves(document.contents);
  const kept: string[] = [];
  const blocks: Block[] = [];
  let waiting: string[] = [];
  let [at, keptLength, next] = [0, 0, 0];
  const settle = (): void => {
    if (waiting.some((line) => line !== "")) blocks.push({ lines: evenly(waiting), at: keptLength });
    else for (const line of waiting) keep(`${line}\n`);
    waiting = [];
  };
  const keep = (line: string): void => {
    kept.push(line);
    keptLength += line.length;
  };
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const first = at + line.search(/[^ \t]|$/);
    while ((opaque[next]?.end ?? Infinity) <= first) next += 1;
    const isInside = (opaque[next]?.start ?? Infinity) < first;
    const plain = line.trimEnd();
    if (!isInside && (plain === "" || plain.trimStart().startsWith("#"))) waiting.push(plain);
    else {
      settle();
      keep(line);
    }
    at += line.length;
  }
  settle();
  return { text: kept.join(""), blocks };
}

/** No empty line twice. */
function evenly(lines: readonly string[]): string[] {
  return lines.filter((line, at) => line !== "" || lines[at - 1] !== "");
}

/**
 * Puts comments back before what they stood before, indented like what they were indented like. `before` is the document
 * that they were taken out of, `after` the same one as it is written in `text`; undefined when these have different parts.
 */
export function withCommentLines(
  text: string,
  { text: source, blocks }: Uncommented,
  before: Document.Parsed,
  after: Document.Parsed,
): string | undefined {
  const from = leaves(before.contents).map(({ start }) => placeIn(source, start));
  const to = leaves(after.contents).map(({ start }) => placeIn(text, start));
  if (from.length !== to.length) return undefined;
  const parts: string[] = [];
  let done = 0;
  let next = 0;
  for (const { lines, at } of blocks) {
    while (next < from.length && (from[next]?.start ?? 0) < at) next += 1;
    const lineStart = to[next]?.lineStart ?? text.length;
    const indented = lines.map((line) => {
      const content = line.trimStart();
      if (content === "") return "\n";
      return `${" ".repeat(newColumn(line.length - content.length, from, to, next))}${content}\n`;
    });
    // A text neither begins nor ends with an empty line.
    if (lineStart === 0 && indented[0] === "\n") indented.shift();
    if (lineStart === text.length && indented.at(-1) === "\n") indented.pop();
    parts.push(text.slice(done, lineStart), ...indented);
    done = lineStart;
  }
  return parts.join("") + text.slice(done);
}

/** Where something begins, and its line. */
interface PlaceInText {
  readonly start: number;
  readonly lineStart: number;
  readonly column: number;
  /** Column of what the line begins with, such as a dash. */
  readonly indent: number;
}

function placeIn(text: string, start: number): PlaceInText {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  return { start, lineStart, column: start - lineStart, indent: text.slice(lineStart).search(/[^ ]/) };
}

/** Where a comment begins now that began in `column`, before the part `next`. */
function newColumn(column: number, from: readonly PlaceInText[], to: readonly PlaceInText[], next: number): number {
  const [before, after] = [from[next], to[next]];
  if (before?.indent === column && after !== undefined) return after.indent;
  // The line before it that is indented no more than it is has the level that it belongs to: what begins on that line
  // nearest to the left of it, a key or the dash in front.
  let level: readonly [old: number, now: number] | undefined;
  let line = -1;
  for (let at = next - 1; at >= 0 && (level === undefined || from[at]?.lineStart === line); at -= 1) {
    const [old, now] = [from[at], to[at]];
    if (old === undefined || now === undefined || old.indent > column) continue;
    line = old.lineStart;
    level ??= [old.indent, now.indent];
    if (old.column <= column && old.column > level[0]) level = [old.column, now.column];
  }
  return level === undefined ? column : level[1] + column - level[0];
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** Keys, scalars, aliases and what is in brackets, in the order of the text. */
function leaves(root: unknown, found: Range[] = []): Range[] {
  if (isMap(root) && root.flow !== true) {
    for (const { key, value } of root.items) {
      leaves(key, found);
      leaves(value, found);
    }
  } else if (isSeq(root) && root.flow !== true) {
    for (const item of root.items) leaves(item, found);
  } else if (isNode(root) && (isScalar(root) || isAlias(root) || isCollection(root))) {
    const [start, end] = root.range ?? [0, 0];
    if (end > start) found.push({ start, end });
  }
  return found;
}
