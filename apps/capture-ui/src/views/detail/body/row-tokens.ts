const JSON_TOKEN = /("(?:[^"\\]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)\b/gu;

const MARKUP_TOKEN =
  /(<!--.*?(?:-->|$)|<[!?][^>]*>?)|(<\/?[\w:.-]+|\/?>)|([\w:.-]+)(?==)|("[^"]*"|'[^']*')|(&[\w#]+;)/gu;

const CODE_TOKEN =
  /(\/\/.*|\/\*.*?(?:\*\/|$))|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|\b(\d[\w.]*)|\b(?:(async|await|break|case|catch|class|const|continue|default|delete|do|else|export|extends|false|finally|for|from|function|if|import|in|instanceof|let|new|null|of|return|super|switch|this|throw|true|try|typeof|undefined|var|void|while|yield)\b)/gu;

const STYLE_TOKEN =
  /(\/\*.*?(?:\*\/|$))|("[^"]*"|'[^']*')|(#[\da-fA-F]{3,8}\b|-?\d[\d.]*[a-z%]*)|(@[\w-]+|!important)|([\w-]+)(?=\s*:[^:{]*(?:;|$))/gu;

/** Tones of the pattern's capture groups, in order. */
const PATTERNS: Readonly<Record<Exclude<TokenLanguage, "plain" | "json">, readonly [RegExp, readonly Tone[]]>> = {
  markup: [MARKUP_TOKEN, ["note", "key", "number", "string", "word"]],
  script: [CODE_TOKEN, ["note", "string", "number", "word"]],
  style: [STYLE_TOKEN, ["note", "string", "number", "word", "key"]],
};

/** A run of text in one colour. */
export interface RowToken {
  readonly text: string;
  readonly tone: "plain" | "key" | "string" | "number" | "word" | "note";
  /** Part of a search match; `current` is the selected one. */
  readonly mark?: "match" | "current";
}

export type TokenLanguage = "json" | "markup" | "script" | "style" | "plain";
type Tone = RowToken["tone"];

/** Splits a row into coloured tokens; `inString`: the row starts inside a JSON string. The tokens join to the text. */
export function rowTokens(text: string, language: TokenLanguage, inString = false): RowToken[] {
  if (language === "plain" || text === "") return text === "" ? [] : [{ text, tone: "plain" }];
  if (language === "json") return jsonTokens(text, inString);
  const [pattern, tones] = PATTERNS[language];
  const tokens: RowToken[] = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) tokens.push({ text: text.slice(at, match.index), tone: "plain" });
    const group = match.slice(1).findIndex((part) => part !== undefined);
    tokens.push({ text: match[0], tone: tones[group] ?? "plain" });
    at = match.index + match[0].length;
  }
  if (at < text.length) tokens.push({ text: text.slice(at), tone: "plain" });
  return tokens;
}

function jsonTokens(text: string, inString: boolean): RowToken[] {
  const tokens: RowToken[] = [];
  let at = 0;
  if (inString) {
    const end = /^(?:[^"\\]|\\.)*"?/u.exec(text)?.[0].length ?? 0;
    if (end > 0) tokens.push({ text: text.slice(0, end), tone: "string" });
    at = end;
  }
  JSON_TOKEN.lastIndex = at;
  for (let match = JSON_TOKEN.exec(text); match !== null; match = JSON_TOKEN.exec(text)) {
    const [whole, quoted, colon, number] = match;
    if (match.index > at) tokens.push({ text: text.slice(at, match.index), tone: "plain" });
    if (quoted !== undefined) {
      tokens.push({ text: quoted, tone: colon === undefined ? "string" : "key" });
      if (colon !== undefined) tokens.push({ text: colon, tone: "plain" });
    } else tokens.push({ text: whole, tone: number === undefined ? "word" : "number" });
    at = match.index + whole.length;
  }
  if (at < text.length) tokens.push({ text: text.slice(at), tone: "plain" });
  return tokens;
}

/** A search match in a row, in positions of its text. */
export interface RowMark {
  readonly start: number;
  readonly end: number;
  readonly current: boolean;
}

/** Splits tokens at the edges of marks. Marks ascend and do not overlap. */
export function markTokens(tokens: readonly RowToken[], marks: readonly RowMark[]): RowToken[] {
  if (marks.length === 0) return [...tokens];
  const result: RowToken[] = [];
  let position = 0;
  let next = 0;
  for (const token of tokens) {
    const end = position + token.text.length;
    let at = position;
    while (at < end) {
      while (next < marks.length && (marks[next]?.end ?? 0) <= at) next++;
      const mark = marks[next];
      const inside = mark !== undefined && mark.start <= at;
      const until = Math.min(end, mark === undefined ? end : inside ? mark.end : mark.start);
      const text = token.text.slice(at - position, until - position);
      result.push(inside ? { ...token, text, mark: mark.current ? "current" : "match" } : { ...token, text });
      at = until;
    }
    position = end;
  }
  return result;
}
