import type { AssembledChat, AssembledStream, StreamDetail } from "@headworks/capture-contract";
import { closeCodeText } from "@headworks/http-fields";
import { readJson } from "@headworks/json";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ArrowLeft, Copy, Rows3, Send, Unplug, Wrench } from "lucide-react";
import { useEffect, useState } from "react";
import { api, ApiFailure } from "../../api.ts";
import { listenLive } from "../../live.ts";
import { wsConnectionQuery } from "../../queries.ts";
import { useAction } from "../../shell/actions.ts";
import { navigate } from "../../shell/router.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { Select, TextArea } from "../../ui/field.tsx";
import { formatBytes, formatCount, formatDateTime, formatDuration } from "../../ui/format.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { SplitPane } from "../../ui/split-pane.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Tag } from "../../ui/tag.tsx";
import { attempt } from "../../ui/toast.tsx";
import { HeaderList } from "../detail/headers/header-list.tsx";
import { FrameDetail } from "./frame-detail.tsx";
import { FrameList } from "./frame-list.tsx";
import { KIND_LABELS } from "./frame-text.ts";
import { CallStatus, useCall } from "./grpc-calls.tsx";
import { throttled } from "./paged-rows.ts";
import styles from "./streams.module.css";
import { useStream } from "./use-stream.ts";
import { WsPausedMessages } from "./ws-paused.tsx";

/** Close code of a WebSocket without a close frame (RFC 6455, 7.1.5). */
const ABNORMAL_CLOSURE = 1006;

type PaneTab = "messages" | "assembled" | "fields";

export function StreamPane({
  id,
  frame,
  onFrame,
  onBack,
}: {
  readonly id: string;
  readonly frame: number | null;
  readonly onFrame: (ordinal: number | null) => void;
  /** Set if the list is not shown beside the stream. */
  readonly onBack: (() => void) | undefined;
}) {
  const query = useStream(id);
  if (query.error instanceof ApiFailure && query.error.status === 404) {
    return (
      <EmptyState title="This stream no longer exists">
        It was deleted with its request, or removed to make room for newer requests.
      </EmptyState>
    );
  }
  if (query.error !== null && query.data === undefined) {
    return <ErrorState title="Could not load the stream" error={query.error} onRetry={() => void query.refetch()} />;
  }
  if (query.data === undefined) return <EmptyState title="Loading stream" icon={<Spinner />} />;
  return (
    <section className={styles["pane"]} aria-label="Stream">
      <Headline stream={query.data} onBack={onBack} />
      <StreamTabs stream={query.data} frame={frame} onFrame={onFrame} />
    </section>
  );
}

/** The messages of a stream, and the selected one below. */
export function Messages({
  stream,
  frame,
  hasKeys = true,
  onFrame,
}: {
  readonly stream: StreamDetail;
  readonly frame: number | null;
  /** False if another list handles the keys. */
  readonly hasKeys?: boolean;
  readonly onFrame: (ordinal: number | null) => void;
}) {
  const [share, setShare] = useState(0.55);
  useAction("close", frame === null ? undefined : () => onFrame(null));
  const split = (
    <SplitPane
      label="Resize message list"
      direction="column"
      share={share}
      onShareChange={setShare}
      minPx={120}
      first={<FrameList key={stream.id} stream={stream} chosen={frame} hasKeys={hasKeys} onChoose={onFrame} />}
      second={
        frame === null ? null : <FrameDetail streamId={stream.id} ordinal={frame} onClose={() => onFrame(null)} />
      }
    />
  );
  if (stream.kind !== "websocket") return split;
  return (
    <div className={styles["stack"]}>
      <WsPausedMessages connectionId={stream.id} />
      <div className={styles["rest"]}>{split}</div>
      <WsComposer stream={stream} />
    </div>
  );
}

const TABS: readonly PaneTab[] = ["messages", "assembled", "fields"];

function StreamTabs({
  stream,
  frame,
  onFrame,
}: {
  readonly stream: StreamDetail;
  readonly frame: number | null;
  readonly onFrame: (ordinal: number | null) => void;
}) {
  const [tab, setTab] = useState<PaneTab>("messages");
  // gRPC frames cannot be assembled into text.
  const shown = TABS.filter((each) => each !== "assembled" || stream.kind !== "grpc");
  const step = (by: number): void => {
    setTab(shown[(shown.indexOf(tab) + by + shown.length) % shown.length] ?? "messages");
  };
  useAction("detail.previousTab", () => step(-1));
  useAction("detail.nextTab", () => step(1));
  const specs = {
    messages: {
      value: "messages",
      label: "Messages",
      count: formatCount(stream.frames_sent + stream.frames_received),
      content: () => <Messages stream={stream} frame={frame} onFrame={onFrame} />,
    },
    assembled: { value: "assembled", label: "Assembled", content: () => <AssembledTab stream={stream} /> },
    fields: { value: "fields", label: "Headers", content: () => <Fields stream={stream} /> },
  } as const;
  return <Tabs label="Stream views" value={tab} onChange={setTab} tabs={shown.map((name) => specs[name])} />;
}

function Headline({ stream, onBack }: { readonly stream: StreamDetail; readonly onBack: (() => void) | undefined }) {
  const lastedMs = stream.closed_at === null ? null : Date.parse(stream.closed_at) - Date.parse(stream.created_at);
  const call = useCall(stream.id, stream.kind === "grpc", `${stream.state} ${stream.frames_received}`);
  return (
    <header className={styles["head"]}>
      {onBack !== undefined && (
        <IconButton label="Back to list" keys="Esc" icon={<ArrowLeft size={16} />} onClick={onBack} />
      )}
      <h2>{stream.url}</h2>
      <span className={styles["headTools"]}>
        <IconButton label="Copy URL" icon={<Copy size={14} />} onClick={() => void copyText(stream.url, "URL")} />
        <IconButton
          label="Show in Traffic"
          icon={<Rows3 size={14} />}
          onClick={() => navigate(`/traffic?id=${stream.id}`)}
        />
      </span>
      <p className={styles["facts"]}>
        <Tag>{KIND_LABELS[stream.kind]}</Tag>
        <Tag tone={stream.state === "open" ? "ok" : "neutral"}>{stream.state}</Tag>
        <span>{formatDateTime(Date.parse(stream.created_at))}</span>
        {call !== undefined && <CallStatus call={call} />}
        {call !== undefined && call.status_message !== "" && call.status_message !== call.status_name && (
          <span>{call.status_message}</span>
        )}
        {call !== undefined && call.issues.length > 0 && <span>{call.issues.join("; ")}</span>}
        {call !== undefined && <span>{call.message_type}</span>}
        {lastedMs !== null && <span>{formatDuration(Math.max(0, lastedMs))}</span>}
        <span>
          {formatCount(stream.frames_sent)} ↑ {formatBytes(stream.bytes_sent)}
        </span>
        <span>
          {formatCount(stream.frames_received)} ↓ {formatBytes(stream.bytes_received)}
        </span>
        {stream.subprotocol !== null && <Tag tone="neutral">{stream.subprotocol}</Tag>}
        {call === undefined && <CloseFact stream={stream} />}
        {stream.frames_not_stored > 0 && (
          <Tag tone="warning">{formatCount(stream.frames_not_stored)} messages not stored</Tag>
        )}
        {(call === undefined ? Object.entries(stream.attributes) : []).map(([name, value]) => (
          <span key={name} className={styles["fact"]} title={value}>
            {name}: {value}
          </span>
        ))}
      </p>
    </header>
  );
}

/** How a stream other than a call ended: WebSocket close code, or failure. */
function CloseFact({ stream: { close_code: code, close_reason: reason } }: { readonly stream: StreamDetail }) {
  const text = code === null ? (reason ?? "") : `closed with ${closeCodeText(code, reason ?? "")}`;
  if (text === "") return null;
  const isAbnormal = code === null || code === ABNORMAL_CLOSURE;
  return isAbnormal ? <Tag tone="warning">{text}</Tag> : <span>{text}</span>;
}

function Fields({ stream }: { readonly stream: StreamDetail }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className={styles["fields"]} tabIndex={0} role="region" aria-label="Headers">
      <HeaderList title="Request" headers={stream.request_headers} trailers={undefined} />
      {stream.response_headers !== null && (
        <HeaderList title="Response" headers={stream.response_headers} trailers={undefined} />
      )}
    </div>
  );
}

type Form = "text" | "binary" | "ping";

/** Sends messages on an open WebSocket connection in either direction, and closes it. */
function WsComposer({ stream }: { readonly stream: StreamDetail }) {
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
    const done = await attempt("Could not send the message", () =>
      api["ws-traffic"].sendWsMessage({ params: { id: stream.id }, body }),
    );
    setBusy(false);
    if (done) setContent("");
  };
  const close = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Close this connection?",
      text: "A close frame is sent to both client and server.",
      action: "Close connection",
    });
    if (!sure) return;
    await attempt("Could not close the connection", () =>
      api["ws-traffic"].closeWsConnection({ params: { id: stream.id }, body: {} }),
    );
  };
  return (
    <form
      className={styles["composer"]}
      aria-label="Send message"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div className={styles["composerHead"]}>
        <Segmented
          label="Direction"
          value={direction}
          options={[
            { value: "send", label: "To the server" },
            { value: "receive", label: "To the client" },
          ]}
          onChange={setDirection}
        />
        <span className={styles["choose"]}>
          <Select
            aria-label="Message type"
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
          aria-label="Message content"
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

const REFRESH_MS = 500;
const FORMATS: Readonly<Record<AssembledChat["format"], string>> = {
  "openai-chat": "Chat completions",
  "openai-responses": "Responses",
  anthropic: "Anthropic messages",
  google: "Google generateContent",
  ollama: "Ollama",
};

/** The assembled content of a stream, also while it is open. */
function AssembledTab({ stream }: { readonly stream: StreamDetail }) {
  const client = useQueryClient();
  const { id } = stream;
  const query = useQuery({
    queryKey: ["assembled", id],
    queryFn: ({ signal }) => api.streams.assembleStream({ params: { id }, signal }),
  });
  useEffect(() => {
    const refresh = throttled(() => void client.invalidateQueries({ queryKey: ["assembled", id] }), REFRESH_MS);
    const stop = listenLive({
      frames: (frames) => {
        if (frames.some((frame) => frame.stream_id === id)) refresh.trigger();
      },
      framesMissed: refresh.trigger,
    });
    return () => {
      stop();
      refresh.stop();
    };
  }, [client, id]);
  if (query.error !== null) {
    return (
      <ErrorState title="Could not assemble the stream" error={query.error} onRetry={() => void query.refetch()} />
    );
  }
  if (query.data === undefined) return <EmptyState title="Assembling the stream" icon={<Spinner />} />;
  const { data } = query;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className={styles["assembled"]} tabIndex={0} role="region" aria-label="Assembled">
      {data.truncated && <p className={styles["notice"]}>Truncated: the stream is longer than the assembled part.</p>}
      {data.chat === null ? <PlainText stream={data} /> : <Chat chat={data.chat} isOpen={stream.state !== "closed"} />}
      {data.events.length > 0 && <EventCounts events={data.events} />}
    </div>
  );
}

function Chat({ chat, isOpen }: { readonly chat: AssembledChat; readonly isOpen: boolean }) {
  return (
    <>
      <p className={styles["facts"]}>
        <Tag>{FORMATS[chat.format]}</Tag>
        {chat.model !== null && <b>{chat.model}</b>}
        {!chat.complete && <Tag tone={isOpen ? "neutral" : "warning"}>{isOpen ? "in progress" : "incomplete"}</Tag>}
        {chat.usage !== null && <Usage usage={chat.usage} />}
        {chat.id !== null && <span className={styles["fact"]}>{chat.id}</span>}
      </p>
      {chat.error !== null && (
        <p className={styles["problem"]} role="note">
          {chat.error}
        </p>
      )}
      {chat.choices.map((choice) => (
        <Choice key={choice.index} choice={choice} isOnly={chat.choices.length === 1} />
      ))}
    </>
  );
}

function Usage({ usage }: { readonly usage: NonNullable<AssembledChat["usage"]> }) {
  const parts: readonly (readonly [string, number | null])[] = [
    ["in", usage.input_tokens],
    ["cached", usage.cached_input_tokens],
    ["out", usage.output_tokens],
    ["thought", usage.reasoning_tokens],
    ["total", usage.total_tokens],
  ];
  const counts = parts.flatMap(([name, count]) => (count === null ? [] : [`${formatCount(count)} ${name}`]));
  return <span title="Tokens, as reported by the provider">{counts.join(" · ")} tokens</span>;
}

function Choice({ choice, isOnly }: { readonly choice: AssembledChat["choices"][number]; readonly isOnly: boolean }) {
  return (
    <section className={styles["choice"]} aria-label={isOnly ? "Response" : `Response ${choice.index + 1}`}>
      {!isOnly && <h3>Response {choice.index + 1}</h3>}
      {choice.reasoning !== "" && (
        <details className={styles["thought"]}>
          <summary>Reasoning</summary>
          <p>{choice.reasoning}</p>
        </details>
      )}
      {choice.text !== "" && (
        <div className={styles["said"]}>
          <p>{choice.text}</p>
          <IconButton label="Copy text" icon={<Copy size={14} />} onClick={() => void copyText(choice.text, "Text")} />
        </div>
      )}
      {choice.refusal !== "" && <p className={styles["problem"]}>{choice.refusal}</p>}
      {choice.tool_calls.map((call, index) => (
        // Calls keep their order, so the index identifies them.
        <div key={`${index}`} className={styles["call"]}>
          <h4>
            <Wrench size={13} aria-hidden /> {call.name === "" ? "unnamed" : call.name}
            {call.id !== null && <span className={styles["fact"]}>{call.id}</span>}
          </h4>
          <pre>{prettyJson(call.arguments)}</pre>
        </div>
      ))}
      {choice.finish_reason !== null && (
        <p className={styles["quiet"]}>
          Finish reason <code>{choice.finish_reason}</code>
        </p>
      )}
    </section>
  );
}

/** Indented arguments; incomplete or invalid JSON is unchanged. */
function prettyJson(text: string): string {
  try {
    return JSON.stringify(readJson(text), null, 2);
  } catch {
    return text;
  }
}

function PlainText({ stream }: { readonly stream: AssembledStream }) {
  if (stream.text === "") return <p className={styles["none"]}>No text received.</p>;
  return (
    <div className={styles["said"]}>
      <pre>{stream.text}</pre>
      <IconButton label="Copy text" icon={<Copy size={14} />} onClick={() => void copyText(stream.text, "Text")} />
    </div>
  );
}

function EventCounts({ events }: { readonly events: AssembledStream["events"] }) {
  return (
    <DataTable
      label="Events by type"
      className={styles["counts"]}
      titles={["Type", "Messages", "Size"]}
      rows={events.map(({ name, count, bytes }) => [name, formatCount(count), formatBytes(bytes)])}
    />
  );
}
