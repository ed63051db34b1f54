import type { ReplayBatch } from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Play, Square } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { formatCount, formatDuration, formatShare } from "../../ui/format.ts";
import { Meter } from "../../ui/meter.tsx";
import { Failed } from "../../rules/rule-editor.tsx";
import { Stats } from "../../ui/stats.tsx";
import styles from "./replay.module.css";

export function BatchTab({
  id,
  variables,
}: {
  readonly id: string;
  readonly variables: Readonly<Record<string, string>>;
}) {
  const [iterations, setIterations] = useState("100");
  const [concurrency, setConcurrency] = useState("4");
  const [delay, setDelay] = useState("");
  const [started, setStarted] = useState<string | null>(null);
  const last = useQuery({
    queryKey: ["replay", "batches", id],
    queryFn: async ({ signal }) => {
      const list = await api.replay.listBatches({ query: { limit: 100 }, signal });
      return list.find((batch) => batch.saved_request_id === id) ?? null;
    },
  });
  const shown = started ?? last.data?.id ?? null;
  const batch = useQuery({
    queryKey: ["replay", "batch", shown],
    queryFn: ({ signal }) => api.replay.getBatch({ params: { id: shown ?? "" }, query: { results_limit: 0 }, signal }),
    enabled: shown !== null,
    refetchInterval: (query) => (query.state.data?.state === "running" ? 300 : false),
  });
  const isRunning = batch.data?.state === "running";
  const start = useMutation({
    mutationFn: () =>
      api.replay.executeBatch({
        params: { id },
        query: {},
        body: {
          iterations: Number(iterations),
          concurrency: Number(concurrency),
          delay_ms: delay.trim() === "" ? null : Number(delay),
          variables: { ...variables },
          wait: false,
        },
      }),
    onSuccess: ({ id: batchId }) => setStarted(batchId),
  });
  const stop = useMutation({
    mutationFn: (batchId: string) => api.replay.cancelBatch({ params: { id: batchId } }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["replay", "batch"] }),
  });
  const whole = [iterations, concurrency].every((text) => /^\d{1,5}$/u.test(text)) && /^\d{0,6}$/u.test(delay);
  return (
    <div className={styles["panel"]}>
      <div className={styles["fields"]}>
        <Field label="Requests" hint="1 to 10,000">
          <TextInput inputMode="numeric" value={iterations} onChange={(event) => setIterations(event.target.value)} />
        </Field>
        <Field label="Concurrency" hint="1 to 100">
          <TextInput inputMode="numeric" value={concurrency} onChange={(event) => setConcurrency(event.target.value)} />
        </Field>
        <Field label="Delay between requests, ms">
          <TextInput
            inputMode="numeric"
            placeholder="0"
            value={delay}
            onChange={(event) => setDelay(event.target.value)}
          />
        </Field>
      </div>
      <div>
        {isRunning && shown !== null ? (
          <Button variant="danger" icon={<Square size={13} />} onClick={() => stop.mutate(shown)}>
            Stop
          </Button>
        ) : (
          <Button
            variant="primary"
            icon={<Play size={14} />}
            disabled={!whole || start.isPending}
            onClick={() => start.mutate()}
          >
            Start batch
          </Button>
        )}
      </div>
      <Failed error={start.error} />
      {batch.data !== undefined && <BatchResult batch={batch.data} />}
    </div>
  );
}

const STATES = {
  running: "Running",
  done: "Done",
  cancelled: "Stopped",
  interrupted: "Interrupted: Weir stopped",
} as const;

function BatchResult({ batch }: { readonly batch: ReplayBatch }) {
  return (
    <>
      <Meter
        value={batch.total}
        max={batch.iterations}
        isProgress
        label="Batch progress"
        text={`${STATES[batch.state]}: ${formatCount(batch.total)} of ${formatCount(batch.iterations)}`}
      />
      <Stats
        figures={[
          ["Succeeded", formatCount(batch.succeeded)],
          ["Failed", formatCount(batch.failed)],
          ["Fastest", formatDuration(batch.min_ms)],
          ["Average", formatDuration(batch.avg_ms)],
          ["p50", formatDuration(batch.p50_ms)],
          ["p90", formatDuration(batch.p90_ms)],
          ["p95", formatDuration(batch.p95_ms)],
          ["p99", formatDuration(batch.p99_ms)],
          ["Slowest", formatDuration(batch.max_ms)],
        ]}
      />
      {batch.histogram.length > 0 && <Histogram bins={batch.histogram} />}
      {Object.keys(batch.statuses).length > 0 && (
        <section className={styles["section"]}>
          <h3>Statuses</h3>
          <DataTable
            label="Statuses"
            className={styles["table"]}
            hasRowTitles
            rows={Object.entries(batch.statuses).map(([status, count]) => [
              status,
              formatCount(count),
              formatShare(count, batch.total),
            ])}
          />
        </section>
      )}
      {batch.errors.length > 0 && (
        <section className={styles["section"]}>
          <h3>Failures</h3>
          <DataTable
            label="Failures"
            className={styles["table"]}
            hasRowTitles
            rows={batch.errors.map(({ code, count, message }) => [code, formatCount(count), message])}
          />
        </section>
      )}
    </>
  );
}

function Histogram({ bins }: { readonly bins: ReplayBatch["histogram"] }) {
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  return (
    <section className={styles["section"]}>
      <h3>Latency distribution</h3>
      <div className={styles["histogram"]} role="img" aria-label={bins.map(binWords).join("; ")}>
        {bins.map((bin) => (
          <i key={bin.from_ms} title={binWords(bin)} style={{ height: `${(bin.count / most) * 100}%` }} />
        ))}
      </div>
      <div className={styles["axis"]} aria-hidden>
        <span>{formatDuration(bins[0]?.from_ms)}</span>
        <span>{formatDuration(bins.at(-1)?.to_ms)}</span>
      </div>
    </section>
  );
}

function binWords(bin: ReplayBatch["histogram"][number]): string {
  return `${formatDuration(bin.from_ms)} to ${formatDuration(bin.to_ms)}: ${formatCount(bin.count)}`;
}
