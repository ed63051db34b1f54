import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { formatCount, formatDuration, formatTimeOfDay } from "../../ui/format.ts";
import { EmptyState, ErrorState } from "../../ui/states.tsx";
import { Stats } from "../../ui/stats.tsx";
import styles from "./mocks.module.css";

/** What a mock answered lately. */
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
  if (history.error !== null) return <ErrorState title="The hits cannot be loaded" error={history.error} />;
  if (history.data?.length === 0) {
    return (
      <EmptyState title="It has answered nothing lately">The last 1,000 answers of all mocks are kept.</EmptyState>
    );
  }
  return (
    <div className={styles["panel"]}>
      {stats.data !== undefined && (
        <Stats
          figures={[
            ["Answers", formatCount(stats.data.total_hits)],
            ["Fastest", formatDuration(stats.data.min_response_time_ms)],
            ["On average", formatDuration(stats.data.avg_response_time_ms)],
            ["Slowest", formatDuration(stats.data.max_response_time_ms)],
          ]}
        />
      )}
      <table className={styles["hits"]} aria-label="Answers">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Request</th>
            <th scope="col">Status</th>
            <th scope="col">Took</th>
          </tr>
        </thead>
        <tbody>
          {history.data?.map((hit, index) => (
            <tr key={`${index}`}>
              <td>{formatTimeOfDay(Date.parse(hit.timestamp))}</td>
              <td>
                {hit.request_method} {hit.request_url}
              </td>
              <td>
                {hit.response_status}
                {hit.response_index !== null && ` (answer ${hit.response_index + 1})`}
              </td>
              <td>{formatDuration(hit.response_time_ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
