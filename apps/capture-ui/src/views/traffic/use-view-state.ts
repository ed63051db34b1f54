import { useCallback, useMemo } from "react";
import { setParams, useLocation } from "../../shell/router.ts";
import { SORT_COLUMNS } from "@headworks/capture-contract";
import { readPills, readRange, type PillId, type QueryParts } from "./query/effective-query.ts";
import type { ColumnSpec } from "./list/columns.ts";
import type { ListScope } from "./list/row-sequence.ts";

export type ViewMode = "list" | "tree" | "waterfall";

function readSort(text: string | null): Pick<ListScope, "sort" | "order"> {
  const [name, order] = (text ?? "").split(":");
  const sort = SORT_COLUMNS.find((column) => column === name);
  return sort === undefined ? { sort: "seq", order: "desc" } : { sort, order: order === "asc" ? "asc" : "desc" };
}

/** State of the screen, kept in the URL so that it can be linked and restored. */
export function useViewState() {
  const { params } = useLocation();
  const q = params.get("q") ?? "";
  const show = params.get("show");
  const time = params.get("time");
  const sortText = params.get("sort");
  const modeText = params.get("mode");
  const pills = useMemo(() => readPills(show), [show]);
  const range = useMemo(() => readRange(time), [time]);
  const sort = useMemo(() => readSort(sortText), [sortText]);
  const mode: ViewMode = modeText === "tree" || modeText === "waterfall" ? modeText : "list";

  const setQ = useCallback((next: string) => setParams({ q: next.trim() === "" ? null : next }, { replace: true }), []);
  const setPills = useCallback((next: readonly PillId[]) => setParams({ show: next.join(",") }, { replace: true }), []);
  const setRange = useCallback(
    (next: QueryParts["range"]) =>
      setParams({ time: next === null ? null : `${next.fromMs}-${next.toMs}` }, { replace: true }),
    [],
  );
  const setMode = useCallback((next: ViewMode) => setParams({ mode: next === "list" ? null : next }), []);
  const toggleSort = useCallback((column: ColumnSpec) => {
    if (column.sort === undefined) return;
    const now = readSort(new URLSearchParams(location.search).get("sort"));
    const first = column.firstOrder ?? "asc";
    const second = first === "asc" ? "desc" : "asc";
    // Cycles through first order, other order, and newest first.
    const next = now.sort !== column.sort ? first : now.order === first ? second : undefined;
    setParams({ sort: next === undefined ? null : `${column.sort}:${next}` }, { replace: true });
  }, []);
  const session = params.get("session");
  return { q, pills, range, sort, mode, session, id: params.get("id"), setQ, setPills, setRange, setMode, toggleSort };
}
