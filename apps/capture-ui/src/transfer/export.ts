import { readJson } from "@headworks/json";
import { ApiFailure, api, errorText, isAbort } from "../api.ts";
import { filterOf } from "../queries.ts";
import { formatBytes, formatCount } from "../ui/format.ts";
import { toast } from "../ui/toast.tsx";

/** Maximum number of ids that fit into the request URL. */
const MAX_IDS = 10_000;

function fileName(extension: string): string {
  return `weir-${new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "")}.${extension}`;
}

/** Passes a body through and reports the bytes read. */
function counted(response: Response, report: (bytes: number) => void): Response {
  let bytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      report(bytes);
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body?.pipeThrough(counter) ?? null);
}

async function download(
  what: string,
  name: string,
  request: (signal: AbortSignal) => Promise<Response>,
): Promise<void> {
  const key = `export-${name}`;
  const controller = new AbortController();
  const show = (text: string): void => {
    toast({
      key,
      durationMs: 0,
      title: `Exporting ${what}`,
      text,
      action: { label: "Stop", onSelect: () => controller.abort() },
    });
  };
  show("Waiting for Weir");
  let shownAt = 0;
  try {
    const response = await request(controller.signal);
    const total = response.headers.get("x-total-count");
    // Browsers keep large blobs on disk, so memory use does not grow with the export.
    const blob = await counted(response, (bytes) => {
      if (performance.now() - shownAt < 150) return;
      shownAt = performance.now();
      show(`${formatBytes(bytes)}${total === null ? "" : ` of ${formatCount(Number(total))} requests`}`);
    }).blob();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    toast({ key, tone: "success", title: `Exported ${what}`, text: `${name}, ${formatBytes(blob.size)}` });
  } catch (error) {
    if (isAbort(error)) toast({ key, title: "Export stopped" });
    else toast({ key, tone: "error", title: "Export failed", text: errorText(error) });
  }
}

/** Saves entries as HAR, selected by query or by ids. */
export async function exportHar(
  selection: { readonly q: string; readonly session: string | null } | { readonly ids: readonly string[] },
): Promise<void> {
  if ("ids" in selection && selection.ids.length > MAX_IDS) {
    toast({
      tone: "error",
      title: `At most ${formatCount(MAX_IDS)} chosen requests can be exported`,
      text: "Export with a filter instead.",
    });
    return;
  }
  const query = "ids" in selection ? { ids: selection.ids.join(",") } : filterOf(selection.q, selection.session);
  const what =
    "ids" in selection
      ? `${formatCount(selection.ids.length)} ${selection.ids.length === 1 ? "request" : "requests"}`
      : "traffic";
  await download(what, fileName("har"), (signal) => api.export.exportHar({ query, signal }));
}

/** Saves a whole session in the lossless native format. */
export async function exportSession(id: string | undefined): Promise<void> {
  await download("the session", fileName("session.json"), (signal) => {
    if (id === undefined) throw new ApiFailure(404, "NOT_FOUND", "No active session");
    return api.sessions.exportSession({ params: { id }, query: { format: "session" }, signal });
  });
}

/** Saves all rules as one JSON document. */
export async function exportRules(): Promise<void> {
  await download("the rules", fileName("rules.json"), async (signal) => {
    const { data } = await api.persistence.exportRules({ signal });
    return new Response(indented(data));
  });
}

/** Saves settings and rules as one JSON document, without passwords. */
export async function exportSettings(): Promise<void> {
  await download("rules and settings", fileName("config.json"), async (signal) => {
    const document = await api.config.exportConfig({ signal });
    return new Response(`${JSON.stringify(document, null, 2)}\n`);
  });
}

/** Indented, because such files are compared by line in repositories. */
function indented(json: string): string {
  return `${JSON.stringify(readJson(json), null, 2)}\n`;
}
