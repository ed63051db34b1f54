import type { TrafficEntry } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../../api.ts";
import { DiffView } from "../../../ui/diff-view.tsx";
import { EmptyState, ErrorState, Spinner } from "../../../ui/states.tsx";
import styles from "../detail.module.css";
import { messageLines, type MessageLines } from "./decoded-message.ts";

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
export function ChangesView({ entry, mode }: { readonly entry: TrafficEntry; readonly mode: Mode }) {
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
