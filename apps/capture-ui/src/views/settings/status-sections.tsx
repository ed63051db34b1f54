import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, errorText } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { formatBytes, formatCount, formatDateTime } from "../../ui/format.ts";
import { Spinner } from "../../ui/states.tsx";
import {
  archivesText,
  autoSaveStatus,
  lastSnapshotText,
  logStatus,
  mirrorStatus,
  type Status,
  trafficLogText,
} from "./section-status.ts";
import { Fact, Facts, LiveSection, Problem, SectionActions, StatusLine } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";

/** Counters change with traffic. */
const REFRESH_MS = 5000;

/** Settings of a part of the service below its live status. `topic` is the first part of the query key. */
function StatusSection<Data>({
  group,
  topic,
  load,
  version,
  statusOf,
  children,
}: {
  readonly group: SettingGroup;
  readonly topic: string;
  readonly load: (options: { readonly signal: AbortSignal }) => Promise<Data>;
  /** The values whose change refetches the status: the saved or the running ones. */
  readonly version: "value" | "running";
  readonly statusOf: (data: Data) => Status;
  readonly children: (data: Data) => ReactNode;
}) {
  // Saved settings must show immediately, not with the next refresh.
  const key = group.fields.map((field) => JSON.stringify(field[version])).join(" ");
  const query = useQuery<Data>({
    queryKey: [topic, key],
    queryFn: ({ signal }) => load({ signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  });
  return (
    <LiveSection id={group.id} title={group.title} query={query}>
      {(data) => {
        const status = statusOf(data);
        return (
          <>
            <StatusLine tone={status.tone}>{status.text}</StatusLine>
            {children(data)}
            <ConfigForm group={group} />
          </>
        );
      }}
    </LiveSection>
  );
}

/** Snapshots of the active session. */
export function AutoSaveSection({ group }: { readonly group: SettingGroup }) {
  return (
    <StatusSection
      group={group}
      topic="autosave"
      load={api.autosave.getAutosave}
      version="value"
      statusOf={autoSaveStatus}
    >
      {(data) => (
        <>
          {data.last_error !== null && <Problem>{data.last_error}</Problem>}
          <Facts>
            <Fact name="Newest snapshot">{lastSnapshotText(data)}</Fact>
            {data.last_snapshot_path !== null && (
              <Fact name="File">
                <code>{data.last_snapshot_path}</code>
              </Fact>
            )}
            <Fact name="Snapshots since start">{formatCount(data.snapshots_written)}</Fact>
            <Fact name="Failed since start" bad={data.snapshots_failed > 0}>
              {formatCount(data.snapshots_failed)}
            </Fact>
            {data.cycles_missed > 0 && (
              <Fact name="Skipped while another was being written" bad>
                {formatCount(data.cycles_missed)}
              </Fact>
            )}
            {data.last_rotation !== null && (
              <Fact name="Last new session">{formatDateTime(Date.parse(data.last_rotation))}</Fact>
            )}
            <Fact name="Directory">
              <code>{data.output_dir}</code>
            </Fact>
          </Facts>
          <SaveNow />
        </>
      )}
    </StatusSection>
  );
}

function SaveNow() {
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: () => api.autosave.saveSnapshot({}),
    onSettled: async () => await client.invalidateQueries({ queryKey: ["autosave"] }),
  });
  return (
    <SectionActions>
      <Button
        onClick={() => save.mutate()}
        disabled={save.isPending}
        icon={save.isPending ? <Spinner label="Saving" /> : undefined}
      >
        Save snapshot now
      </Button>
      {save.data !== undefined && (
        <span className={styles["quiet"]} role="status">
          Saved {formatCount(save.data.entries)} {save.data.entries === 1 ? "request" : "requests"} as{" "}
          {save.data.path.split(/[\\/]/u).at(-1)} ({formatBytes(save.data.size_bytes)})
        </span>
      )}
      {save.error !== null && <Problem>{errorText(save.error)}</Problem>}
    </SectionActions>
  );
}

export function MirrorSection({ group }: { readonly group: SettingGroup }) {
  return (
    <StatusSection group={group} topic="mirror" load={api.mirror.getMirror} version="running" statusOf={mirrorStatus}>
      {(data) => (
        <>
          {data.enabled && !data.writing && data.last_error !== null && <Problem>{data.last_error}</Problem>}
          <Facts>
            <Fact name="Files written since start">{formatCount(data.files_written)}</Fact>
            <Fact name="Bytes written since start">{formatBytes(data.bytes_written)}</Fact>
            <Fact name="Queued">{formatCount(data.queued_files)}</Fact>
            <Fact name="Files dropped since start" bad={data.files_dropped > 0}>
              {formatCount(data.files_dropped)}
            </Fact>
            {data.last_error !== null && data.last_error_at !== null && (
              <Fact name="Last dropped">
                {formatDateTime(Date.parse(data.last_error_at))}: {data.last_error}
              </Fact>
            )}
            <Fact name="Directory">
              <code>{data.output_dir}</code>
            </Fact>
          </Facts>
        </>
      )}
    </StatusSection>
  );
}

export function LogsSection({ group }: { readonly group: SettingGroup }) {
  return (
    <StatusSection group={group} topic="logs" load={api.logs.getLogs} version="value" statusOf={logStatus}>
      {(data) => {
        const lost = data.async.dropped_events + data.traffic_events.dropped;
        return (
          <>
            {data.problem !== null && <Problem>{data.problem}</Problem>}
            <Facts>
              {data.current_file !== null && <Fact name="File size">{formatBytes(data.current_file.size_bytes)}</Fact>}
              <Fact name="Archived files">{archivesText(data)}</Fact>
              <Fact name="Lines written since start">{formatCount(data.async.written_events)}</Fact>
              <Fact name="Lines lost since start" bad={lost > 0}>
                {formatCount(lost)}
              </Fact>
              <Fact name="Logged traffic">{trafficLogText(data)}</Fact>
            </Facts>
            {data.current_file !== null && <LogActions />}
          </>
        );
      }}
    </StatusSection>
  );
}

/** Rotates the log and shows its last lines on request. */
function LogActions() {
  const client = useQueryClient();
  const rotate = useMutation({
    mutationFn: () => api.logs.rotateLogs({}),
    onSettled: async () => await client.invalidateQueries({ queryKey: ["logs"] }),
  });
  const tail = useMutation({ mutationFn: () => api.logs.tailLogs({ query: { limit: 50 } }) });
  const problem = rotate.error ?? tail.error;
  return (
    <>
      <SectionActions>
        <Button onClick={() => rotate.mutate()} disabled={rotate.isPending}>
          Rotate now
        </Button>
        <Button onClick={() => tail.mutate()} disabled={tail.isPending}>
          {tail.data === undefined ? "Show last lines" : "Refresh last lines"}
        </Button>
        {rotate.data !== undefined && (
          <span className={styles["quiet"]} role="status">
            Archived as {rotate.data.rotated_to.split(/[\\/]/u).at(-1)}
          </span>
        )}
      </SectionActions>
      {problem !== null && <Problem>{errorText(problem)}</Problem>}
      {tail.data !== undefined && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
        <pre className={styles["logLines"]} tabIndex={0} role="region" aria-label="Last log lines">
          {tail.data.lines.length === 0 ? "The file is empty" : tail.data.lines.join("\n")}
        </pre>
      )}
    </>
  );
}
