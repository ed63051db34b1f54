import type { WsPaused } from "@headworks/capture-contract";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { keysOf, useAction } from "../../shell/actions.ts";
import { attempt } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { TextArea } from "../../ui/field.tsx";
import { KeyHint } from "../../ui/tag.tsx";
import { Arrow } from "./frame-list.tsx";
import styles from "./streams.module.css";
import { wsPausedQuery } from "../../queries.ts";

/** Number of paused messages on all connections; links to the connection of the oldest. */
export function WsWaiting({ onShow }: { readonly onShow: (id: string) => void }) {
  const { data: paused = [] } = useQuery(wsPausedQuery);
  const [oldest] = paused;
  if (oldest === undefined) return null;
  return (
    <Button className={styles["waiting"]} onClick={() => onShow(oldest.connection_id)}>
      {paused.length === 1 ? "1 message paused" : `${paused.length} messages paused`}
    </Button>
  );
}

/** Paused messages of a connection; the oldest can be edited. */
export function WsPausedMessages({ connectionId }: { readonly connectionId: string }) {
  const { data = [] } = useQuery(wsPausedQuery);
  const paused = data.filter((each) => each.connection_id === connectionId);
  const [oldest] = paused;
  if (oldest === undefined) return null;
  return <Decision key={oldest.id} message={oldest} more={paused.length - 1} />;
}

function Decision({ message, more }: { readonly message: WsPaused; readonly more: number }) {
  const client = useQueryClient();
  const isText = message.payload.text !== undefined;
  const before = message.payload.text ?? message.payload.raw_base64 ?? "";
  const [content, setContent] = useState(before);
  const [busy, setBusy] = useState(false);
  const isChanged = content !== before;
  const decide = async (action: "allow" | "modify" | "drop"): Promise<void> => {
    setBusy(true);
    const changed = isText ? { text: content } : { base64: content.trim() };
    await attempt("Could not apply the decision", () =>
      api["ws-traffic"].resumeWsMessage({
        params: { id: message.id },
        body: { action, ...(action === "modify" ? changed : {}) },
      }),
    );
    setBusy(false);
    await client.invalidateQueries({ queryKey: wsPausedQuery.queryKey });
  };
  useAction("paused.allow", () => void decide("allow"));
  useAction("paused.reject", () => void decide("drop"));
  useAction("paused.send", () => void decide(isChanged ? "modify" : "allow"));
  return (
    <section className={styles["paused"]} aria-label="Paused message">
      <p className={styles["facts"]}>
        <Arrow direction={message.direction} text={message.direction === "send" ? "To the server" : "To the client"} />
        <b>{message.message_type}</b>
        <span>paused by {message.rule_name}</span>
        {more > 0 && <span>{more} more queued</span>}
      </p>
      <TextArea
        mono
        rows={4}
        aria-label={isText ? "Content of the paused message" : "Content of the paused message in base64"}
        value={content}
        onChange={(event) => setContent(event.target.value)}
      />
      <div className={styles["pausedTools"]} role="toolbar" aria-label="Decision">
        {isChanged && (
          <Button variant="primary" disabled={busy} onClick={() => void decide("modify")}>
            Send edited
          </Button>
        )}
        <Button variant={isChanged ? "default" : "primary"} disabled={busy} onClick={() => void decide("allow")}>
          {isChanged ? "Continue unmodified" : "Continue"} <KeyHint keys={keysOf("paused.allow")} />
        </Button>
        <Button variant="danger" disabled={busy} onClick={() => void decide("drop")}>
          Drop <KeyHint keys={keysOf("paused.reject")} />
        </Button>
      </div>
    </section>
  );
}
