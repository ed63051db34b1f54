import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, errorText } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { formatBytes, formatCount } from "../../ui/format.ts";
import { Fact, Facts, LiveSection, Problem, SectionActions, StatusLine } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";
import { logStatus, trafficLogText, archivesText } from "./section-status.ts";

const REFRESH_MS = 5000;

export function LogsSection({ group }: { readonly group: SettingGroup }) {
  // Saved settings must show immediately, not with the next refresh.
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
              {data.current_file !== null && <Fact name="File size">{formatBytes(data.current_file.size_bytes)}</Fact>}
              <Fact name="Archived files">{archivesText(data)}</Fact>
              <Fact name="Lines written since start">{formatCount(data.async.written_events)}</Fact>
              <Fact name="Lines lost since start" bad={lost > 0}>
                {formatCount(lost)}
              </Fact>
              <Fact name="Logged traffic">{trafficLogText(data)}</Fact>
            </Facts>
            {data.current_file !== null && <LogActions />}
            <ConfigForm group={group} />
          </>
        );
      }}
    </LiveSection>
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
