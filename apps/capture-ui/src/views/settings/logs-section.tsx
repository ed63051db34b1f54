import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { LogStatus } from "@headworks/capture-contract";
import { api, errorText } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { formatBytes, formatCount } from "../../ui/format.ts";
import type { Status } from "./listener-status.ts";
import { Fact, Facts, LiveSection, Problem, SectionActions, StatusLine } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";

const REFRESH_MS = 5000;

/** The log: where it goes and how that does, a new file at once, its last lines, and the settings. */
export function LogsSection({ group }: { readonly group: SettingGroup }) {
  // What was saved below must show at once, not with the next refresh.
  const version = group.fields.map((field) => JSON.stringify(field.value)).join(" ");
  const log = useQuery({
    queryKey: ["logs", version],
    queryFn: ({ signal }) => api.logs.getLogs({ signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: (before) => before,
  });
  return (
    <LiveSection id={group.id} title={group.title} query={log}>
      {(data) => {
        const status = logStatus(data);
        const lost = data.async.dropped_events + data.traffic_events.dropped;
        return (
          <>
            <StatusLine tone={status.tone}>{status.text}</StatusLine>
            {data.problem !== null && <Problem>{data.problem}</Problem>}
            <Facts>
              {data.current_file !== null && (
                <Fact name="Size of the file">{formatBytes(data.current_file.size_bytes)}</Fact>
              )}
              <Fact name="Old files">{archivesText(data)}</Fact>
              <Fact name="Lines written since start">{formatCount(data.async.written_events)}</Fact>
              <Fact name="Lines lost since start" bad={lost > 0}>
                {formatCount(lost)}
              </Fact>
              <Fact name="Traffic in the log">{trafficLogText(data)}</Fact>
            </Facts>
            {data.current_file !== null && <LogActions />}
            <ConfigForm group={group} />
          </>
        );
      }}
    </LiveSection>
  );
}

/** A new file at the press of a button, and the last lines on request. */
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
          Begin a new file now
        </Button>
        <Button onClick={() => tail.mutate()} disabled={tail.isPending}>
          {tail.data === undefined ? "Show the last lines" : "Show the last lines again"}
        </Button>
        {rotate.data !== undefined && (
          <span className={styles["quiet"]} role="status">
            Put away as {rotate.data.rotated_to.split(/[\\/]/u).at(-1)}
          </span>
        )}
      </SectionActions>
      {problem !== null && <Problem>{errorText(problem)}</Problem>}
      {tail.data !== undefined && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
        <pre className={styles["logLines"]} tabIndex={0} role="region" aria-label="Last lines of the log">
          {tail.data.lines.length === 0 ? "The file is empty" : tail.data.lines.join("\n")}
        </pre>
      )}
    </>
  );
}

/** What is said of the log. */
export function logStatus(log: LogStatus): Status {
  if (log.current_file === null) return { tone: "idle", text: "No file: the log goes to standard output alone" };
  if (log.problem !== null) return { tone: "bad", text: "The file cannot be written; it is tried again every second" };
  const waits = log.restart_pending.length > 0 ? "; part of the settings waits for a restart" : "";
  return { tone: "good", text: `Written to ${log.current_file.path}${waits}` };
}

/** What is said of traffic in the log. */
export function trafficLogText(log: LogStatus): string {
  const { enabled, level, host_filter: hosts } = log.debug_logging;
  if (!enabled) return "not logged";
  const whose = hosts.length === 0 ? "all hosts" : hosts.length === 1 ? (hosts[0] ?? "") : `${hosts.length} patterns`;
  const isHidden = log.verbosity === "warn" || log.verbosity === "error" || log.verbosity === "silent";
  if (isHidden) return `nothing, since only level ${log.verbosity} is logged`;
  return `${level} of ${whose}, ${formatCount(log.traffic_events.logged)} events since start`;
}

/** The old files in a few words. */
export function archivesText(log: LogStatus): string {
  const size = log.archived_files.reduce((sum, file) => sum + file.size_bytes, 0);
  if (log.archived_count === 0) return "none yet";
  return `${formatCount(log.archived_count)} of at most ${formatCount(log.max_files)}, ${formatBytes(size)}`;
}
