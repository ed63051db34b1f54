import type { CaptureStats, TrafficSummary } from "@headworks/capture-contract";
import { BUILT_IN_PRESETS } from "@headworks/query-language";
import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useRef, useState } from "react";
import { api, ApiFailure, errorText } from "../../api.ts";
import { setPreferences, usePreferences } from "../../preferences.ts";
import { filterOf, queryClient, runsQuery, sessionsQuery } from "../../queries.ts";
import { ConnectionBadge } from "../../shell/connection-badge.tsx";
import { CatchErrors, lazyView } from "../../shell/lazy-view.tsx";
import { navigate } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, TextArea, TextInput } from "../../ui/field.tsx";
import { formatBytes, formatCount, formatDuration, formatShare, isolatedName } from "../../ui/format.ts";
import { SplitPane, useNarrow } from "../../ui/split-pane.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { attempt, toast } from "../../ui/toast.tsx";
import { sessionTitle } from "../sessions/session-form.ts";
import { useListKeys, useRowActions } from "./actions/use-row-actions.ts";
import { Grid, type GridHandle } from "./list/grid.tsx";
import { positionOfEntry, type TrafficList } from "./list/traffic-list.ts";
import { Overview } from "./overview/overview.tsx";
import { addTerm, nodeTerms } from "./query/effective-query.ts";
import { keepView, viewNameProblem } from "./query/saved-views.ts";
import { Toolbar } from "./toolbar.tsx";
import styles from "./traffic.module.css";
import { TrafficTree } from "./tree/tree.tsx";
import { useSelection } from "./use-selection.ts";
import { useTrafficData } from "./use-traffic-data.ts";
import { useViewState } from "./use-view-state.ts";

const FirstRun = lazyView(async () => (await import("../first-run/first-run-view.tsx")).FirstRunView);

const EntryDetail = lazyView(
  async () => (await import("../detail/entry-detail.tsx")).EntryDetail,
  <EmptyState icon={<Spinner />} title="" />,
);

/** The captured traffic: filter, list, and details of one entry. */
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

  // Preloads the details, so that the first click on a row does not wait for code.
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
        onShowNew={chosen.releaseHold}
        rowMenu={actions.menuFor}
        whenEmpty={<WhenEmpty list={list} filtered={q !== ""} onShowAll={() => navigate("/traffic")} />}
      />
    );
  const layout = narrow ? "full" : preferences.detailLayout;
  const detail =
    view.id === null ? null : (
      <CatchErrors title="Could not show the details">
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
            <span>These requests may be out of date. {errorText(list.error)}</span>
            <Button onClick={() => list.resync()}>Try again</Button>
          </p>
        )}
      </div>
      <SplitPane
        label="Resize list"
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

/** Notice that the viewed session is not active, and whether a run is recorded into it. */
function ViewedSession({ id }: { readonly id: string }) {
  const sessions = useQuery(sessionsQuery);
  const runs = useQuery(runsQuery);
  const session = sessions.data?.find((one) => one.id === id);
  const run = runs.data?.find((one) => one.session_id === id);
  const name = session === undefined ? "Unknown session" : isolatedName(sessionTitle(session));
  const state =
    run === undefined
      ? "nothing is recorded into it"
      : run.ended_at === null
        ? "a run is being recorded into it"
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

/** True once the first window of a list has taken noticeably long. */
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

/** Totals of the list, and status of the store and the live channel. */
function Footer({
  summary,
  stats,
  selected,
}: {
  readonly summary: TrafficSummary | undefined;
  readonly stats: CaptureStats | undefined;
  readonly selected: number;
}) {
  return (
    <footer className={styles["footer"]}>
      {summary !== undefined && (
        <>
          <span>
            <b>{formatCount(summary.matched)}</b>
            {summary.matched === summary.total ? (
              summary.total === 1 ? (
                " request"
              ) : (
                " requests"
              )
            ) : (
              <>
                {" "}
                shown of <b>{formatCount(summary.total)}</b>
              </>
            )}
          </span>
          {selected > 1 && (
            <span>
              <b>{formatCount(selected)}</b> selected
            </span>
          )}
          {summary.pending > 0 && <span>{formatCount(summary.pending)} pending</span>}
          <span title={`${formatBytes(summary.request_bytes)} sent, ${formatBytes(summary.response_bytes)} received`}>
            {formatBytes(summary.request_bytes + summary.response_bytes)}
          </span>
          <span className={styles["wide"]}>
            p50 <b>{formatDuration(summary.duration_p50_ms)}</b>
          </span>
          <span className={styles["wide"]}>
            p95 <b>{formatDuration(summary.duration_p95_ms)}</b>
          </span>
          <span className={summary.errors > 0 ? styles["errors"] : undefined}>
            {formatShare(summary.errors, summary.matched)} errors
          </span>
        </>
      )}
      <span className={styles["spacer"]} />
      {stats !== undefined && stats.max_entries > 0 && stats.entry_count >= stats.max_entries && (
        <span className={styles["errors"]}>
          Session full at {formatCount(stats.max_entries)}: removing the oldest requests
        </span>
      )}
      {stats !== undefined && (
        <span className={stats.storage_ok ? styles["wide"] : styles["errors"]}>
          {stats.storage_ok
            ? `Store ${formatBytes(stats.store_size_bytes)}`
            : (stats.storage_problem ?? "Storage error")}
        </span>
      )}
      <ConnectionBadge />
    </footer>
  );
}

/** Placeholder instead of rows: an error, a filter without matches, or the setup guide. */
function WhenEmpty({
  list,
  filtered,
  onShowAll,
}: {
  readonly list: TrafficList;
  readonly filtered: boolean;
  readonly onShowAll: () => void;
}) {
  if (list.error instanceof ApiFailure && list.error.status === 400) {
    return (
      <EmptyState title="Invalid filter" actions={<Button onClick={onShowAll}>Clear filter</Button>}>
        See the error below the filter.
      </EmptyState>
    );
  }
  if (list.error !== undefined) {
    return <ErrorState title="Could not load the traffic" error={list.error} onRetry={() => list.resync()} />;
  }
  if (!list.loaded) return null;
  if (filtered) {
    return (
      <EmptyState title="No matching requests" actions={<Button onClick={onShowAll}>Clear filter</Button>}>
        New matching requests appear here automatically.
      </EmptyState>
    );
  }
  return <FirstRun.View compact />;
}

/** Scrolls once to the entry given at navigation. */
function useArrival(list: TrafficList, grid: RefObject<GridHandle | null>, openId: string | null): void {
  const wanted = useRef(openId);
  const { loaded } = list;
  useEffect(() => {
    const id = wanted.current;
    if (!loaded || id === null) return;
    wanted.current = null;
    const show = (index: number | undefined): void => {
      if (index !== undefined) grid.current?.show(index);
    };
    const firstRow = async (q: string) =>
      await api.traffic.listTrafficRows({ query: { ...filterOf(q, list.scope.session), limit: 1 } });
    // The details are shown anyway; if the position is unknown the list does not scroll.
    positionOfEntry(list, id, firstRow).then(show, () => undefined);
  }, [list, grid, loaded]);
}

const focusNow = (element: HTMLElement | null): void => element?.focus();

function NoteDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const entry = useQuery({
    queryKey: ["entry", id, "note"],
    queryFn: ({ signal }) => api.traffic.getTraffic({ params: { id }, query: { include_bodies: "false" }, signal }),
    staleTime: 0,
    gcTime: 0,
  });
  const [draft, setDraft] = useState<string | null>(null);
  const text = draft ?? entry.data?.notes ?? "";
  const save = async () => {
    const saved = await attempt("Could not save the note", () =>
      api.traffic.noteTraffic({ params: { id }, body: { notes: text.trim() === "" ? null : text } }),
    );
    if (!saved) return;
    await queryClient.invalidateQueries({ queryKey: ["entry", id] });
    onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      onSubmit={() => void save()}
      title="Note"
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={!entry.isSuccess}>
            Save
          </Button>
        </>
      }
    >
      {entry.isPending && <Spinner />}
      {entry.isError && <ErrorState title="Could not load the request" error={entry.error} />}
      {entry.isSuccess && (
        <Field
          label={`${entry.data.request.method} ${entry.data.request.host}${entry.data.request.path}`.slice(0, 120)}
          hint="Leave empty to remove the note. Find notes with note:text."
        >
          <TextArea
            ref={focusNow}
            rows={6}
            maxLength={65_536}
            value={text}
            onChange={(event) => setDraft(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
            }}
          />
        </Field>
      )}
    </Dialog>
  );
}

function SaveViewDialog({ q, onClose }: { readonly q: string; readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [tried, setTried] = useState(false);
  const problem = viewNameProblem(name, Object.keys(BUILT_IN_PRESETS));
  const save = () => {
    setTried(true);
    if (problem !== undefined) return;
    keepView({ name, q });
    toast({ tone: "success", title: `Saved as @${name}` });
    onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      onSubmit={save}
      title="Save view"
      description={
        <>
          Saves <code>{q}</code> in this browser. Reuse it from the history menu, or type{" "}
          <code>@{name === "" ? "name" : name}</code> in a filter.
        </>
      }
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            Save view
          </Button>
        </>
      }
    >
      <Field label="Name" error={tried ? problem : undefined}>
        <TextInput mono value={name} onChange={(event) => setName(event.target.value)} placeholder="slow-checkout" />
      </Field>
    </Dialog>
  );
}
