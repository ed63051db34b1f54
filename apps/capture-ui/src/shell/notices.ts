import type { Notice } from "@headworks/capture-contract";
import { useEffect } from "react";
import { api } from "../api.ts";
import { listenLive } from "../live.ts";
import { keptNames } from "../rules/stored-draft.ts";
import { toast } from "../ui/toast.tsx";
import { navigate } from "./router.ts";

/** Name prefix of drafts of paused messages, followed by the pause's id. */
export const PAUSED = "paused ";

export function idOfPaused(name: string): string {
  return name.slice(PAUSED.length).split(" ", 1)[0] ?? "";
}

/** Interval of timer extensions for edited messages, so that an edit does not time out while another view is shown. */
const HOLD_EVERY_MS = 20_000;
const HOLD_SECONDS = 60;

/** Extends the timer of a paused message. Failures are ignored: a message no longer paused is reported by a notice. */
export async function holdPaused(id: string): Promise<void> {
  await api.breakpoints.holdPausedItem({ params: { id }, body: { seconds: HOLD_SECONDS } }).catch(() => undefined);
}

/** Shows notices of the service, and extends paused messages that are being edited. Called once, by the shell. */
export function useNotices(): void {
  useEffect(() => listenLive({ notice: show }), []);
  useEffect(() => {
    const holdAll = (): void => {
      for (const id of new Set(keptNames(PAUSED).map(idOfPaused))) void holdPaused(id);
    };
    const timer = window.setInterval(holdAll, HOLD_EVERY_MS);
    return () => window.clearInterval(timer);
  }, []);
}

function show(notice: Notice): void {
  if (notice.code === "entries-removed") {
    toast({
      key: notice.code,
      tone: "error",
      durationMs: 0,
      title: "The oldest requests are being removed",
      text: notice.message,
      action: { label: "Settings", onSelect: () => navigate("/settings") },
    });
    return;
  }
  const isEdited = keptNames(PAUSED).some((name) => idOfPaused(name) === notice.paused_id);
  // A client disconnect is only reported if its message was being edited.
  if (notice.reason === "ended" && !isEdited) return;
  toast({
    key: isEdited ? `${notice.code} ${notice.paused_id}` : notice.code,
    tone: isEdited ? "error" : "info",
    durationMs: isEdited ? 0 : 8000,
    title: isEdited ? "Your edits were not sent" : "Continued without a decision",
    text: notice.message,
    action: isEdited
      ? { label: "Show edits", onSelect: () => navigate("/breakpoints?part=waiting") }
      : { label: "Show request", onSelect: () => navigate(`/traffic?id=${encodeURIComponent(notice.entry_id)}`) },
  });
}
