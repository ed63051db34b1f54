import type { ReplayResult } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { Link } from "../../shell/link.tsx";
import { formatBytes, formatDuration } from "../../ui/format.ts";
import { Tag } from "../../ui/tag.tsx";
import { messageLines } from "../detail/changes/decoded-message.ts";
import styles from "./replay.module.css";

/** What one replay gave. */
export function Outcome({ result }: { readonly result: ReplayResult }) {
  const { response } = result;
  const lines = useQuery({
    queryKey: ["replay", "outcome", result.id],
    queryFn: () => (response === null ? null : messageLines(response)),
    staleTime: Infinity,
  });
  return (
    <section className={styles["outcome"]} aria-label="What came back">
      <div className={styles["outcomeHead"]} role="status">
        {response === null ? (
          <Tag tone="error">{result.error_code ?? "failed"}</Tag>
        ) : (
          <Tag tone={response.status_code >= 400 ? "warning" : "ok"}>{response.status_code}</Tag>
        )}
        <span>{response === null ? result.error : (response.status_message ?? "")}</span>
        <span className={styles["quiet"]}>{formatDuration(result.duration_ms)}</span>
        {response !== null && <span className={styles["quiet"]}>{formatBytes(response.body_size)}</span>}
        {result.redirects.length > 0 && (
          <span className={styles["quiet"]}>
            after {result.redirects.length === 1 ? "1 redirect" : `${result.redirects.length} redirects`}
          </span>
        )}
        <span className={styles["grow"]} />
        {result.entry_id !== null && <Link href={`/traffic?id=${result.entry_id}`}>Show in the traffic</Link>}
        {result.source_entry_id !== null && (
          <Link href={`/replay?left=${result.source_entry_id}&right=${result.id}`}>Compare with the original</Link>
        )}
      </div>
      {lines.data != null && <pre>{[...lines.data.head, "", ...lines.data.body.slice(0, 2000)].join("\n")}</pre>}
      {lines.data?.note != null && <p className={styles["quiet"]}>{lines.data.note}</p>}
    </section>
  );
}
