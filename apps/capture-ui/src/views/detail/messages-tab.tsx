import type { TrafficEntry } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { Link } from "../../shell/link.tsx";
import { classNames } from "../../ui/class-names.ts";
import { DiffView } from "../../ui/diff-view.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import type { Side } from "./body/body-format.ts";
import { BodyPanel } from "./body/body-panel.tsx";
import { messageLines, type MessageLines } from "./decoded-message.ts";
import styles from "./detail.module.css";
import { failureAdvice } from "./failure-advice.ts";
import { HeaderList } from "./headers/header-list.tsx";

type Message = TrafficEntry["request"] | NonNullable<TrafficEntry["response"]>;

/** Request and response side by side, or stacked on narrow panes. */
export function MessagesTab({ entry }: { readonly entry: TrafficEntry }) {
  const [shown, setShown] = useState<"modified" | "changes" | "original">("modified");
  const isChanged = entry.original_request !== null || entry.original_response !== null;
  return (
    <div className={styles["messages"]}>
      {isChanged && (
        <div className={styles["changeSwitch"]}>
          <Segmented
            label="Message version"
            value={shown}
            options={[
              { value: "modified", label: "Modified" },
              { value: "changes", label: "Changes" },
              { value: "original", label: "Original" },
            ]}
            onChange={setShown}
          />
          <span className={styles["quiet"]}>Rules modified this request.</span>
        </div>
      )}
      {entry.failure !== null && entry.response !== null && entry.state !== "closed" && (
        <p className={styles["failed"]}>
          <b>{failureAdvice(entry.failure).title}</b>
          <code>{entry.failure.message}</code>
        </p>
      )}
      {isChanged && shown !== "modified" ? (
        <ChangesView entry={entry} mode={shown} />
      ) : (
        <div className={styles["columns"]} data-lean={hasNoBody(entry.request) || undefined}>
          <MessageSide entry={entry} side="request" message={entry.request} />
          {entry.response === null ? (
            <MissingResponse entry={entry} />
          ) : (
            <MessageSide entry={entry} side="response" message={entry.response} />
          )}
        </div>
      )}
    </div>
  );
}

/** Bodies up to this size need only a few lines in the stacked layout. */
const SHORT_BODY_BYTES = 240;

function hasNoBody(message: Message): boolean {
  return message.body_stored_size === 0;
}

function MessageSide({
  entry,
  side,
  message,
}: {
  readonly entry: TrafficEntry;
  readonly side: Side;
  readonly message: Message;
}) {
  return (
    <section className={styles["side"]} aria-label={side === "request" ? "Request" : "Response"}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div className={styles["headerPart"]} tabIndex={0} role="group" aria-label={`${side} headers`}>
        <HeaderList
          title={side === "request" ? "Request" : "Response"}
          headers={message.headers_list}
          trailers={message.trailers_list}
        />
      </div>
      <div
        className={classNames(
          styles["bodyPart"],
          (hasNoBody(message) || entry.response?.status_code === 101) && styles["emptyBody"],
        )}
        data-short={message.body_stored_size <= SHORT_BODY_BYTES || undefined}
      >
        {entry.response?.status_code === 101 ? (
          <p className={styles["switched"]}>
            {side === "request" ? "No body" : "The protocol was upgraded; the data that follows is shown as a stream."}
          </p>
        ) : (
          <BodyPanel entryId={entry.id} side={side} message={message} />
        )}
      </div>
    </section>
  );
}

function MissingResponse({ entry }: { readonly entry: TrafficEntry }) {
  if (entry.failure !== null) {
    const advice = failureAdvice(entry.failure);
    return (
      <section className={styles["side"]} aria-label="Response">
        <div className={styles["body"]}>
          <div className={styles["callout"]} role="note">
            <h2>{advice.title}</h2>
            <p>{advice.explanation}</p>
            {advice.advice !== null && <p>{advice.advice}</p>}
            <code>
              {entry.failure.code}: {entry.failure.message}
            </code>
            {advice.link !== null && <Link href={advice.link.to}>{advice.link.label}</Link>}
          </div>
        </div>
      </section>
    );
  }
  return (
    <section className={styles["side"]} aria-label="Response">
      <p className={styles["body"]}>
        {entry.state === "pending" ? (
          <>
            <Spinner label="Waiting" /> <span className={styles["quiet"]}>Waiting for the response</span>
          </>
        ) : (
          <span className={styles["quiet"]}>No response.</span>
        )}
      </p>
    </section>
  );
}

type Mode = "changes" | "original";

interface Compared {
  readonly title: string;
  readonly before: MessageLines | null;
  readonly after: MessageLines | null;
}

async function compared(id: string, signal: AbortSignal): Promise<readonly Compared[]> {
  const entry = await api.traffic.getTraffic({ params: { id }, signal });
  const lines = (message: TrafficEntry["request"] | TrafficEntry["response"]) =>
    message === null ? Promise.resolve(null) : messageLines(message);
  return [
    {
      title: "Request",
      before: await lines(entry.original_request ?? entry.request),
      after: await lines(entry.request),
    },
    {
      title: "Response",
      before: await lines(entry.original_response ?? entry.response),
      after: await lines(entry.response),
    },
  ];
}

/** Changes by rules to an entry's messages: the differences, or the original messages. */
function ChangesView({ entry, mode }: { readonly entry: TrafficEntry; readonly mode: Mode }) {
  const query = useQuery({
    queryKey: ["entry", entry.id, "changes", entry.state],
    queryFn: ({ signal }) => compared(entry.id, signal),
  });
  if (query.error !== null) return <ErrorState title="Could not load the messages" error={query.error} />;
  if (query.data === undefined) return <EmptyState icon={<Spinner />} title="" />;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className={styles["changes"]} tabIndex={0} role="group" aria-label="Changes by rules">
      {query.data.map((side) => (
        <section key={side.title}>
          <h2>{side.title}</h2>
          {mode === "changes" ? <Difference side={side} /> : <Before side={side} />}
        </section>
      ))}
    </div>
  );
}

function Difference({ side: { title, before, after } }: { readonly side: Compared }) {
  if (after === null && before === null) return <p className={styles["none"]}>No message.</p>;
  const note = before?.note ?? after?.note ?? null;
  return (
    <>
      <DiffView
        label={`${title}: changes`}
        same="No changes."
        left={[...(before?.head ?? []), "", ...(before?.body ?? [])]}
        right={[...(after?.head ?? []), "", ...(after?.body ?? [])]}
      />
      {note !== null && <p className={styles["quiet"]}>{note}</p>}
    </>
  );
}

function Before({ side: { before } }: { readonly side: Compared }) {
  if (before === null) return <p className={styles["none"]}>No message.</p>;
  return (
    <>
      <pre className={styles["original"]}>{[...before.head, "", ...before.body].join("\n")}</pre>
      {before.note !== null && <p className={styles["quiet"]}>{before.note}</p>}
    </>
  );
}
