import { Suspense, lazy, useEffect, useRef, useState } from "react";
import { ApiFailure } from "../../api.ts";
import { setPreferences, usePreferences } from "../../preferences.ts";
import { navigate } from "../../shell/router.ts";
import { useNarrow } from "../../shell/use-narrow.ts";
import { SplitPane } from "../../ui/split-pane.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Button } from "../../ui/button.tsx";
import { clearAll, deleteEntries } from "./actions/entry-actions.ts";
import { NoteDialog } from "./actions/note-dialog.tsx";
import { rowMenu, selectionMenu, type MenuActions } from "./actions/row-menu.tsx";
import { useListKeys } from "./actions/use-list-keys.ts";
import { Footer } from "./footer.tsx";
import { Grid, type GridHandle } from "./list/grid.tsx";
import type { TrafficList } from "./list/traffic-list.ts";
import { Overview } from "./overview/overview.tsx";
import { addTerm, queryValue } from "./query/effective-query.ts";
import { SaveViewDialog } from "./query/save-view.tsx";
import { Toolbar } from "./toolbar.tsx";
import styles from "./traffic.module.css";
import { TrafficTree } from "./tree/tree.tsx";
import { useSelection } from "./use-selection.ts";
import { useTrafficData } from "./use-traffic-data.ts";
import { useViewState } from "./use-view-state.ts";
import { exportHar } from "../../transfer/export.ts";

const EntryDetail = lazy(() =>
  import("../detail/entry-detail.tsx").then((module) => ({ default: module.EntryDetail })),
);
const FirstRunView = lazy(() =>
  import("../first-run/first-run-view.tsx").then((module) => ({ default: module.FirstRunView })),
);

/** The captured traffic: filter, list, and the details of one entry beside it. */
export function TrafficView() {
  const view = useViewState();
  const narrow = useNarrow();
  const preferences = usePreferences();
  const data = useTrafficData(view);
  const { q, list, focused } = data;

  const grid = useRef<GridHandle>(null);
  const queryInput = useRef<HTMLInputElement>(null);
  const [noteId, setNoteId] = useState<string | null>(null);
  const [savingView, setSavingView] = useState(false);
  const chosen = useSelection(list, grid, view.id);
  const { selection } = chosen;

  const remove = async (ids: readonly string[]): Promise<void> => {
    if (!(await deleteEntries(ids))) return;
    list.remove(ids);
    chosen.drop(ids);
    if (view.id !== null && ids.includes(view.id)) chosen.close();
  };
  const clear = async (): Promise<void> => {
    if (await clearAll(data.stats?.entry_count ?? data.summary?.total ?? list.length)) {
      chosen.clear();
      chosen.close();
      list.reload();
    }
  };
  const actions: MenuActions = {
    open: chosen.open,
    addFilter: (term) => view.setQ(addTerm(view.q, term)),
    editNote: setNoteId,
    remove: (ids) => void remove(ids),
    exportHar: (ids) => void exportHar({ ids }),
  };
  const menuFor = (index: number) => {
    const row = list.rowAt(index);
    if (row === undefined) return [];
    if (selection.ids.size > 1 && selection.ids.has(row.id)) {
      const ids = [...selection.ids];
      return selectionMenu(
        ids,
        ids.flatMap((id) => list.byId(id) ?? []),
        actions,
      );
    }
    chosen.choose(row.id);
    return rowMenu(row, actions);
  };
  useListKeys({
    list,
    grid,
    queryInput,
    chosen,
    openId: view.id,
    remove: (ids) => void remove(ids),
    clear: () => void clear(),
    editNote: setNoteId,
  });

  const busy = useBusy(list);
  const refused = list.error instanceof ApiFailure && list.error.status === 400 ? list.error.message : undefined;
  const listPane =
    view.mode === "tree" ? (
      <TrafficTree
        q={q}
        onChoose={(host, path) => {
          const terms = [`host:=${queryValue(host)}`, ...(path === null ? [] : [`path:=${queryValue(path)}`])];
          view.setMode("list");
          view.setQ(terms.reduce((text, term) => addTerm(text, term), view.q));
        }}
      />
    ) : (
      <Grid
        ref={grid}
        list={list}
        mode={view.mode}
        hold={view.id !== null}
        selection={selection}
        focused={focused}
        onRowClick={chosen.onRowClick}
        onRowOpen={(index) => {
          const row = list.rowAt(index);
          if (row !== undefined) chosen.open(row.id, true);
        }}
        onSort={view.toggleSort}
        rowMenu={menuFor}
        whenEmpty={<WhenEmpty list={list} filtered={q !== ""} onShowAll={() => navigate("/traffic")} />}
      />
    );
  const layout = narrow ? "full" : preferences.detailLayout;
  const detail =
    view.id === null ? null : (
      <Suspense fallback={<EmptyState icon={<Spinner />} title="" />}>
        <EntryDetail id={view.id} onClose={chosen.close} layout={layout} />
      </Suspense>
    );
  return (
    <div className={styles["traffic"]}>
      <h1 className="visually-hidden">Traffic</h1>
      <Toolbar
        view={view}
        queryInput={queryInput}
        effective={q}
        busy={busy}
        problem={refused}
        pillSummary={data.pillSummary}
        selectedIds={selection.ids}
        hasFocusPatterns={data.hasFocusPatterns}
        onLeaveQuery={() => grid.current?.focus()}
        onSaveView={() => setSavingView(true)}
        onClear={() => void clear()}
      />
      {preferences.overview && !narrow ? (
        <Overview summary={data.stripSummary} range={view.range} onRange={view.setRange} />
      ) : (
        <div />
      )}
      <SplitPane
        label="Size of the list"
        direction={preferences.detailLayout === "bottom" ? "column" : "row"}
        share={preferences.detailShare}
        onShareChange={(detailShare) => setPreferences({ detailShare })}
        minPx={preferences.detailLayout === "bottom" ? 140 : 320}
        first={listPane}
        second={narrow ? null : detail}
      />
      <Footer summary={data.summary} stats={data.stats} selected={selection.ids.size} />
      {narrow && detail !== null && <div className={styles["full"]}>{detail}</div>}
      {noteId !== null && <NoteDialog id={noteId} onClose={() => setNoteId(null)} />}
      {savingView && <SaveViewDialog q={view.q} onClose={() => setSavingView(false)} />}
    </div>
  );
}

/** True when the first window of a list has been awaited for longer than an eye notices. */
function useBusy(list: TrafficList): boolean {
  const waiting = !list.loaded && list.error === undefined;
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!waiting) return undefined;
    const timer = window.setTimeout(() => setBusy(true), 150);
    return () => {
      window.clearTimeout(timer);
      setBusy(false);
    };
  }, [waiting]);
  return busy;
}

function WhenEmpty({
  list,
  filtered,
  onShowAll,
}: {
  readonly list: TrafficList;
  readonly filtered: boolean;
  readonly onShowAll: () => void;
}) {
  if (list.error !== undefined) {
    return <ErrorState title="The traffic cannot be shown" error={list.error} onRetry={() => list.resync()} />;
  }
  if (!list.loaded) return null;
  if (filtered) {
    return (
      <EmptyState title="Nothing matches the filter" actions={<Button onClick={onShowAll}>Show everything</Button>}>
        New traffic that matches appears here by itself.
      </EmptyState>
    );
  }
  return (
    <Suspense fallback={null}>
      <FirstRunView compact />
    </Suspense>
  );
}
