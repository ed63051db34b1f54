import { type Token, tokens } from "@headworks/query-language";

/** A run of query text with its token kind; `gap` is white space and punctuation. */
export interface Stretch {
  readonly text: string;
  readonly kind: Token["kind"] | "gap";
  readonly start: number;
  /** Inside the range of an error. */
  readonly wrong: boolean;
}

/** Splits a text into coloured runs that join to the text. */
export function stretches(text: string, error?: { readonly start: number; readonly end: number }): readonly Stretch[] {
  const list: Stretch[] = [];
  const push = (start: number, end: number, kind: Stretch["kind"]): void => {
    if (end <= start) return;
    const cuts = error === undefined ? [] : [error.start, error.end].filter((cut) => cut > start && cut < end);
    let from = start;
    for (const to of [...cuts, end]) {
      const wrong = error !== undefined && from >= error.start && to <= Math.max(error.end, error.start + 1);
      list.push({ text: text.slice(from, to), kind, start: from, wrong });
      from = to;
    }
  };
  let at = 0;
  for (const token of tokens(text)) {
    push(at, token.start, "gap");
    push(token.start, token.end, token.kind);
    at = token.end;
  }
  push(at, text.length, "gap");
  return list;
}
