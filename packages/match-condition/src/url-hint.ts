// Tested by condition-set.test.ts
import type { CompiledLeaf, Leaf } from "./leaves.ts";

/** A text of which the URL of a matching subject contains at least one. */
export interface UrlText {
  /** ASCII letters in lower case. */
  readonly text: string;
  /** Says nothing about URLs that contain a `%`, where the text may be written otherwise. */
  readonly plainOnly: boolean;
}

/** What is sure of every subject that matches; undefined parts say nothing. */
export interface UrlHint {
  /** One of these occurs in the URL. */
  readonly texts: readonly UrlText[] | undefined;
  /** The method, in capitals, is one of these. */
  readonly methods: ReadonlySet<string> | undefined;
}

/** Nothing is sure. */
export const NO_HINT: UrlHint = { texts: undefined, methods: undefined };

/** Texts from this length on are looked up in an index. */
export const SHORTEST_TEXT = 4;
/** Alternatives beyond these cost more than they save. */
const MOST_TEXTS = 64;

/** What one leaf makes sure. */
export function hintOfLeaf(leaf: Leaf, { urlText, plainUrlText }: CompiledLeaf): UrlHint {
  if (leaf.type === "method") return { texts: undefined, methods: new Set([leaf.method.toUpperCase()]) };
  const text = urlText ?? plainUrlText ?? "";
  if (text.length < SHORTEST_TEXT) return NO_HINT;
  return { texts: [{ text, plainOnly: urlText === undefined }], methods: undefined };
}

/** What several conditions make sure that hold together: the most telling texts, and the methods all of them allow. */
export function hintOfAll(hints: readonly UrlHint[]): UrlHint {
  let texts: readonly UrlText[] | undefined;
  let methods: ReadonlySet<string> | undefined;
  for (const hint of hints) {
    if (hint.texts !== undefined && (texts === undefined || worth(hint.texts) > worth(texts))) texts = hint.texts;
    if (hint.methods !== undefined) methods = methods === undefined ? hint.methods : methods.intersection(hint.methods);
  }
  return { texts, methods };
}

/** What several conditions make sure of which one holds. */
export function hintOfAny(hints: readonly UrlHint[]): UrlHint {
  const texts: UrlText[] = [];
  let methods: ReadonlySet<string> | undefined = new Set();
  let hasTexts = hints.length > 0;
  for (const hint of hints) {
    if (hint.texts === undefined) hasTexts = false;
    else texts.push(...hint.texts);
    methods = methods === undefined || hint.methods === undefined ? undefined : methods.union(hint.methods);
  }
  return {
    texts: hasTexts && texts.length <= MOST_TEXTS ? texts : undefined,
    methods: hints.length > 0 ? methods : undefined,
  };
}

/** Few and long texts single out the most. */
function worth(texts: readonly UrlText[]): number {
  const shortest = Math.min(...texts.map(({ text, plainOnly }) => (plainOnly ? text.length / 2 : text.length)));
  return shortest / texts.length;
}
