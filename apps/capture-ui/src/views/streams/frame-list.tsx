import type { StreamDetail, StreamFrame } from "@headworks/capture-contract";
import { ArrowDown, ArrowDownToLine, ArrowUp } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import type { ReactElement, Ref } from "react";
import { listenLive } from "../../live.ts";
import { useAction } from "../../shell/actions.ts";
import { Button } from "../../ui/button.tsx";
import { TextInput } from "../../ui/field.tsx";
import { formatBytes, formatCount, formatTimeOfDay } from "../../ui/format.ts";
import { ContextMenu } from "../../ui/menu.tsx";
import type { MenuEntry } from "../../ui/menu.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { WindowList } from "../detail/body/window-list.tsx";
import type { WindowListHandle } from "../detail/body/window-list.tsx";
import { frameKind, frameLine, isIncomplete, sinceStart } from "./frame-text.ts";
import { loadFrames } from "./load-rows.ts";
import type { FrameFilter, ListedFrame } from "./load-rows.ts";
import { type PagedRows, throttled, usePagedRows } from "./paged-rows.ts";
import styles from "./streams.module.css";
import { actionsFor, draftOfMessage } from "./ws-rule-draft.ts";
import type { ActionType, WsRuleDraft } from "./ws-rule-draft.ts";
import { WsRulesDialog } from "./ws-rules-dialog.tsx";

const ROW_PX = 26;
/** The store has frames within 250 ms; earlier notifications are fetched then. */
const GROW_MS = 260;
const SEARCH_AFTER_MS = 250;

/** The frames of a stream in order; only pages in view are held. */
export function FrameList({
  stream,
  chosen,
  hasKeys,
  onChoose,
}: {
  readonly stream: StreamDetail;
  readonly chosen: number | null;
  /** Whether this list handles the list keys, independent of focus. */
  readonly hasKeys: boolean;
  readonly onChoose: (ordinal: number | null) => void;
}) {
  const [filter, setFilter] = useState<FrameFilter>({ direction: "all", search: "" });
  const [follows, setFollows] = useState(stream.state !== "closed" && chosen === null);
  const search = useRef<HTMLInputElement>(null);
  const rows = usePagedRows<ListedFrame>(
    `${stream.kind} ${stream.id} ${JSON.stringify(filter)}`,
    (offset, limit, signal, showEarly) => loadFrames(stream, filter, offset, limit, signal, showEarly),
  );
  useGrowth(stream, rows);
  useAction("focusQuery", hasKeys ? () => search.current?.focus() : undefined);
  return (
    <div
      className={styles["frames"]}
      onWheel={(event) => {
        // Scrolling back stops following.
        if (event.deltaY < 0) setFollows(false);
      }}
    >
      <div className={styles["tools"]}>
        <Segmented
          label="Direction"
          value={filter.direction}
          options={[
            { value: "all", label: "All" },
            { value: "send", label: <Arrow direction="send" text="Sent" /> },
            { value: "receive", label: <Arrow direction="receive" text="Received" /> },
          ]}
          onChange={(direction) => setFilter({ ...filter, direction })}
        />
        <SearchField input={search} onSearch={(text) => setFilter({ ...filter, search: text })} />
        <span className={styles["quiet"]} aria-live="off">
          {rows.isLoaded ? formatCount(rows.total) : ""}
        </span>
        <Button
          variant="ghost"
          icon={<ArrowDownToLine size={14} />}
          pressed={follows}
          title="Scroll to the newest message"
          onClick={() => setFollows(!follows)}
        >
          Follow
        </Button>
      </div>
      <Rows
        stream={stream}
        rows={rows}
        isFiltered={filter.direction !== "all" || filter.search !== ""}
        chosen={chosen}
        hasKeys={hasKeys}
        follows={follows}
        onLeaveEnd={() => setFollows(false)}
        onChoose={(ordinal) => {
          setFollows(false);
          onChoose(ordinal);
        }}
      />
    </div>
  );
}

/** Debounced search, so that a large stream is not searched for each character. */
function SearchField({
  input,
  onSearch,
}: {
  readonly input: Ref<HTMLInputElement>;
  readonly onSearch: (text: string) => void;
}) {
  const [text, setText] = useState("");
  const latest = useRef(onSearch);
  useEffect(() => {
    latest.current = onSearch;
  });
  useEffect(() => {
    const timer = window.setTimeout(() => latest.current(text), SEARCH_AFTER_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return (
    <TextInput
      ref={input}
      type="search"
      aria-label="Search messages"
      placeholder="Search"
      className={styles["search"]}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        if (text === "") event.currentTarget.blur();
        else setText("");
      }}
    />
  );
}

/** Follows an open stream: fetches added frames, or everything if some were missed or schemas changed. */
function useGrowth({ id, kind }: Pick<StreamDetail, "id" | "kind">, rows: PagedRows<ListedFrame>): void {
  useEffect(() => {
    const grow = throttled(() => rows.grow(), GROW_MS);
    const refresh = throttled(() => rows.refresh(), GROW_MS);
    const stop = listenLive({
      frames: (frames) => {
        if (frames.some((frame) => frame.stream_id === id)) grow.trigger();
      },
      framesMissed: grow.trigger,
      changed: (topic) => {
        if (topic === "grpc" && kind === "grpc") rows.refresh();
      },
      resync: refresh.trigger,
    });
    return () => {
      stop();
      grow.stop();
      refresh.stop();
    };
  }, [id, kind, rows]);
}

function Rows({
  stream,
  rows,
  isFiltered,
  chosen,
  hasKeys,
  follows,
  onLeaveEnd,
  onChoose,
}: {
  readonly stream: StreamDetail;
  readonly rows: PagedRows<ListedFrame>;
  readonly isFiltered: boolean;
  readonly chosen: number | null;
  readonly hasKeys: boolean;
  readonly follows: boolean;
  readonly onLeaveEnd: () => void;
  readonly onChoose: (ordinal: number) => void;
}) {
  const list = useRef<WindowListHandle>(null);
  const [draft, setDraft] = useState<WsRuleDraft | null>(null);
  const prefix = useId();
  /** Last index of the selected frame, which is identified by its ordinal, not by an index in a filtered list. */
  const chosenIndex = useRef(-1);
  const { total } = rows;
  useEffect(() => {
    if (follows && total > 0) list.current?.show(total - 1);
  }, [follows, total]);
  const go = (index: number): void => {
    const target = Math.min(total - 1, Math.max(0, index));
    list.current?.show(target);
    const row = rows.row(target);
    if (row === undefined) return;
    chosenIndex.current = target;
    onChoose(row.ordinal);
  };
  const next = (): void => go(chosen === null ? 0 : chosenIndex.current + 1);
  const previous = (): void => go(chosen === null ? total - 1 : chosenIndex.current - 1);
  useAction("list.next", hasKeys ? next : undefined);
  useAction("list.previous", hasKeys ? previous : undefined);
  useAction("list.first", hasKeys ? () => go(0) : undefined);
  useAction("list.last", hasKeys ? () => go(total - 1) : undefined);
  const placeholder = placeholderOf(stream, rows, isFiltered);
  if (placeholder !== null) return placeholder;
  const messages = (
    <WindowList
      handle={list}
      rows={total}
      rowPx={ROW_PX}
      label="Messages"
      className={styles["rows"]}
      onVisible={(from, to) => rows.want(from, to)}
      onKeyDown={(event) => {
        if (["PageUp", "PageDown"].includes(event.key)) onLeaveEnd();
        const step = { ArrowDown: next, ArrowUp: previous }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        step();
      }}
      activeId={(index) => (chosen !== null && rows.row(index)?.ordinal === chosen ? `${prefix}-${chosen}` : undefined)}
      renderRow={(index) => {
        const frame = rows.row(index);
        if (frame?.ordinal === chosen) chosenIndex.current = index;
        return (
          <FrameRow
            key={index}
            id={`${prefix}-${frame?.ordinal ?? `at-${index}`}`}
            frame={frame}
            createdAt={stream.created_at}
            index={index}
            isChosen={frame !== undefined && frame.ordinal === chosen}
            onChoose={(ordinal) => {
              chosenIndex.current = index;
              onChoose(ordinal);
            }}
          />
        );
      }}
    />
  );
  return (
    <>
      <ContextMenu
        items={(event) => {
          const row = event.target instanceof Element ? event.target.closest("[data-row]") : null;
          // The menu key acts on the selected message.
          const index = row === null ? chosenIndex.current : Number(row.getAttribute("data-row"));
          const frame = rows.row(index);
          return frame === undefined ? [] : ruleMenu(stream, frame, setDraft);
        }}
      >
        <div className={styles["menuArea"]}>{messages}</div>
      </ContextMenu>
      {draft !== null && <WsRulesDialog initial={draft} onClose={() => setDraft(null)} />}
    </>
  );
}

/** Error, loading or empty state of a list; null if it has rows. */
function placeholderOf(stream: StreamDetail, rows: PagedRows<ListedFrame>, isFiltered: boolean): ReactElement | null {
  if (rows.error !== null && !rows.isLoaded) {
    return <ErrorState title="Could not load the messages" error={rows.error} onRetry={() => rows.refresh()} />;
  }
  if (!rows.isLoaded) return <EmptyState title="Loading messages" icon={<Spinner />} />;
  if (rows.total === 0) {
    return (
      <EmptyState title={isFiltered ? "No matching messages" : "No messages yet"}>
        {!isFiltered && stream.state !== "closed" && "The stream is open; new messages appear here."}
      </EmptyState>
    );
  }
  return null;
}

const RULE_LABELS: Readonly<Record<ActionType, string>> = {
  pause: "Pause…",
  replace: "Replace text…",
  drop: "Drop…",
  delay: "Delay…",
};

/** Rules that can be created from a message; opened for review before saving. */
function ruleMenu(stream: StreamDetail, frame: StreamFrame, onDraft: (draft: WsRuleDraft) => void): MenuEntry[] {
  const actions = actionsFor(frame);
  if (actions.length === 0) return [];
  const items = actions.map((action): MenuEntry => ({
    kind: "item",
    label: RULE_LABELS[action],
    onSelect: () => onDraft(draftOfMessage(stream, frame, action)),
  }));
  return [{ kind: "heading", label: "New rule for similar messages" }, ...items];
}

function FrameRow({
  id,
  frame,
  createdAt,
  index,
  isChosen,
  onChoose,
}: {
  readonly id: string;
  readonly frame: ListedFrame | undefined;
  readonly createdAt: string;
  readonly index: number;
  readonly isChosen: boolean;
  readonly onChoose: (ordinal: number) => void;
}) {
  if (frame === undefined) return <div className={styles["frame"]} style={{ height: ROW_PX }} aria-hidden />;
  return (
    <button
      id={id}
      type="button"
      tabIndex={-1}
      className={styles["frame"]}
      style={{ height: ROW_PX }}
      data-row={index}
      data-chosen={isChosen || undefined}
      aria-current={isChosen || undefined}
      onClick={() => onChoose(frame.ordinal)}
    >
      <Arrow direction={frame.direction} />
      <span className={styles["time"]} title={formatTimeOfDay(Date.parse(frame.timestamp))}>
        {sinceStart(frame.timestamp, createdAt)}
      </span>
      <span className={styles["type"]} data-quiet={isControl(frame) || undefined}>
        {frameKind(frame)}
      </span>
      <span className={styles["text"]} data-quiet={isControl(frame) || undefined}>
        {frame.effect !== null && <Tag tone={frame.effect === "dropped" ? "error" : "warning"}>{frame.effect}</Tag>}
        {isIncomplete(frame) && <Tag tone="warning">incomplete</Tag>}
        {frameLine(frame)}
      </span>
      <span className={styles["size"]}>{formatBytes(frame.size)}</span>
    </button>
  );
}

/** Keep-alive frames without content. */
function isControl(frame: StreamFrame): boolean {
  return frame.size === 0 || frame.type === "ping" || frame.type === "pong";
}

export function Arrow({ direction, text }: { readonly direction: "send" | "receive"; readonly text?: string }) {
  const Icon = direction === "send" ? ArrowUp : ArrowDown;
  return (
    <span className={styles["arrow"]} data-direction={direction}>
      <Icon size={13} aria-hidden />
      {text ?? <span className="visually-hidden">{direction === "send" ? "Sent" : "Received"}</span>}
    </span>
  );
}
