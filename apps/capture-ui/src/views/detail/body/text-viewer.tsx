import { useCallback, useEffect, useRef, useState } from "react";
import { useDetailMemory } from "../detail-memory.ts";
import type { BodyClient } from "./body-client.ts";
import type { BodyProgress } from "./body-document.ts";
import type { BodyKind } from "./body-format.ts";
import type { LayerName } from "./body-worker-client.ts";
import styles from "./body.module.css";
import { useBlocks } from "./use-blocks.tsx";
import type { BodySearch } from "./use-search.tsx";
import { WindowList, type WindowListHandle } from "./window-list.tsx";

const JSON_TOKEN = /("(?:[^"\\]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)\b/gu;

const MARKUP_TOKEN =
  /(<!--.*?(?:-->|$)|<[!?][^>]*>?)|(<\/?[\w:.-]+|\/?>)|([\w:.-]+)(?==)|("[^"]*"|'[^']*')|(&[\w#]+;)/gu;

const CODE_TOKEN =
  /(\/\/.*|\/\*.*?(?:\*\/|$))|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|\b(\d[\w.]*)|\b(?:(async|await|break|case|catch|class|const|continue|default|delete|do|else|export|extends|false|finally|for|from|function|if|import|in|instanceof|let|new|null|of|return|super|switch|this|throw|true|try|typeof|undefined|var|void|while|yield)\b)/gu;

const STYLE_TOKEN =
  /(\/\*.*?(?:\*\/|$))|("[^"]*"|'[^']*')|(#[\da-fA-F]{3,8}\b|-?\d[\d.]*[a-z%]*)|(@[\w-]+|!important)|([\w-]+)(?=\s*:[^:{]*(?:;|$))/gu;

/** Tones of the pattern's groups, in order. */
const PATTERNS: Readonly<Record<Exclude<TokenLanguage, "plain" | "json">, readonly [RegExp, readonly Tone[]]>> = {
  markup: [MARKUP_TOKEN, ["note", "key", "number", "string", "word"]],
  script: [CODE_TOKEN, ["note", "string", "number", "word"]],
  style: [STYLE_TOKEN, ["note", "string", "number", "word", "key"]],
};

const TEXT_ROW_PX = 19;

const LANGUAGES: Readonly<Partial<Record<BodyKind, TokenLanguage>>> = {
  json: "json",
  xml: "markup",
  html: "markup",
  svg: "markup",
  javascript: "script",
  css: "style",
};

/** The text of a body in rows, of which only those in view are in the page, whatever its size. */
export function TextViewer({
  client,
  progress,
  layer,
  search,
  label,
}: {
  readonly client: BodyClient;
  readonly progress: BodyProgress;
  readonly layer: LayerName;
  readonly search: BodySearch;
  readonly label: string;
}) {
  const wrap = useDetailMemory((memory) => memory.wrap);
  const list = useRef<WindowListHandle>(null);
  const ruler = useRef<HTMLSpanElement>(null);
  const [widthPx, setWidthPx] = useState(0);
  const rows = layer === "pretty" ? progress.prettyRows : progress.rawRows;
  const digits = Math.max(2, String(expectedRows(rows, progress)).length);
  const language = LANGUAGES[progress.kind] ?? "plain";

  useEffect(() => {
    if (widthPx === 0) return undefined;
    // Dragging the grip between panes changes the width many times a second.
    const timer = window.setTimeout(() => {
      const rulerPx = ruler.current?.getBoundingClientRect().width ?? 0;
      const charPx = rulerPx > 0 ? rulerPx / 100 : 7.2;
      const columns = Math.floor((widthPx - 36) / charPx) - digits;
      client.call("wrap", [wrap ? Math.max(16, columns) : null]).catch(() => undefined);
    }, 60);
    return () => window.clearTimeout(timer);
  }, [client, wrap, widthPx, digits]);

  const load = useCallback((from: number, to: number) => client.call("rows", [layer, from, to]), [client, layer]);
  const blocks = useBlocks(load, `${layer} ${progress.layout}`);
  const current = search.current;
  const currentRow = current === null ? null : current.row;
  useEffect(() => {
    if (currentRow !== null) list.current?.show(currentRow);
  }, [currentRow, search.position]);

  return (
    <>
      <span ref={ruler} className={styles["ruler"]} aria-hidden>
        {"0".repeat(100)}
      </span>
      <WindowList
        handle={list}
        rows={rows}
        rowPx={TEXT_ROW_PX}
        label={label}
        className={styles["code"]}
        onVisible={blocks.want}
        onResize={setWidthPx}
        renderRow={(index) => {
          const row = blocks.row(index);
          const marks = row === undefined ? [] : marksOf(index, search);
          return (
            <div key={index} className={styles["line"]} style={{ height: TEXT_ROW_PX }}>
              <span className={styles["gutter"]} style={{ width: `${digits}ch` }} aria-hidden>
                {row === undefined || row.continued ? "" : row.line}
              </span>
              <span>
                {row === undefined
                  ? ""
                  : markTokens(rowTokens(row.text, language, row.inString), marks).map((token, position) => (
                      // Pieces of a row have no identity besides their place.
                      <span
                        key={`${position}`}
                        className={styles[token.mark === undefined ? token.tone : `${token.mark}Mark`]}
                      >
                        {token.text}
                      </span>
                    ))}
              </span>
            </div>
          );
        }}
      />
    </>
  );
}

/** What the rows will be when all has come: a gutter that grows while a body loads would move the text. */
function expectedRows(rows: number, { loadedBytes, totalBytes, done }: BodyProgress): number {
  return done || loadedBytes === 0 ? rows : Math.ceil((rows * (totalBytes ?? loadedBytes)) / loadedBytes);
}

function marksOf(row: number, search: BodySearch): RowMark[] {
  return (search.byRow.get(row) ?? []).map((match) => ({
    start: match.startColumn,
    end: match.endColumn,
    current: match === search.current,
  }));
}

/** A piece of a row in one colour. */
interface RowToken {
  readonly text: string;
  readonly tone: "plain" | "key" | "string" | "number" | "word" | "note";
  /** Part of a match of the search; `current` is the one the user is at. */
  readonly mark?: "match" | "current";
}

export type TokenLanguage = "json" | "markup" | "script" | "style" | "plain";

type Tone = RowToken["tone"];

/** Cuts a row into coloured pieces; `inString`: the row begins inside a JSON string. Nothing of the text is lost. */
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

/** A stretch of a row that a search found, in positions of its text. */
interface RowMark {
  readonly start: number;
  readonly end: number;
  readonly current: boolean;
}

/** Cuts tokens further at the edges of marks. Marks ascend and do not overlap. */
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
