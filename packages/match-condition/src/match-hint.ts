import { utf8Octets } from "@headworks/http-fields";
import { foldAscii } from "@headworks/query-language";
import type { CompiledLeaf, Leaf } from "./leaves.ts";

/** A text in the URL of matching subjects. */
export interface UrlText {
  /** ASCII letters in lower case. */
  readonly text: string;
  /** Does not apply to URLs with a `%`, where the text may be encoded. */
  readonly plainOnly: boolean;
}

/** A header field of matching subjects. */
export interface FieldFact {
  readonly side: "request" | "response" | "passing";
  readonly name: string;
  /** The exact value of one field; undefined means any. */
  readonly value: string | undefined;
  /** A substring of one value, ASCII letters in lower case. */
  readonly contains: string;
}

/** Facts about every matching subject; undefined parts state nothing. */
export interface MatchHint {
  readonly texts: readonly UrlText[] | undefined;
  readonly fields: readonly FieldFact[] | undefined;
  /** The upper-case method is one of these. */
  readonly methods: ReadonlySet<string> | undefined;
}

export const NO_HINT: MatchHint = { texts: undefined, fields: undefined, methods: undefined };

/** Shorter texts are not indexed. */
export const MIN_TEXT_LENGTH = 4;
/** More alternatives cost more than they save. */
const MAX_TEXTS = 64;

export function hintOfLeaf(leaf: Leaf, { urlText, plainUrlText, fieldText = "" }: CompiledLeaf): MatchHint {
  if (leaf.type === "method") return { ...NO_HINT, methods: new Set([leaf.method.toUpperCase()]) };
  const fields = fieldsOf(leaf, fieldText);
  if (fields !== undefined) return { ...NO_HINT, fields };
  const text = urlText ?? plainUrlText ?? "";
  if (text.length < MIN_TEXT_LENGTH) return NO_HINT;
  return { ...NO_HINT, texts: [{ text, plainOnly: urlText === undefined }] };
}

/** The fields of which one is present. */
function fieldsOf(leaf: Leaf, contains: string): readonly FieldFact[] | undefined {
  switch (leaf.type) {
    case "header": {
      const fact: Omit<FieldFact, "value"> = { side: leaf.side ?? "passing", name: foldAscii(leaf.name), contains };
      if (leaf.value === undefined || leaf.value === null) return [{ ...fact, value: undefined }];
      return [...new Set([leaf.value, utf8Octets(leaf.value)])].map((value) => ({ ...fact, value }));
    }
    case "header_pattern":
      return [{ side: leaf.side ?? "passing", name: foldAscii(leaf.name), value: undefined, contains }];
    case "content_type":
      return [{ side: leaf.side ?? "passing", name: "content-type", value: undefined, contains }];
    default:
      return undefined;
  }
}

/** The hint of a conjunction: the most selective texts, and the intersection of methods. */
export function hintOfAll(hints: readonly MatchHint[]): MatchHint {
  let texts: readonly UrlText[] | undefined;
  let fields: readonly FieldFact[] | undefined;
  let methods: ReadonlySet<string> | undefined;
  for (const hint of hints) {
    if (hint.fields !== undefined && (fields === undefined || fieldsWorth(hint.fields) > fieldsWorth(fields))) {
      fields = hint.fields;
    }
    if (hint.texts !== undefined && (texts === undefined || worth(hint.texts) > worth(texts))) texts = hint.texts;
    if (hint.methods !== undefined) methods = methods === undefined ? hint.methods : methods.intersection(hint.methods);
  }
  return { texts, fields, methods };
}

/** The hint of a disjunction. */
export function hintOfAny(hints: readonly MatchHint[]): MatchHint {
  const texts: UrlText[] = [];
  const fields: FieldFact[] = [];
  let methods: ReadonlySet<string> | undefined = new Set();
  let hasTexts = hints.length > 0;
  let hasFields = hints.length > 0;
  for (const hint of hints) {
    if (hint.texts === undefined) hasTexts = false;
    else texts.push(...hint.texts);
    if (hint.fields === undefined) hasFields = false;
    else fields.push(...hint.fields);
    methods = methods === undefined || hint.methods === undefined ? undefined : methods.union(hint.methods);
  }
  return {
    texts: hasTexts && texts.length <= MAX_TEXTS ? texts : undefined,
    fields: hasFields && fields.length <= MAX_TEXTS ? fields : undefined,
    methods: hints.length > 0 ? methods : undefined,
  };
}

function fieldsWorth(fields: readonly FieldFact[]): number {
  return (fields.every(({ value }) => value !== undefined) ? 2 : 1) / fields.length;
}

/** Few and long texts are the most selective. */
function worth(texts: readonly UrlText[]): number {
  const shortest = Math.min(...texts.map(({ text, plainOnly }) => (plainOnly ? text.length / 2 : text.length)));
  return shortest / texts.length;
}
