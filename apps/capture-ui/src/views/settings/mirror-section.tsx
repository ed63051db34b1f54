import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { formatBytes, formatCount, formatDateTime } from "../../ui/format.ts";
import { mirrorStatus } from "./section-status.ts";
import { Fact, Facts, LiveSection, Problem, StatusLine } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import type { SettingGroup } from "./setting-model.ts";

/** Counters change with traffic. */
const REFRESH_MS = 5000;

/** The mirror: counters, dropped files with the reason, and settings. */
export function MirrorSection({ group }: { readonly group: SettingGroup }) {
  // Saved settings must show immediately, not with the next refresh.
  const version = group.fields.map((field) => JSON.stringify(field.running)).join(" ");
  const mirror = useQuery({
    queryKey: ["mirror", version],
    queryFn: ({ signal }) => api.mirror.getMirror({ signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: (before) => before,
  });
  return (
    <LiveSection id={group.id} title={group.title} query={mirror}>
      {(data) => {
        const status = mirrorStatus(data);
        return (
          <>
            <StatusLine tone={status.tone}>{status.text}</StatusLine>
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
            <ConfigForm group={group} />
          </>
        );
      }}
    </LiveSection>
  );
}
