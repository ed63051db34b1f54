import type { ImportResult, RestoredSession } from "@headworks/capture-contract";
import { ApiFailure, errorText, isAbort, operations, operationUrl } from "../api.ts";
import { listenLive } from "../live.ts";
import { queryClient } from "../queries.ts";
import { formatBytes, formatCount, isolatedName } from "../ui/format.ts";
import { toast } from "../ui/toast.tsx";
import { fileKind, type FileKind, sessionName } from "./file-kind.ts";
import { openSession } from "./open-session.ts";

/** Bytes read to detect the kind of a file. */
const PEEK_BYTES = 4096;

async function send(file: File, kind: FileKind, taskId: string, report: (sent: number) => void, signal: AbortSignal) {
  const query = { session_name: sessionName(file.name), task_id: taskId };
  if (kind === "har") {
    const url = operationUrl(operations.traffic.importHar, { query });
    const result = (await sendFile(url, file, report, signal)) as ImportResult;
    return {
      sessionId: result.session_id,
      count: result.imported_count,
      skipped: result.skipped_count,
      errors: result.errors,
    };
  }
  const url = operationUrl(operations.sessions.importSession, { query });
  const session = (await sendFile(url, file, report, signal)) as RestoredSession;
  return {
    sessionId: session.id,
    count: session.request_count,
    skipped: session.skipped_count,
    errors: session.errors,
  };
}

async function importFile(file: File): Promise<void> {
  const name = isolatedName(file.name);
  const kind = fileKind(file.name, await file.slice(0, PEEK_BYTES).text());
  if (kind === undefined) {
    toast({
      tone: "error",
      title: `${name} is neither a HAR file nor a session`,
      text: "Both must be JSON documents.",
    });
    return;
  }
  const controller = new AbortController();
  const taskId = crypto.randomUUID();
  const key = `import-${taskId}`;
  let sent = 0;
  let entries = 0;
  const show = (): void => {
    const percent = file.size === 0 ? 100 : Math.min(100, Math.floor((sent / file.size) * 100));
    toast({
      key,
      durationMs: 0,
      title: `Importing ${name}`,
      text: `${percent} % of ${formatBytes(file.size)}${entries > 0 ? `, ${formatCount(entries)} requests` : ""}`,
      action: { label: "Stop", onSelect: () => controller.abort() },
    });
  };
  const stop = listenLive({
    task: (task) => {
      if (task.id !== taskId || task.done) return;
      entries = task.entries;
      show();
    },
  });
  show();
  try {
    const result = await send(
      file,
      kind,
      taskId,
      (bytes) => {
        sent = bytes;
        show();
      },
      controller.signal,
    );
    const leftOut = result.skipped > 0 ? ` ${formatCount(result.skipped)} skipped:` : "";
    const problems = result.errors.length > 0 ? `${leftOut} ${result.errors.slice(0, 2).join("; ")}` : "";
    toast({
      key,
      tone: "success",
      durationMs: 12_000,
      title: `${formatCount(result.count)} ${result.count === 1 ? "request" : "requests"} from ${name}`,
      text: `Imported into a new session.${problems}`,
      action: { label: "Open session", onSelect: () => void openSession(result.sessionId) },
    });
  } catch (error) {
    if (isAbort(error)) toast({ key, title: `Import of ${name} stopped` });
    else toast({ key, tone: "error", title: `${name}: import failed`, text: errorText(error) });
  } finally {
    stop();
    await queryClient.invalidateQueries({ queryKey: ["sessions"] });
  }
}

/** Imports files one after another, each into a session of its own. */
export async function importFiles(files: readonly File[]): Promise<void> {
  for (const file of files) await importFile(file);
}

/** Opens a file picker and imports the selection. */
export function chooseAndImport(): void {
  const input = document.createElement("input");
  input.type = "file";
  input.multiple = true;
  input.accept = ".har,.json,application/json";
  input.addEventListener("change", () => void importFiles([...(input.files ?? [])]));
  input.click();
}

/** Uploads a file with progress, which `fetch` cannot report. Rejects with ApiFailure. */
export function sendFile(
  url: string,
  file: Blob,
  onProgress: (sentBytes: number) => void,
  signal: AbortSignal,
  mediaType = "application/json",
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", url);
    request.setRequestHeader("content-type", mediaType);
    request.setRequestHeader("accept", "application/json");
    request.upload.addEventListener("progress", (event) => onProgress(event.loaded));
    request.addEventListener("load", () => {
      const response = readResponse(request.responseText);
      if (request.status >= 200 && request.status < 300) resolve(response);
      else reject(failure(request.status, response, request.responseText));
    });
    request.addEventListener("error", () => reject(new ApiFailure(0, "UNREACHABLE", "Cannot reach Weir")));
    request.addEventListener("abort", () => reject(new DOMException("Import stopped", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

function readResponse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function failure(status: number, response: unknown, text: string): ApiFailure {
  const { error, code, details } = (response ?? {}) as {
    readonly error?: unknown;
    readonly code?: unknown;
    readonly details?: unknown;
  };
  const message = typeof error === "string" ? error : text.slice(0, 200) || `Weir responded with ${status}`;
  return new ApiFailure(status, typeof code === "string" ? code : "HTTP_ERROR", message, details);
}
