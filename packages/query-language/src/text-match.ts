import type { TextField } from "./fields.ts";
import { foldAscii, foldUnicode } from "./fold.ts";
import { compilePattern } from "@headworks/linear-pattern";
import type { FieldTest, TextValue } from "./query.ts";

/** A compiled comparison. `folded` is the text in lower case when `usesFolded` asks for it, else the text itself. */
export interface TextMatch {
  readonly usesFolded: boolean;
  readonly matches: (text: string) => boolean;
}

/** How the texts of a field are compared. */
export type TextManner = Pick<TextField, "literal" | "fold" | "caseless" | "floating" | "aliases">;

/** The alternative of a value that the alias table of the field knows. */
export function aliasOf(manner: TextManner, text: string): string {
  const { aliases } = manner;
  const key = foldAscii(text);
  return aliases !== undefined && Object.hasOwn(aliases, key) ? (aliases[key] ?? text) : text;
}

/** Compiles one value of an everyday comparison. */
export function compileValue(value: TextValue, manner: TextManner): TextMatch {
  const fold = manner.fold === "ascii" ? foldAscii : foldUnicode;
  if (value.kind === "pattern") {
    const pattern = compilePattern(value.source, value.flags);
    return { usesFolded: false, matches: (text) => pattern.test(text) };
  }
  if (value.kind === "wildcard") {
    const parts = value.parts.map(fold);
    return { usesFolded: true, matches: (text) => matchesWildcard(text, parts, manner.floating ?? false) };
  }
  const needle = fold(aliasOf(manner, value.text));
  if (manner.literal === "equals") return { usesFolded: true, matches: (text) => text === needle };
  return { usesFolded: true, matches: (text) => text.includes(needle) };
}

/** Compiles a whole-value comparison, as of `:=` and `:!=`. */
function compileEquality(text: string, manner: TextManner): TextMatch {
  const fold = manner.fold === "ascii" ? foldAscii : foldUnicode;
  if (manner.caseless === true) {
    const folded = fold(aliasOf(manner, text));
    return { usesFolded: true, matches: (candidate) => candidate === folded };
  }
  return { usesFolded: false, matches: (candidate) => candidate === text };
}

/** The comparisons of a text test in the order of its values. Patterns cannot be part of equality. */
export function compileValues(test: FieldTest & { readonly kind: "text" }, manner: TextManner): readonly TextMatch[] {
  return test.values.map((value) =>
    test.mode === "matches"
      ? compileValue(value, manner)
      : compileEquality(value.kind === "literal" ? value.text : "", manner),
  );
}

/** Linear in the text for each part: the first place where a part fits is always good enough. */
function matchesWildcard(text: string, parts: readonly string[], floating: boolean): boolean {
  const last = parts.length - 1;
  let at = 0;
  for (let index = 0; index <= last; index += 1) {
    const part = parts[index] ?? "";
    if (!floating && index === 0) {
      if (!text.startsWith(part)) return false;
      at = part.length;
    } else if (!floating && index === last) {
      return text.length - part.length >= at && text.endsWith(part);
    } else {
      const found = text.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
  }
  return true;
}
