import { useQuery } from "@tanstack/react-query";
import { Copy, Play, Plus } from "lucide-react";
import { useState } from "react";
import { api, ApiFailure } from "../../api.ts";
import { usePreferences } from "../../preferences.ts";
import { isKept } from "../../rules/stored-draft.ts";
import { Link } from "../../shell/link.tsx";
import { setParams, useLocation } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { formatTimeOfDay } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { DiffFields } from "./diff-fields.tsx";
import { diffOptions } from "./diff-options.ts";
import { EntryDiffView } from "./entry-diff-view.tsx";
import styles from "./replay.module.css";
import { RequestEditor } from "./request-editor.tsx";
import { SavedList } from "./saved-list.tsx";
import { SessionDiffScreen } from "./session-diff-screen.tsx";

/** Name under which a request's unsaved draft is kept. */
const nameOf = (key: string): string => `replay ${key}`;

/** Saved requests, their results, and comparisons. */
export function ReplayView() {
  const { params } = useLocation();
  const [fresh, setFresh] = useState(false);
  const id = params.get("id");
  const right = params.get("right");
  const saved = useQuery({
    queryKey: ["replay", "saved", id],
    queryFn: ({ signal }) => api.replay.getSavedRequest({ params: { id: id ?? "" }, signal }),
    enabled: id !== null,
    retry: false,
  });
  const isGone = saved.error instanceof ApiFailure && saved.error.status === 404;
  const show = (next: string | null): void => {
    setFresh(false);
    setParams({ id: next, left: null, right: null, sessions: null });
  };
  const begin = (): void => {
    setParams({ id: null, left: null, right: null, sessions: null });
    setFresh(true);
  };
  const [leftSession, rightSession] = params.get("sessions")?.split(",") ?? [];
  const content =
    leftSession !== undefined && rightSession !== undefined ? (
      <SessionDiffScreen key={`${leftSession} ${rightSession}`} left={leftSession} right={rightSession} />
    ) : right !== null ? (
      <DiffScreen key={`${params.get("left") ?? ""} ${right}`} left={params.get("left")} right={right} />
    ) : fresh ? (
      <RequestEditor key="new" saved={null} keptAs={nameOf("new")} isGone={false} onSaved={show} />
    ) : id === null ? (
      <EmptyState
        icon={<Play size={28} />}
        title="Send requests again"
        actions={
          <Button variant="primary" icon={<Plus size={14} />} onClick={begin}>
            New request
          </Button>
        }
      >
        Select a saved request, create one, or press E on a request in Traffic.
      </EmptyState>
    ) : isGone && isKept(nameOf(id)) ? (
      <RequestEditor key={id} saved={null} keptAs={nameOf(id)} isGone onSaved={show} />
    ) : saved.error !== null && (isGone || saved.data === undefined) ? (
      <ErrorState title="Could not load the request" error={saved.error} />
    ) : saved.data === undefined ? (
      <EmptyState icon={<Spinner />} title="" />
    ) : (
      <RequestEditor key={id} saved={saved.data} keptAs={nameOf(id)} isGone={false} onSaved={show} />
    );
  return (
    <div className={styles["view"]}>
      <SavedList chosenId={id} onShow={show} onNew={begin} />
      <div className={styles["right"]}>{content}</div>
    </div>
  );
}

/** Comparison of two entries or replays. Options are kept in the URL, so that it can be linked. */
function DiffScreen({ left, right }: { readonly left: string | null; readonly right: string }) {
  const options = diffOptions(useLocation().params);
  const diff = useQuery({
    queryKey: ["diff", left, right, options],
    queryFn: ({ signal }) =>
      api.replay.diffEntries({ body: { ...(left === null ? {} : { left }), right, ...options }, signal }),
    retry: false,
    placeholderData: (before) => before,
  });
  return (
    <>
      <div className={styles["head"]}>
        <h2>Comparison</h2>
        <span className={styles["grow"]} />
        <Button icon={<Copy size={14} />} onClick={() => void copyText(location.href, "Link")}>
          Copy link
        </Button>
        {left !== null && (
          <Button onClick={() => setParams({ left: right, right: left }, { replace: true })}>Swap sides</Button>
        )}
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div style={{ flex: 1, minHeight: 0, overflow: "auto" }} tabIndex={0} role="group" aria-label="Comparison">
        <div className={styles["panel"]}>
          <DiffFields />
          {diff.error !== null && (
            <ErrorState title="Could not compare the requests" error={diff.error} onRetry={() => void diff.refetch()} />
          )}
          {diff.isPending && <EmptyState icon={<Spinner />} title="" />}
          {diff.data !== undefined && (
            <>
              <p>
                Left: <Side id={diff.data.left_id} /> · Right: <Side id={diff.data.right_id} />
              </p>
              <EntryDiffView diff={diff.data} />
            </>
          )}
        </div>
      </div>
    </>
  );
}

/** One side, identified by number and request line: ids of entries share long prefixes. */
function Side({ id }: { readonly id: string | null }) {
  const utc = usePreferences((preferences) => preferences.timeFormat === "utc");
  const entry = useQuery({
    queryKey: ["diff", "side", id],
    queryFn: ({ signal }) =>
      api.traffic.getTraffic({ params: { id: id ?? "" }, query: { include_bodies: "false" }, signal }),
    enabled: id !== null,
    staleTime: Infinity,
    retry: false,
  }).data;
  if (id === null) return <span className={styles["quiet"]}>not captured</span>;
  const path = entry === undefined ? "" : URL.canParse(entry.request.url) ? new URL(entry.request.url).pathname : "";
  const text =
    entry === undefined
      ? `…${id.slice(-8)}`
      : `#${entry.seq} ${entry.request.method} ${path}, ${formatTimeOfDay(Date.parse(entry.timestamp), utc)}`;
  return (
    <Link href={`/traffic?id=${encodeURIComponent(id)}`} title={entry?.request.url}>
      {text}
    </Link>
  );
}
