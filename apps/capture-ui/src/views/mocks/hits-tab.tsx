import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { attempt } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { formatCount, formatDuration, formatTimeOfDay } from "../../ui/format.ts";
import { EmptyState, ErrorState } from "../../ui/states.tsx";
import { Stats } from "../../ui/stats.tsx";
import styles from "./mocks.module.css";

/** Clears the hit history of all mocks after confirmation. */
export async function clearHits(): Promise<void> {
  const sure = await confirmAction({
    title: "Clear hit history?",
    text: "Clears the hit lists and response times of all mocks. Hit counts and captured requests are kept.",
    action: "Clear",
    danger: true,
  });
  if (!sure) return;
  await attempt("Could not clear the hit history", () => api.mocks.clearMockHistory({}));
  await queryClient.invalidateQueries({ queryKey: ["mocks"] });
}

export function HitsTab({ id }: { readonly id: string }) {
  const stats = useQuery({
    queryKey: ["mocks", "stats", id],
    queryFn: ({ signal }) => api.mocks.getMockStats({ params: { id }, signal }),
    refetchInterval: 5000,
  });
  const history = useQuery({
    queryKey: ["mocks", "history", id],
    queryFn: ({ signal }) => api.mocks.listMockHistory({ params: { id }, query: { limit: 100 }, signal }),
    refetchInterval: 5000,
  });
  if (history.error !== null) return <ErrorState title="Could not load the hits" error={history.error} />;
  if (history.data?.length === 0) {
    return <EmptyState title="No recent hits">The last 1,000 hits across all mocks are kept.</EmptyState>;
  }
  return (
    <div className={styles["panel"]}>
      {stats.data !== undefined && (
        <Stats
          figures={[
            ["Hits", formatCount(stats.data.total_hits)],
            ["Fastest", formatDuration(stats.data.min_response_time_ms)],
            ["Average", formatDuration(stats.data.avg_response_time_ms)],
            ["Slowest", formatDuration(stats.data.max_response_time_ms)],
          ]}
        />
      )}
      <DataTable
        label="Hits"
        className={styles["hits"]}
        titles={["Time", "Request", "Status", "Duration"]}
        rows={(history.data ?? []).map((hit) => [
          formatTimeOfDay(Date.parse(hit.timestamp)),
          `${hit.request_method} ${hit.request_url}`,
          `${hit.response_status}${hit.response_index === null ? "" : ` (response ${hit.response_index + 1})`}`,
          formatDuration(hit.response_time_ms),
        ])}
      />
      <div>
        <Button variant="danger" onClick={() => void clearHits()}>
          Clear hit history of all mocks
        </Button>
      </div>
    </div>
  );
}
