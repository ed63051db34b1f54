import type { TrafficEntry } from "@headworks/capture-contract";
import { useState } from "react";
import { Link } from "../../shell/link.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { Spinner } from "../../ui/states.tsx";
import { classNames } from "../../ui/class-names.ts";
import { BodyPanel } from "./body/body-panel.tsx";
import type { Side } from "./body/message-side.ts";
import { ChangesView } from "./changes/changes-view.tsx";
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
