import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiFailure, errorText } from "../../api.ts";
import { setPreferences, usePreferences } from "../../preferences.ts";
import { CatchErrors } from "../../shell/catch-errors.tsx";
import { later } from "../../shell/later.tsx";
import { runsQuery, sessionsQuery } from "../../queries.ts";
import { navigate } from "../../shell/router.ts";
import { useNarrow } from "../../shell/use-narrow.ts";
import { SplitPane } from "../../ui/split-pane.tsx";
import { EmptyState, Spinner } from "../../ui/states.tsx";
import { Button } from "../../ui/button.tsx";
import { isolatedName } from "../../ui/isolated-name.ts";
import { sessionTitle } from "../sessions/session-form.ts";
import { NoteDialog } from "./actions/note-dialog.tsx";
import { useListKeys } from "./actions/use-list-keys.ts";
import { useRowActions } from "./actions/use-row-actions.ts";
import { Footer } from "./footer.tsx";
import { Grid, type GridHandle } from "./list/grid.tsx";
import type { TrafficList } from "./list/traffic-list.ts";
import { Overview } from "./overview/overview.tsx";
import { addTerm, nodeTerms } from "./query/effective-query.ts";
import { SaveViewDialog } from "./query/save-view.tsx";
import { Toolbar } from "./toolbar.tsx";
import styles from "./traffic.module.css";
import { TrafficTree } from "./tree/tree.tsx";
import { useArrival } from "./use-arrival.ts";
import { useSelection } from "./use-selection.ts";
import { useTrafficData } from "./use-traffic-data.ts";
import { useViewState } from "./use-view-state.ts";
import { WhenEmpty } from "./when-empty.tsx";

const EntryDetail = later(
  async () => (await import("../detail/entry-detail.tsx")).EntryDetail,
  <EmptyState icon={<Spinner />} title="" />,
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
  const [savingView, setSavingView] = useState(false);
  const chosen = useSelection(list, grid, view.id);
  useArrival(list, grid, view.id);
  const { selection } = chosen;

  const actions = useRowActions(view, data, chosen);
  useListKeys({ list, grid, queryInput, chosen, openId: view.id, actions });

  // The first click on a row must not wait for code.
  useEffect(() => {
    if (list.loaded) EntryDetail.preload().catch(() => undefined);
  }, [list.loaded]);

  const busy = useBusy(list);
  const refused = list.error instanceof ApiFailure && list.error.status === 400 ? list.error.message : undefined;
  const listPane =
    view.mode === "tree" ? (
      <TrafficTree
        q={q}
        session={view.session}
        onChoose={(host, path) => {
          view.setMode("list");
          view.setQ(nodeTerms(host, path).reduce((text, term) => addTerm(text, term), view.q));
        }}
      />
    ) : (
      <Grid
        ref={grid}
        list={list}
        mode={view.mode}
        hold={view.id !== null || selection.isHolding}
        selection={selection}
        focused={focused}
        onRowClick={chosen.onRowClick}
        onRowOpen={(index) => {
          const row = list.rowAt(index);
          if (row !== undefined) chosen.open(row.id, true);
        }}
        onSort={view.toggleSort}
        onShowNew={chosen.letGo}
        rowMenu={actions.menuFor}
        whenEmpty={<WhenEmpty list={list} filtered={q !== ""} onShowAll={() => navigate("/traffic")} />}
      />
    );
  const layout = narrow ? "full" : preferences.detailLayout;
  const detail =
    view.id === null ? null : (
      <CatchErrors title="The details cannot be shown">
        <EntryDetail.View id={view.id} onClose={chosen.close} layout={layout} />
      </CatchErrors>
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
        onClear={actions.clear}
      />
      <div>
        {view.session !== null && <ViewedSession id={view.session} />}
        {preferences.overview && !narrow && (
          <Overview summary={data.stripSummary} range={view.range} onRange={view.setRange} />
        )}
        {list.error !== undefined && refused === undefined && list.length > 0 && (
          <p className={styles["notice"]} role="alert">
            <span>These rows may be out of date. {errorText(list.error)}</span>
            <Button onClick={() => list.resync()}>Try again</Button>
          </p>
        )}
      </div>
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
      {actions.noteId !== null && <NoteDialog id={actions.noteId} onClose={actions.closeNote} />}
      {savingView && <SaveViewDialog q={view.q} onClose={() => setSavingView(false)} />}
    </div>
  );
}

/** Says that a session is looked at which is not the active one, and whether a run is recorded into it. */
function ViewedSession({ id }: { readonly id: string }) {
  const sessions = useQuery(sessionsQuery);
  const runs = useQuery(runsQuery);
  const session = sessions.data?.find((one) => one.id === id);
  const run = runs.data?.find((one) => one.session_id === id);
  const name = session === undefined ? "A session that does not exist" : isolatedName(sessionTitle(session));
  const state =
    run === undefined
      ? "nothing new comes into it"
      : run.ended_at === null
        ? "a run is recorded into it"
        : "its run has ended";
  return (
    <p className={styles["viewed"]} role="status">
      <span>
        <b>{name}</b> is not the active session{session === undefined ? "" : `; ${state}`}.
      </span>
      <Button onClick={() => navigate("/traffic")}>Back to the active session</Button>
    </p>
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
