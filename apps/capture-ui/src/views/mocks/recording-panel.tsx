import { useQuery } from "@tanstack/react-query";
import { Circle } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { mockRecordingQuery, queryClient } from "../../queries.ts";
import { conditionSentence } from "../../rules/condition-draft.ts";
import { ScrollBody, SidePanel } from "../../rules/rule-editor.tsx";
import shared from "../../rules/rule-parts.module.css";
import { setParams } from "../../shell/router.ts";
import { attempt, toast } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { confirmAction } from "../../ui/dialog.tsx";
import { formatCount, isolatedName } from "../../ui/format.ts";
import { EmptyState } from "../../ui/states.tsx";
import styles from "./mocks.module.css";

export async function setRecording(enabled: boolean): Promise<void> {
  await attempt("Could not toggle recording", () => api.mocks.setMockRecording({ body: { enabled } }));
  await queryClient.invalidateQueries({ queryKey: ["mocks"] });
}

const responses = (count: number): string => (count === 1 ? "1 response" : `${formatCount(count)} responses`);

/** Notice that responses are being recorded or await review. */
export function RecordingNotice() {
  const state = useQuery({ ...mockRecordingQuery, refetchInterval: 2000 }).data;
  if (state === undefined || (!state.recording && state.recorded === 0)) return null;
  return (
    <div className={styles["notice"]} role="status">
      <span>
        {state.recording ? <b>Recording responses as mocks. </b> : null}
        {responses(state.recorded)} recorded{state.missed > 0 ? `, ${state.missed} failed` : ""}.
      </span>
      <Button onClick={() => setParams({ panel: "recording", id: null })}>Review</Button>
      {state.recording && <Button onClick={() => void setRecording(false)}>Stop recording</Button>}
    </div>
  );
}

/** Recorded responses: selected ones become mocks, the others can be cleared. */
export function RecordingPanel({ onClose }: { readonly onClose: () => void }) {
  const state = useQuery(mockRecordingQuery).data;
  const recorded = useQuery({
    queryKey: ["mocks", "recorded"],
    queryFn: ({ signal }) => api.mocks.listRecordedMocks({ query: { limit: 1000 }, signal }),
    refetchInterval: 2000,
  });
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const list = recorded.data ?? [];
  const chosen = list.filter((rule) => !left.has(rule.id));
  const refresh = () => queryClient.invalidateQueries({ queryKey: ["mocks"] });
  const promote = async (): Promise<void> => {
    await attempt("Could not create the mocks", async () => {
      const { promoted } = await api.mocks.promoteRecordedMocks({ body: { ids: chosen.map((rule) => rule.id) } });
      toast({ tone: "success", title: promoted === 1 ? "1 mock enabled" : `${promoted} mocks enabled` });
    });
    await refresh();
  };
  const clear = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Clear recorded responses?",
      text: `${responses(list.length)} will be permanently removed.`,
      action: "Clear",
      danger: true,
    });
    if (sure) await attempt("Could not clear the recorded responses", () => api.mocks.clearRecordedMocks({}));
    await refresh();
  };
  const toggle = (id: string): void => {
    const next = new Set(left);
    if (!next.delete(id)) next.add(id);
    setLeft(next);
  };
  return (
    <SidePanel
      title="Recorded responses"
      onClose={onClose}
      actions={
        <>
          <Button
            icon={<Circle size={11} fill={state?.recording === true ? "currentColor" : "none"} />}
            pressed={state?.recording === true}
            onClick={() => void setRecording(state?.recording !== true)}
          >
            {state?.recording === true ? "Recording" : "Record"}
          </Button>
          <Button disabled={list.length === 0} variant="danger" onClick={() => void clear()}>
            Clear all
          </Button>
          <Button variant="primary" disabled={chosen.length === 0} onClick={() => void promote()}>
            Create {chosen.length === 1 ? "1 mock" : `${chosen.length} mocks`}
          </Button>
        </>
      }
    >
      {list.length === 0 ? (
        <EmptyState title="No recorded responses">
          While recording, each server response becomes a mock that stays inactive until you create it here.
        </EmptyState>
      ) : (
        <ScrollBody label="Recorded">
          <div className={styles["panel"]}>
            <ul className={shared["list"]} aria-label="Recorded mocks">
              {list.map((rule) => (
                <li key={rule.id} className={shared["rule"]}>
                  <input
                    type="checkbox"
                    aria-label={`Create mock from ${isolatedName(rule.name)}`}
                    checked={!left.has(rule.id)}
                    onChange={() => toggle(rule.id)}
                  />
                  <span className={shared["open"]}>
                    <span className={shared["name"]}>{rule.name}</span>
                    <span className={shared["quiet"]}>{conditionSentence(rule.condition)}</span>
                  </span>
                  <span className={shared["hits"]}>
                    {rule.response_config.type === "single" && rule.response_config.response.status_code}
                  </span>
                </li>
              ))}
            </ul>
          </div>
        </ScrollBody>
      )}
    </SidePanel>
  );
}
