import type { StreamDetail } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { Send, Unplug } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { attempt } from "../../ui/attempt.ts";
import { Button } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { Select, TextArea } from "../../ui/field.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import styles from "./streams.module.css";
import { wsConnectionQuery } from "./ws-queries.ts";

type Form = "text" | "binary" | "ping";

/** Adds messages to an open WebSocket connection, towards either side, and closes it. */
export function WsComposer({ stream }: { readonly stream: StreamDetail }) {
  const { data: connection } = useQuery(wsConnectionQuery(stream.id, stream.state));
  const [direction, setDirection] = useState<"send" | "receive">("send");
  const [form, setForm] = useState<Form>("text");
  const [content, setContent] = useState("");
  const [busy, setBusy] = useState(false);
  if (connection?.can_send !== true) return null;
  const send = async (): Promise<void> => {
    setBusy(true);
    const body = {
      direction,
      message_type: form,
      ...(form === "binary" ? { base64: content.trim() } : { text: content }),
    };
    const done = await attempt("The message was not sent", () =>
      api["ws-traffic"].sendWsMessage({ params: { id: stream.id }, body }),
    );
    setBusy(false);
    if (done) setContent("");
  };
  const close = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Close this connection?",
      text: "Both sides are told that it is over.",
      action: "Close the connection",
    });
    if (!sure) return;
    await attempt("The connection was not closed", () =>
      api["ws-traffic"].closeWsConnection({ params: { id: stream.id }, body: {} }),
    );
  };
  return (
    <form
      className={styles["composer"]}
      aria-label="Add a message"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div className={styles["composerHead"]}>
        <Segmented
          label="Towards"
          value={direction}
          options={[
            { value: "send", label: "To the server" },
            { value: "receive", label: "To the client" },
          ]}
          onChange={setDirection}
        />
        <span className={styles["choose"]}>
          <Select
            aria-label="Kind of message"
            value={form}
            options={[
              { value: "text", label: "Text" },
              { value: "binary", label: "Binary, as base64" },
              { value: "ping", label: "Ping" },
            ]}
            onChange={setForm}
          />
        </span>
        <span className={styles["grow"]} />
        <Button variant="ghost" icon={<Unplug size={14} />} onClick={() => void close()}>
          Close
        </Button>
      </div>
      <div className={styles["composerLine"]}>
        <TextArea
          mono
          rows={2}
          aria-label="Content of the message"
          placeholder={form === "binary" ? "AAEC/w==" : "Message"}
          value={content}
          onChange={(event) => setContent(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            void send();
          }}
        />
        <Button type="submit" variant="primary" icon={<Send size={14} />} disabled={busy} title="Ctrl+Enter">
          Send
        </Button>
      </div>
    </form>
  );
}
