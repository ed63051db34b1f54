import { useQuery } from "@tanstack/react-query";
import { Pause, Plus } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { PausedItem } from "@headworks/capture-contract";
import { api } from "../../api.ts";
import { pausedQuery } from "../../queries.ts";
import { headersList, markedBody } from "../../rules/message-draft.ts";
import { keepDraft, keptDraft, keptNames } from "../../rules/stored-draft.ts";
import { useAction } from "../../shell/actions.ts";
import { idOfPaused, PAUSED } from "../../shell/notices.ts";
import { navigate, setParams, useLocation } from "../../shell/router.ts";
import { SplitPane, useNarrow } from "../../ui/split-pane.tsx";
import { attempt } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { isolatedName } from "../../ui/format.ts";
import { EmptyState, ErrorState } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import styles from "./breakpoints.module.css";
import { Countdown, PausedEditor } from "./paused-editor.tsx";
import { draftText, type PausedDraft } from "./paused-draft.ts";

/** The queue and the editor of the selected message. New messages change neither selection nor focus. */
export function WaitingQueue({ onAdd }: { readonly onAdd: () => void }) {
  const paused = useQuery({ ...pausedQuery, refetchInterval: 3000 });
  const { params } = useLocation();
  const narrow = useNarrow();
  const [share, setShare] = useState(0.32);
  // Oldest first: its client has waited longest.
  const items = (paused.data ?? []).toReversed();
  const id = params.get("id");
  const [first] = items;
  const chosen = items.find((item) => item.id === id) ?? first;
  const chosenIndex = useRef(0);
  const at = chosen === undefined ? -1 : items.indexOf(chosen);
  useEffect(() => {
    if (at >= 0) chosenIndex.current = at;
  }, [at]);
  const choose = (item: PausedItem | undefined): void =>
    setParams({ id: item === undefined ? null : item.id }, { replace: true });
  const step = (by: number): void => {
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (next !== undefined) choose(next);
  };
  useAction("list.next", items.length > 0 ? () => step(1) : undefined);
  useAction("list.previous", items.length > 0 ? () => step(-1) : undefined);

  if (paused.error !== null) {
    return (
      <ErrorState
        title="Could not load the paused requests"
        error={paused.error}
        onRetry={() => {
          void paused.refetch();
        }}
      />
    );
  }
  if (chosen === undefined) {
    return (
      <>
        <LostEdits paused={paused.data} />
        <EmptyState
          icon={<Pause size={28} />}
          title="No paused requests"
          actions={
            <Button icon={<Plus size={14} />} onClick={onAdd}>
              New breakpoint
            </Button>
          }
        >
          Requests that hit a breakpoint stop here so you can edit, respond to or drop them.
        </EmptyState>
      </>
    );
  }
  const list = (
    <ul className={styles["queue"]} aria-label="Paused requests">
      {items.map((item) => (
        <li key={item.id}>
          <button
            type="button"
            className={styles["waiting"]}
            aria-current={item === chosen || undefined}
            onClick={() => choose(item)}
          >
            <span className={styles["waitingLine"]}>
              <b>{item.request.method}</b>
              <Tag tone={item.direction === "request" ? "neutral" : "accent"}>
                {item.direction === "request" ? "request" : `response ${item.response?.status_code ?? ""}`}
              </Tag>
              <span className={styles["grow"]} />
              <Countdown deadline={item.deadline} since={item.paused_at} />
            </span>
            <span className={styles["waitingUrl"]}>{item.request.url}</span>
            <span className={styles["quiet"]}>{item.rule_name}</span>
          </button>
        </li>
      ))}
    </ul>
  );
  return (
    <div className={styles["waitingPart"]}>
      <LostEdits paused={paused.data} />
      <SplitPane
        label="Resize queue"
        direction={narrow ? "column" : "row"}
        share={share}
        onShareChange={setShare}
        minPx={narrow ? 120 : 240}
        first={list}
        second={<PausedEditor key={chosen.id} item={chosen} onDecided={() => choose(items[at + 1] ?? items[at - 1])} />}
      />
    </div>
  );
}

/** Unsent edits of messages that are no longer paused; kept until discarded explicitly. */
function LostEdits({ paused }: { readonly paused: readonly PausedItem[] | undefined }) {
  const [, redraw] = useState(0);
  if (paused === undefined) return null;
  const waiting = new Set(paused.map(({ id }) => id));
  const lost = keptNames(PAUSED).filter((name) => !waiting.has(idOfPaused(name)));
  const discard = (name: string): void => {
    keepDraft(name, null);
    redraw((count) => count + 1);
  };
  return (
    <>
      {lost.map((name) => (
        <LostEdit key={name} name={name} onDone={() => discard(name)} />
      ))}
    </>
  );
}

function LostEdit({ name, onDone }: { readonly name: string; readonly onDone: () => void }) {
  const draft = keptDraft<PausedDraft>(name)?.draft;
  if (draft === undefined) return null;
  const replay = async (): Promise<void> => {
    await attempt("Could not save the request", async () => {
      const { id } = await api.replay.saveRequest({
        body: {
          request: {
            method: draft.method.trim(),
            url: draft.url.trim(),
            headers_list: headersList(draft.headers),
            body: draft.body.text === "" ? null : markedBody(draft.body),
          },
        },
      });
      onDone();
      navigate(`/replay?id=${encodeURIComponent(id)}`);
    });
  };
  const isRequest = draft.side === "request";
  return (
    <div className={styles["lost"]} role="status">
      <p>
        <b>Your edits were not sent.</b> {isRequest ? "The request" : "The response"} is no longer paused:{" "}
        <code>
          {isRequest ? `${draft.method} ` : ""}
          {isolatedName(isRequest ? draft.url : `${draft.status} for ${draft.url}`)}
        </code>{" "}
        {isRequest && !draft.hasBody ? "Its body was not loaded here, so the edits do not include it." : ""}
      </p>
      <span className={styles["lostActions"]}>
        {isRequest && draft.hasBody && (
          <Button variant="primary" onClick={() => void replay()}>
            Send as replay…
          </Button>
        )}
        <Button onClick={() => void copyText(draftText(draft), isRequest ? "Request" : "Response")}>Copy</Button>
        <Button onClick={onDone}>Discard</Button>
      </span>
    </div>
  );
}
