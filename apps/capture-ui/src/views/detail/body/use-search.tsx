import { useEffect, useMemo, useState } from "react";
import type { LayerName } from "./body-worker-client.ts";
import { CallTimeout } from "./body-client.ts";
import type { BodyClient } from "./body-client.ts";
import type { RowMatch } from "./text-layer.ts";
import type { SearchQuery } from "./text-search.ts";

/** A search in a body and the selected match. */
export interface BodySearch {
  readonly query: SearchQuery;
  readonly setQuery: (query: SearchQuery) => void;
  readonly matches: readonly RowMatch[];
  readonly byRow: ReadonlyMap<number, readonly RowMatch[]>;
  readonly more: boolean;
  readonly position: number;
  readonly current: RowMatch | null;
  readonly step: (by: 1 | -1) => void;
  readonly problem: string | null;
}

const EMPTY: SearchQuery = { text: "", regex: false, matchCase: false };
const NONE: readonly RowMatch[] = [];
/** Timeout after which a pattern is assumed never to finish. */
const TIMEOUT_MS = 6000;

/** Searches a text layer in its worker, again after each layout. */
export function useSearch(
  client: BodyClient | null,
  layer: LayerName | null,
  revision: string,
  onStuck: () => void,
): BodySearch {
  const [query, setQuery] = useState(EMPTY);
  const [found, setFound] = useState<{ readonly matches: readonly RowMatch[]; readonly more: boolean }>({
    matches: NONE,
    more: false,
  });
  const [position, setPosition] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);

  useEffect(() => {
    if (client === null || layer === null || query.text === "") {
      setFound({ matches: NONE, more: false });
      setProblem(null);
      return undefined;
    }
    let current = true;
    const timer = window.setTimeout(() => {
      client.call("search", [layer, query], TIMEOUT_MS).then(
        (result) => {
          if (!current) return;
          setFound(result);
          setProblem(null);
          setPosition((at) => (at < result.matches.length ? at : 0));
        },
        (error: unknown) => {
          if (!current) return;
          setFound({ matches: NONE, more: false });
          if (error instanceof CallTimeout) {
            setProblem("The pattern took too long");
            setQuery(EMPTY);
            onStuck();
          } else {
            setProblem(error instanceof Error ? error.message.replace(/^Invalid regular expression: .*: /u, "") : "");
          }
        },
      );
    }, 150);
    return () => {
      current = false;
      window.clearTimeout(timer);
    };
    // oxlint-disable-next-line react/exhaustive-deps -- onStuck is a fresh function each time and must not start a search
  }, [client, layer, query, revision]);

  const byRow = useMemo(() => {
    const map = new Map<number, RowMatch[]>();
    for (const match of found.matches) {
      const list = map.get(match.row);
      if (list === undefined) map.set(match.row, [match]);
      else list.push(match);
    }
    return map;
  }, [found]);

  return {
    query,
    setQuery: (next) => {
      setQuery(next);
      setPosition(0);
    },
    ...found,
    byRow,
    position,
    current: found.matches[position] ?? null,
    step: (by) => {
      const count = found.matches.length;
      if (count > 0) setPosition((position + by + count) % count);
    },
    problem,
  };
}
