import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, stringify, type YAMLMap, type YAMLSeq } from "yaml";
import { type DocumentInput, GatewaySettings } from "@headworks/gateway-contract";
import { isSameJson } from "@headworks/json";
import { readingSteps } from "./read-document.ts";
import type { Steps } from "./steps.ts";
import { normalDocument, toJson, toYaml } from "./write-document.ts";
import { keyText, type YamlSource, yamlSteps } from "./yaml-source.ts";

/** Characters. */
const MAX_YAML_LENGTH = 256 * 1024;

/**
 * Changes a text that parses to `before` into one that parses to `after`, both in normal form. YAML keeps its comments
 * and order where nothing changed; JSON stays JSON. A text that cannot be edited in place, such as one with aliases of
 * changed values, is rewritten completely.
 */
export function* patchedTextSteps(text: string, before: DocumentInput, after: unknown): Steps<string> {
  if (text.trimStart().startsWith("{") || !isMembers(after)) return `${toJson(after, 2)}\n`;
  const source = yield* yamlSteps(text);
  const edited = editedText(text, source, before, after);
  if (edited !== undefined) {
    const outcome = yield* yamlSteps(edited);
    yield;
    if (outcome.issues.length === 0 && sameDocument(plainValue(outcome, outcome.root), after)) return edited;
  }
  // JSON is valid YAML and is written ten times as fast; requests are blocked meanwhile.
  return text.length <= MAX_YAML_LENGTH ? toYaml(after) : `${toJson(after, 2)}\n`;
}

/** True if the text parses to this document in normal form. */
export function* saysSteps(text: string, document: DocumentInput): Steps<boolean> {
  const { input, issues } = yield* readingSteps(text, ".");
  yield;
  return issues.length === 0 && sameDocument(input, document);
}

/** The minimal edit of the text; undefined if it cannot be determined. */
function editedText(text: string, { root }: YamlSource, before: Members, after: Members): string | undefined {
  if (!isMap(root) || root.flow === true) return undefined;
  const edits = new TextEdits(text);
  const atRoot = new Set(root.items.map(({ key }) => keyText(key)).filter((name) => isSetting(name)));
  try {
    edits.members(root, asWritten(before, atRoot), asWritten(after, atRoot));
  } catch {
    return undefined;
  }
  return edits.applied();
}

function isSetting(name: string | undefined): boolean {
  return name !== undefined && Object.hasOwn(GatewaySettings.properties, name);
}

/** The normal form with gateway settings moved to the root if the text has them there. */
function asWritten(document: Members, atRoot: ReadonlySet<string | undefined>): Members {
  const { gateway, ...sections } = document;
  if (!isMembers(gateway)) return document;
  const settings = Object.entries(gateway);
  const nested = settings.filter(([name]) => !atRoot.has(name));
  return {
    ...sections,
    ...(nested.length === 0 ? {} : { gateway: Object.fromEntries(nested) }),
    ...Object.fromEntries(settings.filter(([name]) => atRoot.has(name))),
  };
}

function sameDocument(found: unknown, wanted: DocumentInput): boolean {
  if (!isMembers(found)) return false;
  // A section with all lines commented out has no value and counts as absent.
  const valued = Object.fromEntries(Object.entries(found).filter(([, value]) => value !== null));
  return toJson(normalDocument(valued)) === toJson(normalDocument(wanted));
}

/** Values of nodes, without a schema. */
function plainValue(source: YamlSource, node: unknown): unknown {
  if (isAlias(node)) return plainValue(source, source.resolve(node));
  if (isSeq(node)) return node.items.map((item) => plainValue(source, item));
  if (isMap(node)) {
    return Object.fromEntries(node.items.map(({ key, value }) => [keyText(key), plainValue(source, value)]));
  }
  return isScalar(node) ? node.value : node;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

type Members = Readonly<Record<string, unknown>>;

/** The text cannot be edited in place; the enclosing value is rewritten. */
class TooIntricate extends Error {}

/** Characters of JSON. */
const MAX_BLOCK_LAYOUT = 64 * 1024;
const LAYOUT = { version: "1.2", schema: "core", lineWidth: 0, aliasDuplicateObjects: false } as const;

/** Collects minimal edits that change the values of a YAML text; unchanged parts keep comments, order and style. */
class TextEdits {
  readonly #text: string;
  readonly #edits: Edit[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  applied(): string {
    const parts: string[] = [];
    let at = 0;
    for (const { start, end, text } of this.#edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
      parts.push(this.#text.slice(at, start), text);
      at = end;
    }
    return parts.join("") + this.#text.slice(at);
  }

  /** Changes the value of `node` from `before` to `after`. */
  change(node: unknown, before: unknown, after: unknown): void {
    if (isSame(before, after)) return;
    const mark = this.#edits.length;
    try {
      if (isMap(node) && isMembers(before) && isMembers(after)) return this.members(node, before, after);
      if (isSeq(node) && Array.isArray(before) && Array.isArray(after)) return this.#items(node, before, after);
    } catch (error) {
      if (!(error instanceof TooIntricate)) throw error;
      this.#edits.length = mark;
    }
    this.#replace(node, after);
  }

  /** Does the same for members of a mapping; members in neither value are untouched. */
  members(map: YAMLMap, before: Members, after: Members): void {
    const pairs = new Map(map.items.map((pair) => [keyText(pair.key), pair]));
    const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
    const missing = Object.keys(after).filter((name) => !pairs.has(name));
    if (map.flow === true && removed.length + missing.length > 0) throw new TooIntricate();
    if (removed.length > 0 && removed.length === map.items.length) throw new TooIntricate();
    for (const [name, value] of Object.entries(after)) {
      const pair = pairs.get(name);
      if (pair !== undefined) this.#changePair(pair, before[name], value);
    }
    for (const name of removed) this.#cutPair(pairs.get(name));
    if (missing.length === 0) return;
    const added = Object.fromEntries(missing.map((name) => [name, after[name]]));
    this.#insertBehind(map, this.#columnOf(startOf(map.items[0]?.key)), laidOut(added));
  }

  #changePair({ key, value: node }: Pair, before: unknown, after: unknown): void {
    if (isSame(before, after)) return;
    const isNothing = node === null || (isScalar(node) && node.value === null && node.range?.[0] === node.range?.[1]);
    if (!isNothing) return this.change(node, before, after);
    const behindKey = this.#endOf(key);
    const colon = this.#text.indexOf(":", behindKey);
    if (this.#text.slice(behindKey, colon).trim() !== "") throw new TooIntricate();
    this.#edits.push({ start: colon + 1, end: colon + 1, text: ` ${inOneLine(after)}` });
  }

  #cutPair(pair: Pair | undefined): void {
    if (pair === undefined) throw new TooIntricate();
    this.#cut(startOf(pair.key), this.#endOf(pair.value ?? pair.key));
  }

  #items(list: YAMLSeq, before: readonly unknown[], after: readonly unknown[]): void {
    if (list.items.length !== before.length || after.length === 0) throw new TooIntricate();
    const pairs = alignment(before, after);
    const isAnyNew = pairs.length !== before.length || pairs.length !== after.length;
    if (pairs.length === 0 || (list.flow === true && isAnyNew)) throw new TooIntricate();
    const kept = new Set(pairs.map(([old]) => old));
    for (const at of before.keys()) if (!kept.has(at)) this.#cutItem(list, at);
    for (const [old, next] of pairs) this.change(list.items[old], before[old], after[next]);
    // New items follow the kept item before them, or come first.
    let [from, behind] = [0, undefined as number | undefined];
    for (const [old, next] of [...pairs, [undefined, after.length] as const]) {
      if (next > from) this.#addItems(list, behind, after.slice(from, next));
      [from, behind] = [next + 1, old];
    }
  }

  #addItems(list: YAMLSeq, behind: number | undefined, items: readonly unknown[]): void {
    const start = startOf(list);
    const column = this.#columnOf(start);
    if (behind !== undefined) return this.#insertBehind(list.items[behind], column, laidOut(items));
    const line = this.#lineStart(start);
    if (this.#text.slice(line, start).trim() !== "") throw new TooIntricate();
    this.#insert(this.#aboveComments(line, start), column, laidOut(items));
  }

  #cutItem(list: YAMLSeq, at: number): void {
    const node = list.items[at];
    const dash = this.#text.lastIndexOf("-", startOf(node) - 1);
    if (dash < startOf(list) || this.#text.slice(dash + 1, startOf(node)).trim() !== "") throw new TooIntricate();
    this.#cut(dash, this.#endOf(node));
  }

  /** Deletes whole lines and directly preceding comments with the same indentation. */
  #cut(start: number, end: number): void {
    const line = this.#lineStart(start);
    if (this.#text.slice(line, start).trim() !== "") throw new TooIntricate();
    const from = this.#aboveComments(line, start);
    // A comment at the beginning of the text applies to the whole text.
    this.#edits.push({ start: from === 0 ? line : from, end: this.#nextLine(end), text: "" });
  }

  /** The start of a line, or of the directly preceding comments with the same indentation. */
  #aboveComments(line: number, start: number): number {
    const mark = `${this.#text.slice(line, start)}#`;
    let from = line;
    while (from > 0 && this.#text.startsWith(mark, this.#lineStart(from - 1))) from = this.#lineStart(from - 1);
    return from;
  }

  #insertBehind(node: unknown, column: number, block: string): void {
    this.#insert(this.#nextLine(this.#endOf(node)), column, block);
  }

  #insert(start: number, column: number, block: string): void {
    const lineEnd = this.#text.includes("\r\n") ? "\r\n" : "\n";
    const text = block.replaceAll(/^(?=[^\n])/gm, " ".repeat(column)).replaceAll("\n", lineEnd);
    const isCutShort = start > 0 && this.#text[start - 1] !== "\n";
    this.#edits.push({ start, end: start, text: isCutShort ? `${lineEnd}${text.trimEnd()}` : text });
  }

  #replace(node: unknown, after: unknown): void {
    this.#edits.push({ start: startOf(node), end: this.#endOf(node), text: inOneLine(after) });
  }

  /** The offset after a value, before a trailing comment or line end. */
  #endOf(node: unknown): number {
    if (isMap(node) && node.flow !== true) {
      const last = node.items.at(-1);
      return this.#endOf(last?.value ?? last?.key);
    }
    if (isSeq(node) && node.flow !== true) return this.#endOf(node.items.at(-1));
    const range = (node as Node | null | undefined)?.range;
    if (range == null) throw new TooIntricate();
    const [start, end] = range;
    return start + this.#text.slice(start, end).trimEnd().length;
  }

  #columnOf(start: number): number {
    const line = this.#lineStart(start);
    return start - line;
  }

  #lineStart(offset: number): number {
    return this.#text.lastIndexOf("\n", offset - 1) + 1;
  }

  #nextLine(offset: number): number {
    const end = this.#text.indexOf("\n", offset);
    return end === -1 ? this.#text.length : end + 1;
  }
}

/** Pairs items in order: by unique names, else by common prefix and suffix, then by index. */
function alignment(before: readonly unknown[], after: readonly unknown[]): readonly Pairing[] {
  const [old, next] = [namesOf(before), namesOf(after)];
  if (old === undefined || next === undefined) return bothEnds(before, after);
  const named = [...old].flatMap(([name, at]): Pairing[] => (next.has(name) ? [[at, next.get(name) ?? 0]] : []));
  if (named.some(([, at], index) => index > 0 && at < (named[index - 1]?.[1] ?? 0))) return bothEnds(before, after);
  const pairs: Pairing[] = [];
  let [fromOld, fromNext] = [0, 0];
  for (const [at, to] of [...named, [before.length, after.length] as const]) {
    const renamed = at - fromOld === to - fromNext ? at - fromOld : 0;
    for (let index = 0; index < renamed; index += 1) pairs.push([fromOld + index, fromNext + index]);
    if (at < before.length) pairs.push([at, to]);
    [fromOld, fromNext] = [at + 1, to + 1];
  }
  return pairs;
}

/** Index before, index after. */
type Pairing = readonly [number, number];

function bothEnds(before: readonly unknown[], after: readonly unknown[]): readonly Pairing[] {
  const max = Math.min(before.length, after.length);
  let behind = 0;
  while (behind < max && isSame(before.at(-1 - behind), after.at(-1 - behind))) behind += 1;
  return Array.from({ length: max }, (_, at) =>
    at < max - behind ? [at, at] : [before.length - max + at, after.length - max + at],
  );
}

/** Indexes by name; undefined unless all items have unique names. */
function namesOf(items: readonly unknown[]): ReadonlyMap<string, number> | undefined {
  const positions = new Map<string, number>();
  for (const [at, item] of items.entries()) {
    const name = isMembers(item) ? item["name"] : undefined;
    if (typeof name !== "string" || positions.has(name)) return undefined;
    positions.set(name, at);
  }
  return positions;
}

const isSame = (before: unknown, after: unknown): boolean => isSameJson(before, after);

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Block layout. It takes tens of times as long as JSON, and requests are blocked meanwhile. */
function laidOut(value: object): string {
  if (toJson(value).length <= MAX_BLOCK_LAYOUT) return stringify(value, LAYOUT);
  const lines = Array.isArray(value)
    ? value.map((item) => `- ${toJson(item)}\n`)
    : Object.entries(value).map(([name, member]) => `${toJson(name)}: ${toJson(member)}\n`);
  return lines.join("");
}

/** JSON is valid YAML in any position. */
function inOneLine(value: unknown): string {
  return typeof value === "string" && /^[A-Za-z][\w./-]*$/.test(value)
    ? stringify(value, LAYOUT).trimEnd()
    : toJson(value);
}

function startOf(node: unknown): number {
  const start = (node as Node | null | undefined)?.range?.[0];
  if (start === undefined) throw new TooIntricate();
  return start;
}
