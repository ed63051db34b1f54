import type { StreamSummary } from "@headworks/capture-contract";
import { ListFilter, Radio, Trash2 } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import type { KeyboardEvent, ReactNode } from "react";
import { api } from "../../api.ts";
import { listenLive } from "../../live.ts";
import { attempt } from "../../ui/toast.tsx";
import { IconButton } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { formatBytes, formatCount, formatTimeOfDay } from "../../ui/format.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { WindowList } from "../detail/body/window-list.tsx";
import type { WindowListHandle } from "../detail/body/window-list.tsx";
import { KIND_LABELS } from "./frame-text.ts";
import { loadStreams } from "./load-rows.ts";
import { type PagedRows, throttled, usePagedRows } from "./paged-rows.ts";
import styles from "./streams.module.css";
import { WsWaiting } from "./ws-paused.tsx";
import { WsRulesDialog } from "./ws-rules-dialog.tsx";

export type KindChoice = StreamSummary["kind"] | "all";
export const KIND_CHOICES: readonly KindChoice[] = ["all", "websocket", "sse", "json", "grpc"];
const ROW_PX = 50;
const REFRESH_MS = 400;

/** Messages that the service can clear independently of their entries. */
const CLEARABLE: Readonly<Partial<Record<KindChoice, string>>> = {
  all: "messages of WebSocket connections and gRPC calls",
  websocket: "messages of WebSocket connections",
  grpc: "messages of gRPC calls",
};

async function clearMessages(kind: KindChoice, what: string): Promise<void> {
  const sure = await confirmAction({
    title: `Clear the ${what}?`,
    text: "Closed streams are removed from the list; open ones continue. Their requests stay in Traffic.",
    action: "Clear",
    danger: true,
  });
  if (!sure) return;
  await attempt("Could not clear the messages", async () => {
    if (kind !== "grpc") await api["ws-traffic"].clearWsTraffic({});
    if (kind !== "websocket") await api.grpc.clearGrpc({});
  });
}

/** All streams of the active session, newest first, updated live. */
export function StreamList({
  kind,
  chosenId,
  onKind,
  onShow,
  instead,
}: {
  readonly kind: KindChoice;
  readonly chosenId: string | null;
  readonly instead?: ReactNode;
  readonly onKind: (kind: KindChoice) => void;
  readonly onShow: (id: string) => void;
}) {
  const rows = usePagedRows<StreamSummary>(kind, (offset, limit, signal) => loadStreams(kind, offset, limit, signal));
  const clearable = CLEARABLE[kind];
  const [showsRules, setShowsRules] = useState(false);
  useEffect(() => {
    const refresh = throttled(() => rows.refresh(), REFRESH_MS);
    const stop = listenLive({
      traffic: refresh.trigger,
      frames: refresh.trigger,
      framesMissed: refresh.trigger,
      resync: refresh.trigger,
      changed: (topic) => {
        // Another session has another list.
        if (topic === "sessions") refresh.trigger();
      },
    });
    return () => {
      stop();
      refresh.stop();
    };
  }, [rows]);
  return (
    <section className={styles["list"]} aria-label="Streams">
      <div className={styles["listHead"]}>
        <h1>Streams</h1>
        <span className={styles["listTools"]}>
          {rows.isLoaded && <span className={styles["quiet"]}>{formatCount(rows.total)}</span>}
          {clearable !== undefined && rows.total > 0 && (
            <IconButton
              label={`Clear the ${clearable}`}
              icon={<Trash2 size={16} />}
              onClick={() => void clearMessages(kind, clearable).then(() => rows.refresh())}
            />
          )}
          <IconButton
            label="Rules for WebSocket messages"
            icon={<ListFilter size={16} />}
            onClick={() => setShowsRules(true)}
          />
        </span>
      </div>
      <div className={styles["kinds"]}>
        <Segmented
          label="Stream type"
          value={kind}
          options={KIND_CHOICES.map((value) => ({ value, label: value === "all" ? "All" : KIND_LABELS[value] }))}
          onChange={onKind}
        />
      </div>
      <WsWaiting onShow={onShow} />
      {showsRules && <WsRulesDialog onClose={() => setShowsRules(false)} />}
      {instead ?? <StreamRows rows={rows} kind={kind} chosenId={chosenId} onShow={onShow} />}
    </section>
  );
}

function StreamRows({
  rows,
  kind,
  chosenId,
  onShow,
}: {
  readonly rows: PagedRows<StreamSummary>;
  readonly kind: KindChoice;
  readonly chosenId: string | null;
  readonly onShow: (id: string) => void;
}) {
  const list = useRef<WindowListHandle>(null);
  const prefix = useId();
  if (rows.error !== null && !rows.isLoaded) {
    return <ErrorState title="Could not load the streams" error={rows.error} onRetry={() => rows.refresh()} />;
  }
  if (!rows.isLoaded) return <EmptyState title="Loading streams" icon={<Spinner />} />;
  if (rows.total === 0) {
    return (
      <EmptyState icon={<Radio size={28} />} title={kind === "all" ? "No streams yet" : "No streams of this type"}>
        WebSocket connections, server-sent events, JSON streams and gRPC calls appear here as they run.
      </EmptyState>
    );
  }
  const chosen = indexOf(rows, chosenId);
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.min(rows.total - 1, Math.max(0, chosen === -1 ? 0 : chosen + step));
    const row = rows.row(next);
    if (row === undefined) return;
    onShow(row.id);
    list.current?.show(next);
  };
  return (
    <WindowList
      handle={list}
      rows={rows.total}
      rowPx={ROW_PX}
      label="Streams"
      className={styles["streams"]}
      onVisible={(from, to) => rows.want(from, to)}
      onKeyDown={onKeyDown}
      activeId={(index) => (index === chosen ? `${prefix}-${index}` : undefined)}
      renderRow={(index) => (
        <StreamRow
          key={rows.row(index)?.id ?? index}
          id={`${prefix}-${index}`}
          stream={rows.row(index)}
          isChosen={index === chosen}
          onShow={onShow}
        />
      )}
    />
  );
}

/** Index of the selected stream among the loaded rows. */
function indexOf(rows: PagedRows<StreamSummary>, id: string | null): number {
  if (id === null) return -1;
  for (let index = 0; index < Math.min(rows.total, 5000); index += 1) if (rows.row(index)?.id === id) return index;
  return -1;
}

function StreamRow({
  id,
  stream,
  isChosen,
  onShow,
}: {
  readonly id: string;
  readonly stream: StreamSummary | undefined;
  readonly isChosen: boolean;
  readonly onShow: (id: string) => void;
}) {
  if (stream === undefined) return <div className={styles["stream"]} style={{ height: ROW_PX }} aria-hidden />;
  const frames = stream.frames_sent + stream.frames_received;
  return (
    <div className={styles["stream"]} style={{ height: ROW_PX }} data-chosen={isChosen || undefined}>
      <button
        id={id}
        type="button"
        tabIndex={-1}
        aria-current={isChosen || undefined}
        className={styles["open"]}
        onClick={() => onShow(stream.id)}
      >
        <span className="visually-hidden">
          {stream.state}, {formatCount(frames)} messages
        </span>
        <span className={styles["line"]}>
          <span className={styles["state"]} data-state={stream.state} title={stream.state} />
          <span className={styles["host"]}>{stream.host}</span>
          <span className={styles["kind"]}>{KIND_LABELS[stream.kind]}</span>
        </span>
        <span className={styles["line"]}>
          <span className={styles["path"]}>{stream.path}</span>
          <span className={styles["quiet"]}>
            {formatCount(frames)} · {formatBytes(stream.bytes_sent + stream.bytes_received)} ·{" "}
            {formatTimeOfDay(Date.parse(stream.created_at)).slice(0, 8)}
          </span>
        </span>
      </button>
    </div>
  );
}
