import type { ApiFailure } from "@headworks/contract-kit/client";
import { visibleText } from "./terminal.ts";

/** The service's sentence with its code, and one line for each detail. */
export function apiFailureText(failure: ApiFailure): string {
  const details = Array.isArray(failure.details) ? (failure.details as { path?: string; message?: string }[]) : [];
  // With a single detail the sentence often is the detail already.
  const telling = details.filter(({ message }) => !failure.message.includes(message ?? ""));
  const lines = telling.map(({ path, message }) => `\n  ${visibleText(path ?? "")}: ${visibleText(message ?? "")}`);
  return failure.status === 0
    ? failure.message
    : `${visibleText(failure.message)} (${visibleText(failure.code)})${lines.join("")}`;
}
