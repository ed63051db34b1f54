import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Copy } from "lucide-react";
import type { ReactNode } from "react";
import { api, errorText } from "../../api.ts";
import { configQuery, fieldsQuery, statsQuery } from "../../queries.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { formatBytes, formatCount, formatDateTime } from "../../ui/format.ts";
import { Card } from "../../ui/page.tsx";
import { Spinner } from "../../ui/states.tsx";
import {
  archivesText,
  autoSaveStatus,
  lastSnapshotText,
  logStatus,
  mirrorStatus,
  socksAddress,
  socksStatus,
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

export function SocksSection({ group }: { readonly group: SettingGroup }) {
  const fields = useQuery(fieldsQuery).data ?? [];
  const config = useQuery(configQuery);
  const status = socksStatus(fields);
  const address = socksAddress(fields, config.data?.shown_host ?? "127.0.0.1");
  return (
    <Card id={group.id} title={group.title}>
      <div className={styles["section"]}>
        <StatusLine tone={status.tone}>{status.text}</StatusLine>
        {address?.isOpen === true && (
          <Problem>
            Any host that can reach this machine can use this proxy. Set a user name and password, or restrict Allowed
            clients under Listeners.
          </Problem>
        )}
        {address !== null && (
          <Facts>
            <Fact name="Client address">
              <span className={styles["copied"]}>
                <code>{address.url}</code>
                <IconButton
                  label="Copy SOCKS address"
                  icon={<Copy size={13} />}
                  onClick={() => void copyText(address.url, "SOCKS address")}
                />
              </span>
            </Fact>
          </Facts>
        )}
        <p className={styles["quiet"]}>
          SOCKS traffic is forwarded without being decoded; each connection is recorded with destination, duration and
          size.
        </p>
        <ConfigForm group={group} />
      </div>
    </Card>
  );
}

export function StorageCard() {
  const stats = useQuery({ ...statsQuery, refetchInterval: 5000 });
  return (
    <LiveSection id="storage" title="Storage" query={stats}>
      {(data) => (
        <>
          {!data.storage_ok && <Problem>Traffic is not being stored: {data.storage_problem ?? "see the log"}</Problem>}
          <div className={styles["bars"]}>
            <Bar
              label="Requests in the active session"
              value={data.entry_count}
              max={data.max_entries}
              text={formatCount}
            />
            <Bar
              label="Stored bodies in the active session"
              value={data.total_size_bytes}
              max={data.max_total_size_bytes}
              text={formatBytes}
            />
          </div>
          <Facts>
            <Fact name="On disk, all sessions">{formatBytes(data.store_size_bytes)}</Fact>
            <Fact name="Stored bytes per body">at most {formatBytes(data.max_body_size)}</Fact>
            <Fact name="Bodies not stored since start" bad={data.bodies_not_stored > 0}>
              {formatCount(data.bodies_not_stored)}
            </Fact>
            <Fact name="Requests lost since start" bad={data.entries_lost > 0}>
              {formatCount(data.entries_lost)}
            </Fact>
          </Facts>
        </>
      )}
    </LiveSection>
  );
}

function Bar({
  label,
  value,
  max,
  text,
}: {
  readonly label: string;
  readonly value: number;
  readonly max: number;
  readonly text: (value: number) => string;
}) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  return (
    <div className={styles["bar"]}>
      <span>{label}</span>
      <span className={styles["barText"]}>
        <b>{text(value)}</b> {max > 0 ? `of ${text(max)}` : "no limit"}
      </span>
      <span
        className={styles["barTrack"]}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={Math.max(1, max, value)}
        aria-valuenow={value}
      >
        <i style={{ width: `${share * 100}%` }} data-full={share > 0.9 || undefined} />
      </span>
    </div>
  );
}
