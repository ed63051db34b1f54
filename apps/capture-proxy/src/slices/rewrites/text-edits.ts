import { isAscii } from "node:buffer";
import type { RewriteAction } from "@headworks/capture-contract";
import { readJson, writeJson, type Json, jsonPatch, mergePatch, PatchError } from "@headworks/json";
import { compilePattern, readReplacement, type Replaced } from "@headworks/linear-pattern";

export type TextAction = RewriteAction & { readonly type: "body_rewrite" | "json_patch" | "json_merge" };

/** An edited text and its description, or the reason why it is unchanged. */
export type EditedText = { readonly text: string; readonly words: string } | { readonly problem: string };

/** A word and its replacement as ASCII bytes, valid in every superset of ASCII. */
export interface WordEdit {
  readonly word: Buffer;
  readonly by: Buffer;
}

/** The edit of an action that replaces a plain ASCII word with ASCII. */
export function wordEditOf(action: TextAction): WordEdit | undefined {
  if (action.type !== "body_rewrite") return undefined;
  const word = wordOf(action);
  if (word === undefined) return undefined;
  const [from, to] = [Buffer.from(action.pattern), Buffer.from(word)];
  return isAscii(from) && isAscii(to) ? { word: from, by: to } : undefined;
}

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

/** Compiles an action for any number of texts. Throws a `RangeError` for one that the check of rules rejects. */
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
      // Copies of copies double the size each time, which costs nothing before serialization.
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
      if (error instanceof SyntaxError) return { problem: `${words} not applied: the body is not JSON` };
      if (error instanceof RangeError) return { problem: `${words} not applied: the result is too deep or too large` };
      throw error;
    }
  };
}

/** Approximate limit of a JSON text with copies, in UTF-16 units. */
const MAX_JSON_UNITS = 16_777_216;

/** Subtracts the approximate length of a value; below 0 as soon as the limit is exceeded. */
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

/** Longer words are left to the automaton: a plain search can take the product of both lengths. */
const MAX_WORD_LENGTH = 32;
/** Maximum length of a replaced text, in UTF-16 units; short patterns with long replacements multiply. */
const MAX_UNITS = 67_108_864;

/** Compiles a pattern edit. Throws a `RangeError` for one that the check of rules rejects. */
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

/** The replacement of a pattern that is a plain word; undefined for others. */
function wordOf({ pattern: source, replacement, flags = "" }: PatternEdit): string | undefined {
  const isWord = flags === "" && source.length <= MAX_WORD_LENGTH && /^[^\\^$.*+?()[\]{}|]+$/.test(source);
  const read = isWord ? readReplacement(replacement, { groupCount: 0, groupNames: [] }) : undefined;
  return read?.ok === true
    ? read.replacement({ start: 0, end: source.length, groups: [source], named: {} })
    : undefined;
}

/** The platform's word search is many times faster than an automaton. */
function withWordReplaced(text: string, word: string, by: string): Replaced | "gave-up" {
  const parts = text.split(word);
  const count = parts.length - 1;
  if (text.length + count * by.length > MAX_UNITS) return "gave-up";
  return { text: count === 0 ? text : parts.join(by), count };
}

/** Flags may also be written in the pattern, as in `(?i)users`, which other engines support. */
export function readFlags(pattern: string, flags: string): { source: string; flags: string; skipped: number } {
  const [leading = "", own = ""] = /^\(\?([ims]{1,3})\)/.exec(pattern) ?? [];
  return {
    source: pattern.slice(leading.length),
    flags: [...new Set(flags + own)].join(""),
    skipped: leading.length,
  };
}
