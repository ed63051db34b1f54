import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, errorText } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { formatBytes, formatCount, formatDateTime } from "../../ui/format.ts";
import { Spinner } from "../../ui/states.tsx";
import { autoSaveStatus, lastSnapshotText } from "./section-status.ts";
import { Fact, Facts, LiveSection, Problem, SectionActions, StatusLine } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";
import styles from "./settings.module.css";

const REFRESH_MS = 5000;

/** Snapshots of the active session: status, manual save, and settings. */
export function AutoSaveSection({ group }: { readonly group: SettingGroup }) {
  // Saved settings must show immediately, not with the next refresh.
  const version = group.fields.map((field) => JSON.stringify(field.value)).join(" ");
  const autoSave = useQuery({
    queryKey: ["autosave", version],
    queryFn: ({ signal }) => api.autosave.getAutosave({ signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: (before) => before,
  });
  return (
    <LiveSection id={group.id} title={group.title} query={autoSave}>
      {(data) => {
        const status = autoSaveStatus(data);
        return (
          <>
            <StatusLine tone={status.tone}>{status.text}</StatusLine>
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
            <ConfigForm group={group} />
          </>
        );
      }}
    </LiveSection>
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
