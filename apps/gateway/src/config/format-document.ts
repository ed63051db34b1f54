import { type Document, isAlias, isCollection, isMap, isNode, isScalar, isSeq, parseDocument } from "yaml";
import { toJson } from "./write-document.ts";
import { readYaml, YAML_OPTIONS } from "./yaml-source.ts";

/**
 * Formats a configuration: two spaces of indentation; comments, order, quotes and anchors are kept; JSON stays JSON.
 * Undefined for syntax errors, and if the result would not be equivalent.
 */
export function formatDocument(text: string): string | undefined {
  if (readYaml(text).issues.length > 0) return undefined;
  const document = parse(text);
  try {
    const formatted = isJson(text) ? `${toJson(document.toJS(), 2)}\n` : formatText(text, document);
    return sameValues(text, formatted) ? formatted : undefined;
  } catch {
    // Aliases expand to more than can be compared.
    return undefined;
  }
}

/** Whole-line comments are hidden from the YAML library, which would move them. */
function formatText(text: string, document: Document.Parsed): string {
  const uncommented = withoutCommentLines(text, document);
  const before = parse(uncommented.text);
  const formatted = written(before);
  return withCommentLines(formatted, uncommented, parse(uncommented.text), parse(formatted)) ?? written(document);
}

function written(document: Document.Parsed): string {
  return document.toString({ indent: 2, lineWidth: 0, flowCollectionPadding: false });
}

function isJson(text: string): boolean {
  if (!text.trimStart().startsWith("{")) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function sameValues(before: string, after: string): boolean {
  return readYaml(after).issues.length === 0 && toJson(parse(before).toJS()) === toJson(parse(after).toJS());
}

function parse(text: string): Document.Parsed {
  return parseDocument(text, YAML_OPTIONS);
}

/** Consecutive comment lines with adjacent empty lines. */
interface Block {
  readonly lines: readonly string[];
  /** Offset in the text without comments. */
  readonly at: number;
}

interface Uncommented {
  readonly text: string;
  readonly blocks: readonly Block[];
}

/** Extracts whole-line comments, which the YAML library would move into other collections. */
function withoutCommentLines(text: string, document: Document.Parsed): Uncommented {
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

/** Collapses repeated empty lines. */
function evenly(lines: readonly string[]): string[] {
  return lines.filter((line, at) => line !== "" || lines[at - 1] !== "");
}

/**
 * Restores comments in front of the same nodes with matching indentation. `before` is the document they were extracted
 * from, `after` the same document as written in `text`; undefined if their structures differ.
 */
function withCommentLines(
  text: string,
  { text: source, blocks }: Uncommented,
  before: Document.Parsed,
  after: Document.Parsed,
): string | undefined {
  const from = leaves(before.contents).map(({ start }) => positionIn(source, start));
  const to = leaves(after.contents).map(({ start }) => positionIn(text, start));
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

interface TextPosition {
  readonly start: number;
  readonly lineStart: number;
  readonly column: number;
  /** Column of the first token of the line, such as a dash. */
  readonly indent: number;
}

function positionIn(text: string, start: number): TextPosition {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  return { start, lineStart, column: start - lineStart, indent: text.slice(lineStart).search(/[^ ]/) };
}

/** The new column of a comment that began in `column` before the part `next`. */
function newColumn(column: number, from: readonly TextPosition[], to: readonly TextPosition[], next: number): number {
  const [before, after] = [from[next], to[next]];
  if (before?.indent === column && after !== undefined) return after.indent;
  // The nearest preceding line with no greater indentation determines the level: the key or dash on it closest to the
  // left of `column`.
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

/** Keys, scalars, aliases and contents of flow collections, in text order. */
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
