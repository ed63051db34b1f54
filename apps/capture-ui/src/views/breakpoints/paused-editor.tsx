import type { BreakpointDecision, PausedItem } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { ChevronDown } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api, ApiFailure } from "../../api.ts";
import { pausedQuery, queryClient } from "../../queries.ts";
import { BodyEditor, HeadersEditor } from "../../rules/message-editor.tsx";
import { keepDraft, keptDraft } from "../../rules/stored-draft.ts";
import { keysOf, useAction } from "../../shell/actions.ts";
import { Link } from "../../shell/link.tsx";
import { holdPaused, PAUSED } from "../../shell/notices.ts";
import { Button } from "../../ui/button.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { formatAgo } from "../../ui/format.ts";
import { Menu } from "../../ui/menu.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { KeyHint } from "../../ui/tag.tsx";
import { attempt, toast } from "../../ui/toast.tsx";
import styles from "./breakpoints.module.css";
import {
  bodyObstacle,
  draftOfPaused,
  draftProblem,
  isSameDraft,
  modifyDecision,
  type PausedDraft,
  respondDecision,
  responseDraft,
  secondsLeft,
} from "./paused-draft.ts";

const nameOfPaused = (id: string): string => PAUSED + id;
const nameOfResponse = (id: string): string => `${PAUSED}${id} response`;

/** Extends the timer when a message is opened for editing; the shell keeps extending it. */
function useHold(id: string, isEdited: boolean): void {
  useEffect(() => {
    if (!isEdited) return;
    void holdPaused(id).then(() => queryClient.invalidateQueries({ queryKey: pausedQuery.queryKey }));
  }, [id, isEdited]);
}

/** The editor of one paused message: loads its body and sends the decision. */
export function PausedEditor({ item, onDecided }: { readonly item: PausedItem; readonly onDecided: () => void }) {
  const full = useQuery({
    queryKey: ["breakpoints", "paused", item.id],
    queryFn: ({ signal }) => api.breakpoints.getPausedItem({ params: { id: item.id }, signal }),
    // The body of a request still being received is polled.
    refetchInterval: (query) => (isReceiving(query.state.data) ? 500 : false),
    retry: false,
  });
  const [busy, setBusy] = useState(false);
  const decide = async (decision: BreakpointDecision): Promise<void> => {
    if (busy) return;
    setBusy(true);
    const done = await attempt("Could not apply the decision", () =>
      api.breakpoints.resumePausedItem({ params: { id: item.id }, body: decision }),
    );
    if (done) {
      keepDraft(nameOfPaused(item.id), null);
      keepDraft(nameOfResponse(item.id), null);
      onDecided();
    } else {
      setBusy(false);
    }
    await queryClient.invalidateQueries({ queryKey: pausedQuery.queryKey });
  };
  // Available before the message has loaded.
  useAction("paused.allow", () => void decide({ action: "continue" }));
  useAction("paused.reject", () => void decide({ action: "abort" }));
  if (full.error !== null) {
    const isFinished = full.error instanceof ApiFailure && full.error.status === 404;
    return isFinished ? (
      <EmptyState title="No longer paused">
        Another user decided, its timeout expired, or the client disconnected.
      </EmptyState>
    ) : (
      <ErrorState title="Could not load the request" error={full.error} onRetry={() => void full.refetch()} />
    );
  }
  if (full.data === undefined) return <EmptyState icon={<Spinner />} title="" />;
  // Edits start from the complete message, which does not change any more.
  const state = isReceiving(full.data) ? "arriving" : "whole";
  return <Editor key={state} item={full.data} busy={busy} decide={decide} />;
}

function isReceiving(item: PausedItem | undefined): boolean {
  const message = item?.direction === "request" ? item.request : item?.response;
  return message?.body_state === "receiving";
}

function Editor({
  item,
  busy,
  decide,
}: {
  readonly item: PausedItem;
  readonly busy: boolean;
  readonly decide: (decision: BreakpointDecision) => Promise<void>;
}) {
  const [before] = useState(() => draftOfPaused(item));
  const name = nameOfPaused(item.id);
  const [draft, setDraft] = useState(() => keptDraft<PausedDraft>(name)?.draft ?? before);
  const [freshResponse] = useState(() => responseDraft(item));
  const [response, setResponse] = useState(
    () => keptDraft<PausedDraft>(nameOfResponse(item.id))?.draft ?? freshResponse,
  );
  const [isAnswering, setAnswering] = useState(() => keptDraft(nameOfResponse(item.id)) !== undefined);
  const form = useRef<HTMLDivElement>(null);
  const isChanged = !isSameDraft(before, draft);
  useEffect(() => keepDraft(name, isChanged ? { base: before, draft } : null), [name, isChanged, before, draft]);
  const isResponseChanged = !isSameDraft(freshResponse, response);
  const keptResponse = nameOfResponse(item.id);
  useEffect(
    () => keepDraft(keptResponse, isResponseChanged ? { base: freshResponse, draft: response } : null),
    [keptResponse, isResponseChanged, freshResponse, response],
  );
  useHold(item.id, isChanged || isAnswering);
  const problem = isAnswering ? draftProblem(response) : isChanged ? draftProblem(draft) : null;

  const allowAll = async (disable: boolean): Promise<void> => {
    await attempt("Could not continue the paused requests", async () => {
      const { resumed_count: count } = await api.breakpoints.resumeAll({ body: { rule_id: item.rule_id, disable } });
      toast({ title: count === 1 ? "1 request continued" : `${count} requests continued` });
    });
    await queryClient.invalidateQueries({ queryKey: ["breakpoints"] });
  };
  const focusForm = (): void => {
    window.setTimeout(() => form.current?.querySelector<HTMLElement>("input, textarea")?.focus(), 0);
  };
  const send = (): void => {
    if (problem !== null) return;
    if (isAnswering) void decide(respondDecision(response));
    else void decide(isChanged ? modifyDecision(item, before, draft) : { action: "continue" });
  };
  const startResponse = (): void => {
    setAnswering(true);
    focusForm();
  };
  useAction("paused.send", send);
  useAction("paused.edit", focusForm);
  useAction("paused.respond", startResponse);
  useAction("close", isAnswering ? () => setAnswering(false) : undefined);
  return (
    <section className={styles["editor"]} aria-label="Paused request">
      <DecisionBar
        item={item}
        isChanged={isChanged}
        isAnswering={isAnswering}
        isHeld={isChanged || isAnswering}
        problem={problem}
        busy={busy}
        onSend={send}
        onAllow={() => void decide({ action: "continue" })}
        onReject={() => void decide({ action: "abort" })}
        onRespond={startResponse}
        onBack={() => setAnswering(false)}
        onReset={() => setDraft(before)}
        onAllowAll={(disable) => void allowAll(disable)}
      />
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div ref={form} className={styles["form"]} tabIndex={0} role="group" aria-label="Message">
        {isAnswering ? (
          <MessageForm draft={response} onChange={setResponse} title="Your response" />
        ) : (
          <MessageForm
            draft={draft}
            onChange={setDraft}
            title={draft.side === "request" ? "Request" : "Response"}
            obstacle={bodyObstacle(item)}
            coded={isCoded(item)}
          />
        )}
        <p className={styles["quiet"]}>
          <Link href={`/traffic?id=${encodeURIComponent(item.entry_id)}`}>Show in Traffic</Link> · from{" "}
          {item.client_addr ?? "Weir itself"} · by {item.rule_name}
        </p>
      </div>
    </section>
  );
}

function isCoded(item: PausedItem): boolean {
  const message = item.direction === "request" ? item.request : item.response;
  return message?.body_state === "coded";
}

/** Form for all of a message: first line, headers, body. */
function MessageForm({
  title,
  draft,
  onChange,
  obstacle = null,
  coded = false,
}: {
  readonly title: string;
  readonly draft: PausedDraft;
  readonly onChange: (draft: PausedDraft) => void;
  readonly obstacle?: string | null;
  /** The content coding could not be decoded: the body holds the bytes as received. */
  readonly coded?: boolean;
}) {
  return (
    <div className={styles["message"]}>
      <h2>{title}</h2>
      {draft.side === "request" ? (
        <div className={styles["requestLine"]}>
          <Field label="Method">
            <TextInput
              mono
              maxLength={64}
              value={draft.method}
              onChange={(event) => onChange({ ...draft, method: event.target.value })}
            />
          </Field>
          <Field label="URL">
            <TextInput mono value={draft.url} onChange={(event) => onChange({ ...draft, url: event.target.value })} />
          </Field>
        </div>
      ) : (
        <div className={styles["requestLine"]}>
          <Field label="Status">
            <TextInput
              mono
              inputMode="numeric"
              maxLength={3}
              value={draft.status}
              onChange={(event) => onChange({ ...draft, status: event.target.value })}
            />
          </Field>
          <Field label="Reason">
            <TextInput
              mono
              maxLength={255}
              value={draft.reason}
              onChange={(event) => onChange({ ...draft, reason: event.target.value })}
            />
          </Field>
        </div>
      )}
      <HeadersEditor label="Headers" drafts={draft.headers} onChange={(headers) => onChange({ ...draft, headers })} />
      <BodyEditor
        draft={draft.body}
        disabled={obstacle !== null}
        notice={
          obstacle ?? (coded ? "The content coding cannot be decoded; these are the bytes as received." : undefined)
        }
        onChange={(body) => onChange({ ...draft, body })}
      />
    </div>
  );
}

/** Actions for the selected message. */
function DecisionBar({
  item,
  isChanged,
  isAnswering,
  isHeld,
  problem,
  busy,
  onSend,
  onAllow,
  onReject,
  onRespond,
  onBack,
  onReset,
  onAllowAll,
}: {
  readonly item: PausedItem;
  readonly isChanged: boolean;
  readonly isAnswering: boolean;
  /** Being edited, so its timeout is extended. */
  readonly isHeld: boolean;
  readonly problem: string | null;
  readonly busy: boolean;
  readonly onSend: () => void;
  readonly onAllow: () => void;
  readonly onReject: () => void;
  readonly onRespond: () => void;
  readonly onBack: () => void;
  readonly onReset: () => void;
  readonly onAllowAll: (disable: boolean) => void;
}) {
  return (
    <div className={styles["decisions"]} role="toolbar" aria-label="Decision">
      {isAnswering ? (
        <>
          <Button variant="primary" disabled={busy || problem !== null} onClick={onSend}>
            Send response
          </Button>
          <Button onClick={onBack}>Back to the {item.direction === "request" ? "request" : "response"}</Button>
        </>
      ) : (
        <>
          {isChanged && (
            <>
              <Button variant="primary" disabled={busy || problem !== null} onClick={onSend}>
                Send edited
              </Button>
              <Button onClick={onReset}>Discard edits</Button>
            </>
          )}
          <Button variant={isChanged ? "default" : "primary"} disabled={busy} onClick={onAllow}>
            {isChanged ? "Continue unmodified" : "Continue"} <KeyHint keys={keysOf("paused.allow")} />
          </Button>
          <Button disabled={busy} onClick={onRespond}>
            Respond <KeyHint keys={keysOf("paused.respond")} />
          </Button>
          <Button variant="danger" disabled={busy} onClick={onReject}>
            Reject <KeyHint keys={keysOf("paused.reject")} />
          </Button>
          <Menu
            trigger={
              <Button variant="ghost">
                All from this rule <ChevronDown size={13} />
              </Button>
            }
            items={() => [
              { kind: "item", label: "Continue all from this rule", onSelect: () => onAllowAll(false) },
              {
                kind: "item",
                label: "Continue all and disable the rule",
                disabled: item.rule_id === "pause-all",
                onSelect: () => onAllowAll(true),
              },
            ]}
          />
        </>
      )}
      <span className={styles["grow"]} />
      {problem !== null && <span className={styles["problem"]}>{problem}</span>}
      {isHeld && item.deadline !== null ? (
        <span
          className={styles["quiet"]}
          title="The timeout is suspended while you edit, for at most one hour in total"
        >
          Timeout suspended while editing
        </span>
      ) : (
        <Countdown deadline={item.deadline} since={item.paused_at} />
      )}
    </div>
  );
}

/** Time until a paused message continues, or the time since it was paused. */
export function Countdown({ deadline, since }: { readonly deadline: string | null; readonly since: string }) {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNowMs(Date.now()), 500);
    return () => window.clearInterval(timer);
  }, []);
  const left = secondsLeft(deadline, nowMs);
  if (left === null) return <span className={styles["quiet"]}>{formatAgo(Date.parse(since), nowMs)}</span>;
  return (
    <span
      className={styles["countdown"]}
      data-soon={left <= 5 || undefined}
      title="Time until it continues automatically"
    >
      {left} s left
    </span>
  );
}
