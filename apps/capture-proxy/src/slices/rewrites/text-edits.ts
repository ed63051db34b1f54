import { isAscii } from "node:buffer";
import type { RewriteAction } from "@headworks/capture-contract";
import { readJson, writeJson, type Json } from "@headworks/exact-json";
import { jsonPatch, mergePatch, PatchError } from "@headworks/json-patch";
import { compilePattern, readReplacement, type Replaced } from "@headworks/linear-pattern";

/** Actions that make a text of another one. */
export type TextAction = RewriteAction & { readonly type: "body_rewrite" | "json_patch" | "json_merge" };

/** Another text and how it came about, or why it stays as it is. */
export type EditedText = { readonly text: string; readonly words: string } | { readonly problem: string };

/** A word and what takes its place, as bytes that mean the same in every charset that has ASCII in it. */
export interface WordEdit {
  readonly word: Buffer;
  readonly by: Buffer;
}

/** The word that an action replaces, when it is one and both are ASCII. */
export function wordEditOf(action: TextAction): WordEdit | undefined {
  if (action.type !== "body_rewrite") return undefined;
  const word = wordOf(action);
  if (word === undefined) return undefined;
  const [from, to] = [Buffer.from(action.pattern), Buffer.from(word)];
  return isAscii(from) && isAscii(to) ? { word: from, by: to } : undefined;
}

/** The body with every occurrence replaced, and how it came about. */
export function editWord(
  body: Buffer,
  { word, by }: WordEdit,
): { readonly bytes: Buffer; readonly words: string } | { readonly problem: string } {
  const pieces: Buffer[] = [];
  let kept = 0;
  for (let at = body.indexOf(word); at !== -1; at = body.indexOf(word, kept)) {
    pieces.push(body.subarray(kept, at), by);
    kept = at + word.length;
    if (pieces.length * by.length > MAX_UNITS) return TOO_LARGE;
  }
  if (pieces.length === 0) return { problem: "the pattern is not in the body" };
  const words = countWords(pieces.length / 2);
  if (word.equals(by)) return { problem: `${words}, which changes nothing` };
  pieces.push(body.subarray(kept));
  return { bytes: Buffer.concat(pieces), words };
}

const TOO_LARGE = { problem: "the pattern takes too long on this body, or makes it too large" };

const countWords = (count: number): string => (count === 1 ? "1 match replaced" : `${count} matches replaced`);

/** An action ready to run over any number of texts. Throws a `RangeError` for what the check of rules refuses. */
export function compileTextEdit(action: TextAction): (text: string) => EditedText {
  const change = editOf(action);
  return (text) => {
    const edited = change(text);
    return "text" in edited && edited.text === text ? { problem: `${edited.words}, which changes nothing` } : edited;
  };
}

function editOf(action: TextAction): (text: string) => EditedText {
  switch (action.type) {
    case "json_patch": {
      // Copies of copies double what there is with each of them, which costs nothing before it is written down.
      const multiplies = action.patch.some(({ op }) => op === "copy");
      return jsonEdit("JSON Patch", (json) => {
        const patched = jsonPatch(json, action.patch as unknown as Json);
        if (multiplies && unitsLeft(patched, MAX_JSON_UNITS) < 0) throw new RangeError("too large");
        return patched;
      });
    }
    case "json_merge":
      return jsonEdit("JSON Merge Patch", (json) => mergePatch(json, action.patch as Json));
    case "body_rewrite": {
      const run = compilePatternEdit(action);
      return (text) => {
        const result = run(text);
        if (result === "gave-up") return TOO_LARGE;
        if (result.count === 0) return { problem: "the pattern is not in the body" };
        return { text: result.text, words: countWords(result.count) };
      };
    }
  }
}

function jsonEdit(words: string, change: (json: Json) => Json): (text: string) => EditedText {
  return (text) => {
    if (text.trim() === "") return { problem: `${words} not applied: there is no body` };
    try {
      return { text: writeJson(change(readJson(text)), text), words: `${words} applied` };
    } catch (error) {
      if (error instanceof PatchError) return { problem: `${words} not applied: ${error.message}` };
      if (error instanceof SyntaxError) return { problem: `${words} not applied: the body is no JSON` };
      if (error instanceof RangeError) return { problem: `${words} not applied: the result is too deep or too large` };
      throw error;
    }
  };
}

/** Units that a JSON text with copies may have, about. */
const MAX_JSON_UNITS = 16_777_216;

/** What is left of a number of units when a value is written; below 0 as soon as it is too large. */
function unitsLeft(json: Json, units: number): number {
  if (typeof json === "string") return units - json.length;
  if (typeof json !== "object" || json === null) return units - 4;
  let left = units - 2;
  for (const [name, value] of Object.entries(json)) {
    if (left < 0) return left;
    left = unitsLeft(value as Json, left - name.length - 2);
  }
  return left;
}

/** Longer words are left to the automaton: searching them plainly can take the product of both lengths. */
const MAX_WORD_LENGTH = 32;
/** Units of a text that replacing may make; a short pattern and a long replacement multiply. */
const MAX_UNITS = 67_108_864;

/** A pattern and its replacement, ready to run. Throws a `RangeError` for what the check of rules refuses. */
export function compilePatternEdit(action: PatternEdit): (text: string) => Replaced | "gave-up" {
  const { source, flags } = readFlags(action.pattern, action.flags ?? "");
  const pattern = compilePattern(source, flags);
  const read = readReplacement(action.replacement, pattern);
  if (!read.ok) throw new RangeError(`replacement: ${read.error.message}`);
  const { replacement } = read;
  const word = wordOf(action);
  if (word !== undefined) return (text) => withWordReplaced(text, source, word);
  return (text) => pattern.replaceAll(text, replacement, MAX_UNITS);
}

interface PatternEdit {
  readonly pattern: string;
  readonly replacement: string;
  readonly flags?: string;
}

/** What takes the place of a pattern that is a plain word; undefined for others. */
function wordOf({ pattern: source, replacement, flags = "" }: PatternEdit): string | undefined {
  const isWord = flags === "" && source.length <= MAX_WORD_LENGTH && /^[^\\^$.*+?()[\]{}|]+$/.test(source);
  const read = isWord ? readReplacement(replacement, { groupCount: 0, groupNames: [] }) : undefined;
  return read?.ok === true
    ? read.replacement({ start: 0, end: source.length, groups: [source], named: {} })
    : undefined;
}

/** The platform's search for a word is many times faster than an automaton. */
function withWordReplaced(text: string, word: string, by: string): Replaced | "gave-up" {
  const parts = text.split(word);
  const count = parts.length - 1;
  if (text.length + count * by.length > MAX_UNITS) return "gave-up";
  return { text: count === 0 ? text : parts.join(by), count };
}

/** Flags may stand in front of the pattern too, as in `(?i)users`, which other engines know. */
export function readFlags(pattern: string, flags: string): { source: string; flags: string; skipped: number } {
  const [leading = "", own = ""] = /^\(\?([ims]{1,3})\)/.exec(pattern) ?? [];
  return {
    source: pattern.slice(leading.length),
    flags: [...new Set(flags + own)].join(""),
    skipped: leading.length,
  };
}
