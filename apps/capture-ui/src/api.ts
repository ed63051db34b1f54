import { operations } from "@headworks/capture-contract";
import { ApiFailure, createClient, operationUrl } from "@headworks/contract-kit/client";

/** Weir's API, typed: `api.traffic.getTraffic({ params: { id } })`. Rejects with {@link ApiFailure}. */
export const api = createClient(operations, { baseUrl: "" });

export { ApiFailure, operations, operationUrl };

/** One sentence for people about anything that was thrown. */
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
    // A message that was made of its only detail would be said twice.
    const isSaid = details.every((detail) => error.message.includes(detail));
    return isSaid ? error.message : `${error.message} (${details.slice(0, 3).join("; ")})`;
  }
  return error instanceof Error ? error.message : String(error);
}

/** Whether a call was given up by us, which is no failure to report. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
