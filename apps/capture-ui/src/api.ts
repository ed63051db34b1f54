import { operations } from "@headworks/capture-contract";
import { ApiFailure, createClient, operationUrl } from "@headworks/contract-kit/client";

/** Weir's API, typed: `api.traffic.getTraffic({ params: { id } })`. Rejects with {@link ApiFailure}. */
export const api = createClient(operations, { baseUrl: "" });

export { ApiFailure, operations, operationUrl };

/** A user-facing sentence for any thrown value. */
export function errorText(error: unknown): string {
  if (error instanceof ApiFailure) {
    if (error.status === 0) return "Weir is not responding. Is it still running?";
    const details = Array.isArray(error.details)
      ? error.details.flatMap((detail: unknown) => {
          const { path, message } = (detail ?? {}) as { path?: unknown; message?: unknown };
          return typeof message === "string"
            ? [typeof path === "string" && path !== "" ? `${path}: ${message}` : message]
            : [];
        })
      : [];
    // A message that consists of its only detail would repeat it.
    const isSaid = details.every((detail) => error.message.includes(detail));
    return isSaid ? error.message : `${error.message} (${details.slice(0, 3).join("; ")})`;
  }
  return error instanceof Error ? error.message : String(error);
}

/** Whether a call was aborted by the UI itself, which is not reported as a failure. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
