import type { CaptureSession } from "@headworks/capture-contract";
import { api, errorText } from "../api.ts";
import { configQuery, queryClient, runsQuery, sessionsQuery } from "../queries.ts";
import { navigate } from "../shell/router.ts";
import { confirmAction } from "../ui/dialog.tsx";
import { formatCount, isolatedName } from "../ui/format.ts";
import { toast } from "../ui/toast.tsx";
import { sessionTitle } from "../views/sessions/session-form.ts";

/** Shows a session's traffic without making it active. */
export function viewSession(id: string): void {
  navigate(`/traffic?session=${encodeURIComponent(id)}`);
}

/**
 * Makes a session active and shows its traffic; asks first if that would remove entries. The session of a run is only
 * shown: other traffic must not be recorded into it.
 */
export async function openSession(id: string): Promise<void> {
  try {
    const runs = await queryClient.fetchQuery({ ...runsQuery, staleTime: 0 });
    if (runs.some((run) => run.session_id === id)) return viewSession(id);
    if (!(await mayOpen(id))) return;
    await api.sessions.switchSession({ params: { id } });
    await queryClient.invalidateQueries({ queryKey: ["sessions"] });
    navigate("/traffic");
  } catch (error) {
    toast({ tone: "error", title: "Could not open the session", text: errorText(error) });
  }
}

async function mayOpen(id: string): Promise<boolean> {
  const [sessions, config] = await Promise.all([
    queryClient.fetchQuery({ ...sessionsQuery, staleTime: 0 }),
    queryClient.fetchQuery({ ...configQuery, staleTime: 0 }),
  ]);
  const session = sessions.find((one) => one.id === id);
  const dropped = session === undefined ? 0 : droppedEntries(session, config.max_requests);
  if (session === undefined || dropped === 0) return true;
  const limit = formatCount(config.max_requests);
  return await confirmAction({
    title: `Open ${isolatedName(sessionTitle(session))} without its oldest requests?`,
    text: `The active session keeps ${limit} requests (max_requests). The oldest ${formatCount(dropped)} of the ${formatCount(session.request_count)} in this one would be permanently removed. Raise the limit in Settings, or export the session first if you may need them.`,
    action: "Open",
    danger: true,
  });
}

/** Number of entries a session loses when it becomes active. */
function droppedEntries(session: CaptureSession, maxRequests: number): number {
  if (session.is_current || maxRequests === 0) return 0;
  return Math.max(0, session.request_count - maxRequests);
}
