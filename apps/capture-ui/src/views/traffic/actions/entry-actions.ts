import type { SNIPPET_FORMATS, TrafficSnapshot } from "@headworks/capture-contract";
import { api, operations, operationUrl } from "../../../api.ts";
import { configQuery, filterOf, queryClient } from "../../../queries.ts";
import { navigate } from "../../../shell/router.ts";
import { copyText } from "../../../ui/copy.ts";
import { confirmAction } from "../../../ui/dialog.tsx";
import { formatCount, formatDuration } from "../../../ui/format.ts";
import { attempt, toast } from "../../../ui/toast.tsx";

export type SnippetFormat = (typeof SNIPPET_FORMATS)[number];

/** Formats in menu order. */
export const SNIPPETS: readonly { readonly format: SnippetFormat; readonly label: string }[] = [
  { format: "curl", label: "cURL" },
  { format: "curl-powershell", label: "cURL for PowerShell" },
  { format: "curl-cmd", label: "cURL for cmd.exe" },
  { format: "fetch", label: "fetch" },
  { format: "python", label: "Python" },
  { format: "httpie", label: "HTTPie" },
  { format: "wget", label: "wget" },
];

/** Copies a request as a command or code. */
export async function copySnippet(id: string, format: SnippetFormat): Promise<void> {
  const label = SNIPPETS.find((snippet) => snippet.format === format)?.label ?? format;
  await attempt(`Could not create the ${label} text`, async () => {
    const { text } = await api.export.exportSnippet({ params: { id }, query: { format } });
    await copyText(text, label);
  });
}

/** Copies the API call that returns the entry. */
export async function copyApiCall(id: string): Promise<void> {
  const url = location.origin + operationUrl(operations.traffic.getTraffic, { params: { id } });
  await copyText(`curl -s '${url}'`, "API call");
}

export async function copyUrls(rows: readonly TrafficSnapshot[]): Promise<void> {
  await copyText(rows.map((row) => row.url).join("\n"), rows.length === 1 ? "URL" : `${formatCount(rows.length)} URLs`);
}

/** Deletes entries, after confirmation for more than one. Returns whether they were deleted. */
export async function deleteEntries(ids: readonly string[]): Promise<boolean> {
  const [first] = ids;
  if (first === undefined) return false;
  if (ids.length === 1) {
    return attempt("Could not delete the request", () => api.traffic.deleteTraffic({ params: { id: first } }));
  }
  const sure = await confirmAction({
    title: `Delete ${formatCount(ids.length)} requests?`,
    text: "They are permanently removed from the session.",
    action: "Delete",
    danger: true,
  });
  return sure && attempt("Could not delete the requests", () => api.traffic.clearTraffic({ body: { ids: [...ids] } }));
}

/** Clears a session (null: the active one) after confirmation with the current count. */
export async function clearAll(session: string | null): Promise<boolean> {
  const query = filterOf("", session);
  let total = 0;
  const counted = await attempt("Could not count the requests", async () => {
    total = (await api.traffic.countTraffic({ query })).count;
  });
  if (!counted || total === 0) return false;
  const sure = await confirmAction({
    title: `Clear ${formatCount(total)} ${total === 1 ? "request" : "requests"}?`,
    text: `All traffic of ${session === null ? "the active session" : "this session"} is permanently removed, including requests hidden by the filter. Export it first if you may need it.`,
    action: "Clear",
    danger: true,
  });
  return sure && attempt("Could not clear the session", () => api.traffic.clearTraffic({ query }));
}

/** The host without its port, as used by rules. */
export function ruleHost(row: Pick<TrafficSnapshot, "host">): string {
  return row.host.replace(/:\d+$/u, "");
}

export async function blockHost(host: string): Promise<void> {
  const done = await attempt(`${host} could not be blocked`, () =>
    api.blocklist.createBlockEntry({ body: { pattern: host } }),
  );
  if (!done) return;
  await queryClient.invalidateQueries({ queryKey: ["blocklist"] });
  toast({ tone: "success", title: `${host} is blocked`, text: "See the block list." });
}

export async function focusHost(host: string): Promise<void> {
  const done = await attempt(`${host} could not be focused`, () => api.focus.addFocusHost({ body: { pattern: host } }));
  if (!done) return;
  await queryClient.invalidateQueries({ queryKey: ["focus"] });
  toast({ tone: "success", title: `${host} focused` });
}

async function addToList(name: "ignored_domains" | "passthrough_domains", host: string, done: string): Promise<void> {
  await attempt(`${host} could not be added`, async () => {
    const config = await queryClient.fetchQuery({ ...configQuery, staleTime: 0 });
    const list = config[name] ?? [];
    if (!list.includes(host)) await api.config.updateConfig({ body: { [name]: [...list, host] } });
    await queryClient.invalidateQueries({ queryKey: ["config"] });
    toast({ tone: "success", title: done, text: "See the list in Settings." });
  });
}

export function ignoreHost(host: string): Promise<void> {
  return addToList("ignored_domains", host, `${host} is no longer recorded`);
}

/** Excludes a host from decryption. */
export function passThroughHost(host: string): Promise<void> {
  return addToList("passthrough_domains", host, `TLS of ${host} is no longer intercepted`);
}

const urlOf = (path: string, params: Readonly<Record<string, string>>): string =>
  `${path}?${new URLSearchParams(params).toString()}`;

export function makeBreakpoint(id: string, direction: "request" | "response" | "both"): void {
  navigate(urlOf("/breakpoints", { part: "rules", from: id, direction }));
}

export function makeMock(id: string): void {
  navigate(urlOf("/mocks", { from: id }));
}

export function makeRewrite(id: string): void {
  navigate(urlOf("/rewrites", { from: id }));
}

export function makeScript(id: string): void {
  navigate(urlOf("/scripts", { from: id }));
}

export function throttleHost(host: string): void {
  navigate(urlOf("/throttle", { host }));
}

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
        onSelect: () => navigate(urlOf("/replay", { left: id, right: result.id })),
      },
    });
  });
}

/** Saves an entry's request and opens it for editing. */
export async function editAndReplay(id: string): Promise<void> {
  await attempt("Could not save the request", async () => {
    const saved = await api.replay.saveRequest({ body: { entry_id: id } });
    await queryClient.invalidateQueries({ queryKey: ["replay"] });
    navigate(urlOf("/replay", { id: saved.id }));
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

export function compareEntries(ids: readonly string[]): void {
  const [left, right] = ids;
  if (left !== undefined && right !== undefined) navigate(urlOf("/replay", { left, right }));
}
