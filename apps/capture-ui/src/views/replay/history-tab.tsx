import type { SavedRequest } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { Link } from "../../shell/link.tsx";
import { formatDateTime, formatDuration } from "../../ui/format.ts";
import { attempt } from "../../ui/attempt.ts";
import { Button } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { EmptyState, ErrorState } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import styles from "./replay.module.css";

async function forgetAll(): Promise<void> {
  const sure = await confirmAction({
    title: "Forget all replays?",
    text: "The histories of all saved requests, and what batches measured. Captured entries stay.",
    action: "Forget them",
    danger: true,
  });
  if (!sure) return;
  await attempt("The replays were not forgotten", () => api.replay.clearReplayHistory({}));
  await queryClient.invalidateQueries({ queryKey: ["replay"] });
}

/** Every replay of a saved request, newest first. */
export function HistoryTab({ saved }: { readonly saved: SavedRequest }) {
  const history = useQuery({
    queryKey: ["replay", "history", saved.id],
    queryFn: ({ signal }) =>
      api.replay.listReplayHistory({ query: { saved_request_id: saved.id, limit: 200 }, signal }),
  });
  if (history.error !== null) return <ErrorState title="The history cannot be loaded" error={history.error} />;
  if (history.data?.length === 0) return <EmptyState title="It has not been sent yet" />;
  const list = history.data ?? [];
  return (
    <div className={styles["panel"]}>
      <table className={styles["table"]} aria-label="Replays">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Request</th>
            <th scope="col">Outcome</th>
            <th scope="col">Took</th>
            <th scope="col">Look</th>
          </tr>
        </thead>
        <tbody>
          {list.map((result, index) => {
            const original = result.source_entry_id ?? list[index + 1]?.id;
            return (
              <tr key={result.id}>
                <td>{formatDateTime(Date.parse(result.executed_at))}</td>
                <td>
                  <span className={styles["asked"]} title={result.request.url.slice(0, 2000)}>
                    {result.request.method} {result.request.url}
                  </span>
                </td>
                <td>
                  {result.response === null ? (
                    <Tag tone="error">{result.error_code ?? "failed"}</Tag>
                  ) : (
                    <Tag tone={result.response.status_code >= 400 ? "warning" : "ok"}>
                      {result.response.status_code}
                    </Tag>
                  )}
                </td>
                <td>{formatDuration(result.duration_ms)}</td>
                <td>
                  {result.entry_id !== null && <Link href={`/traffic?id=${result.entry_id}`}>Traffic</Link>}{" "}
                  {original !== undefined && (
                    <Link href={`/replay?left=${original}&right=${result.id}`}>
                      {result.source_entry_id === null ? "Compare with the one before" : "Compare with the original"}
                    </Link>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <div>
        <Button variant="danger" onClick={() => void forgetAll()}>
          Forget all replays
        </Button>
      </div>
    </div>
  );
}
