import { ApiFailure } from "../api.ts";

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
