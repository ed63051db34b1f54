// Tested by patched-text.test.ts
import { isSameJson, type Json } from "@headworks/json-patch";
import { isMap, isScalar, isSeq, stringify } from "yaml";
import type { Node, Pair, YAMLMap, YAMLSeq } from "yaml";
import { toJson } from "./write-document.ts";
import { keyText } from "./yaml-source.ts";

/** A part of the text, and what stands there instead. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

type Members = Readonly<Record<string, unknown>>;

/** Not this way: the value around it is written anew. */
class TooIntricate extends Error {}

/** Characters of JSON. */
const MOST_LAID_OUT = 64 * 1024;
const LAYOUT = { version: "1.2", schema: "core", lineWidth: 0, aliasDuplicateObjects: false } as const;

/**
 * Collects what has to change in a YAML text so that its values are others, and as little as possible: what stays keeps
 * its comments, its order and its way of being written.
 */
export class TextEdits {
  readonly #text: string;
  readonly #edits: Edit[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  /** The text with all changes made. */
  applied(): string {
    let text = this.#text;
    for (const { start, end, text: next } of this.#edits.toSorted((a, b) => b.start - a.start || b.end - a.end)) {
      text = text.slice(0, start) + next + text.slice(end);
    }
    return text;
  }

  /** Makes the value of `node`, which is `before`, to be `after`. */
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

  /** The same for the members of a mapping; members of the text that are in neither are left alone. */
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
    if (list.items.length !== before.length) throw new TooIntricate();
    let from = 0;
    while (from < before.length && from < after.length && isSame(before[from], after[from])) from += 1;
    let behind = 0;
    const mostBehind = Math.min(before.length, after.length) - from;
    while (behind < mostBehind && isSame(before.at(-1 - behind), after.at(-1 - behind))) behind += 1;
    const old = before.length - behind;
    const next = after.length - behind;
    if (list.flow === true && old !== next) throw new TooIntricate();
    if (after.length === 0 || (from === 0 && old === 0)) throw new TooIntricate();
    const both = Math.min(old, next);
    for (let at = from; at < both; at += 1) this.change(list.items[at], before[at], after[at]);
    for (let at = both; at < old; at += 1) this.#cutItem(list, at);
    if (next <= old) return;
    const last = list.items[both - 1];
    if (last === undefined) throw new TooIntricate();
    this.#insertBehind(last, this.#columnOf(startOf(list)), laidOut(after.slice(both, next)));
  }

  #cutItem(list: YAMLSeq, at: number): void {
    const node = list.items[at];
    const dash = this.#text.lastIndexOf("-", startOf(node) - 1);
    if (dash < startOf(list) || this.#text.slice(dash + 1, startOf(node)).trim() !== "") throw new TooIntricate();
    this.#cut(dash, this.#endOf(node));
  }

  /** Cuts whole lines, and comments right above that are indented alike. */
  #cut(start: number, end: number): void {
    const line = this.#lineStart(start);
    const indent = this.#text.slice(line, start);
    if (indent.trim() !== "") throw new TooIntricate();
    let from = line;
    while (from > 0 && this.#text.startsWith(`${indent}#`, this.#lineStart(from - 1))) from = this.#lineStart(from - 1);
    // What the text begins with is said of all of it.
    this.#edits.push({ start: from === 0 ? line : from, end: this.#nextLine(end), text: "" });
  }

  #insertBehind(node: unknown, column: number, block: string): void {
    const start = this.#nextLine(this.#endOf(node));
    const isCutShort = this.#text[start - 1] !== "\n";
    const text = block.replaceAll(/^(?=[^\n])/gm, " ".repeat(column));
    this.#edits.push({ start, end: start, text: isCutShort ? `\n${text.trimEnd()}` : text });
  }

  #replace(node: unknown, after: unknown): void {
    this.#edits.push({ start: startOf(node), end: this.#endOf(node), text: inOneLine(after) });
  }

  /** Behind the last character of a value, not of the comment or the line behind it. */
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

const isSame = (before: unknown, after: unknown): boolean => isSameJson(before as Json, after as Json);

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Members or items in lines. Laying out takes tens of times as long as JSON, and requests wait meanwhile. */
function laidOut(value: object): string {
  if (toJson(value).length <= MOST_LAID_OUT) return stringify(value, LAYOUT);
  const lines = Array.isArray(value)
    ? value.map((item) => `- ${toJson(item)}\n`)
    : Object.entries(value).map(([name, member]) => `${toJson(name)}: ${toJson(member)}\n`);
  return lines.join("");
}

/** JSON is YAML that may stand anywhere. */
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
