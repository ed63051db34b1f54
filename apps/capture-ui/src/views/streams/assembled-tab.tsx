import { readJson } from "@headworks/json";
import type { AssembledChat, AssembledStream, StreamDetail } from "@headworks/capture-contract";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Copy, Wrench } from "lucide-react";
import { useEffect } from "react";
import { api } from "../../api.ts";
import { listenLive } from "../../live.ts";
import { IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { formatBytes, formatCount } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import styles from "./streams.module.css";
import { throttled } from "./paged-rows.ts";

const REFRESH_MS = 500;
const FORMATS: Readonly<Record<AssembledChat["format"], string>> = {
  "openai-chat": "Chat completions",
  "openai-responses": "Responses",
  anthropic: "Anthropic messages",
  google: "Google generateContent",
  ollama: "Ollama",
};

/** The assembled content of a stream, also while it is open. */
export function AssembledTab({ stream }: { readonly stream: StreamDetail }) {
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
