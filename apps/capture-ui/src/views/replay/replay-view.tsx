import { useQuery } from "@tanstack/react-query";
import { Play, Plus } from "lucide-react";
import { useState } from "react";
import { ApiFailure, api } from "../../api.ts";
import { isKept } from "../../rules/kept-drafts.ts";
import { setParams, usePlace } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { DiffScreen } from "./diff-screen.tsx";
import styles from "./replay.module.css";
import { RequestEditor } from "./request-editor.tsx";
import { SavedList } from "./saved-list.tsx";
import { SessionDiffScreen } from "./session-diff-screen.tsx";

/** Under which the unsaved draft of a request is kept. */
const nameOf = (key: string): string => `replay ${key}`;

/** Requests to send again, what came of it, and how answers differ. */
export function ReplayView() {
  const { params } = usePlace();
  const [fresh, setFresh] = useState(false);
  const id = params.get("id");
  const right = params.get("right");
  const saved = useQuery({
    queryKey: ["replay", "saved", id],
    queryFn: ({ signal }) => api.replay.getSavedRequest({ params: { id: id ?? "" }, signal }),
    enabled: id !== null,
    retry: false,
  });
  const isGone = saved.error instanceof ApiFailure && saved.error.status === 404;
  const show = (next: string | null): void => {
    setFresh(false);
    setParams({ id: next, left: null, right: null, sessions: null });
  };
  const begin = (): void => {
    setParams({ id: null, left: null, right: null, sessions: null });
    setFresh(true);
  };
  const [leftSession, rightSession] = params.get("sessions")?.split(",") ?? [];
  const content =
    leftSession !== undefined && rightSession !== undefined ? (
      <SessionDiffScreen key={`${leftSession} ${rightSession}`} left={leftSession} right={rightSession} />
    ) : right !== null ? (
      <DiffScreen key={`${params.get("left") ?? ""} ${right}`} left={params.get("left")} right={right} />
    ) : fresh ? (
      <RequestEditor key="new" saved={null} keptAs={nameOf("new")} isGone={false} onSaved={show} />
    ) : id === null ? (
      <EmptyState
        icon={<Play size={28} />}
        title="Send requests again"
        actions={
          <Button variant="primary" icon={<Plus size={14} />} onClick={begin}>
            New request
          </Button>
        }
      >
        Choose a saved request, write one, or press E on a row of the traffic.
      </EmptyState>
    ) : isGone && isKept(nameOf(id)) ? (
      <RequestEditor key={id} saved={null} keptAs={nameOf(id)} isGone onSaved={show} />
    ) : saved.error !== null && (isGone || saved.data === undefined) ? (
      <ErrorState title="The request cannot be loaded" error={saved.error} />
    ) : saved.data === undefined ? (
      <EmptyState icon={<Spinner />} title="" />
    ) : (
      <RequestEditor key={id} saved={saved.data} keptAs={nameOf(id)} isGone={false} onSaved={show} />
    );
  return (
    <div className={styles["view"]}>
      <SavedList chosenId={id} onShow={show} onNew={begin} />
      <div className={styles["right"]}>{content}</div>
    </div>
  );
}
