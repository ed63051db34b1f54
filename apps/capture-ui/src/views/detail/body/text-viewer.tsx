import { useCallback, useEffect, useRef, useState } from "react";
import { useDetailMemory } from "../detail-memory.ts";
import type { BodyClient } from "./body-client.ts";
import type { BodyProgress } from "./body-document.ts";
import type { BodyKind } from "./body-format.ts";
import type { LayerName } from "./body-worker-client.ts";
import styles from "./body.module.css";
import { useBlocks, WindowList, type WindowListHandle } from "./window-list.tsx";
import type { BodySearch } from "./use-search.tsx";
import { type TokenLanguage, rowTokens, type RowMark, markTokens } from "./row-tokens.ts";

const TEXT_ROW_PX = 19;

const LANGUAGES: Readonly<Partial<Record<BodyKind, TokenLanguage>>> = {
  json: "json",
  xml: "markup",
  html: "markup",
  svg: "markup",
  javascript: "script",
  css: "style",
};

/** The text of a body; only rows in view are rendered. */
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
    // Debounced: dragging the separator changes the width many times a second.
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
                      // Tokens have no identity besides their index.
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

/** Estimated final row count, so that the gutter does not grow and move the text while loading. */
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
