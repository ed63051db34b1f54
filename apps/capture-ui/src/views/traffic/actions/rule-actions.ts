import { api } from "../../../api.ts";
import { queryClient } from "../../../queries.ts";
import { navigate } from "../../../shell/router.ts";
import { attempt } from "../../../ui/attempt.ts";
import { formatCount, formatDuration } from "../../../ui/format.ts";
import { toast } from "../../../ui/toast.tsx";

const place = (path: string, params: Readonly<Record<string, string>>): string =>
  `${path}?${new URLSearchParams(params).toString()}`;

/** Opens a new breakpoint for similar requests. */
export function makeBreakpoint(id: string, direction: "request" | "response" | "both"): void {
  navigate(place("/breakpoints", { part: "rules", from: id, direction }));
}

/** Opens a new mock with an entry's response. */
export function makeMock(id: string): void {
  navigate(place("/mocks", { from: id }));
}

/** Opens a new rewrite for similar requests. */
export function makeRewrite(id: string): void {
  navigate(place("/rewrites", { from: id }));
}

/** Opens Throttle with a host added. */
export function throttleHost(host: string): void {
  navigate(place("/throttle", { host }));
}

/** Creates a mock from each entry. */
export async function makeMocks(ids: readonly string[]): Promise<void> {
  await attempt("Could not create the mocks", async () => {
    const { created, errors } = await api.mocks.createMocksFromTraffic({ body: { entry_ids: [...ids] } });
    await queryClient.invalidateQueries({ queryKey: ["mocks"] });
    toast({
      tone: errors.length === 0 ? "success" : "info",
      title: created === 1 ? "1 mock created" : `${formatCount(created)} mocks created`,
      ...(errors.length === 0 ? {} : { text: `${errors.length} requests have no response to mock.` }),
      action: { label: "Show", onSelect: () => navigate("/mocks") },
    });
  });
}

/** Resends an entry's request, and offers a comparison. */
export async function replayNow(id: string): Promise<void> {
  await attempt("Could not resend the request", async () => {
    const result = await api.replay.executeReplay({ params: { id } });
    const outcome =
      result.response === null ? (result.error ?? "No response") : `Status ${result.response.status_code}`;
    toast({
      tone: result.response === null ? "error" : "success",
      title: "Resent",
      text: `${outcome} after ${formatDuration(result.duration_ms)}`,
      durationMs: 8000,
      action: {
        label: "Compare",
        onSelect: () => navigate(place("/replay", { left: id, right: result.id })),
      },
    });
  });
}

/** Saves an entry's request and opens it for editing. */
export async function editAndReplay(id: string): Promise<void> {
  await attempt("Could not save the request", async () => {
    const saved = await api.replay.saveRequest({ body: { entry_id: id } });
    await queryClient.invalidateQueries({ queryKey: ["replay"] });
    navigate(place("/replay", { id: saved.id }));
  });
}

export async function saveForReplay(ids: readonly string[]): Promise<void> {
  await attempt("Could not save the requests", async () => {
    const { saved } = await api.replay.saveFromTraffic({ body: { entry_ids: [...ids] } });
    await queryClient.invalidateQueries({ queryKey: ["replay"] });
    toast({
      tone: "success",
      title: saved === 1 ? "1 request saved" : `${formatCount(saved)} requests saved`,
      action: { label: "Show", onSelect: () => navigate("/replay") },
    });
  });
}

/** Opens the comparison of two entries. */
export function compareEntries(ids: readonly string[]): void {
  const [left, right] = ids;
  if (left !== undefined && right !== undefined) navigate(place("/replay", { left, right }));
}
