import type { CaptureSession } from "@headworks/capture-contract";
import { formatDateTime } from "../../ui/format.ts";

export function sessionTitle(session: Pick<CaptureSession, "name" | "created_at">): string {
  return session.name ?? `Session ${formatDateTime(Date.parse(session.created_at)).slice(0, 16)}`;
}

export type ParsedTags =
  | { readonly ok: true; readonly tags: readonly string[] }
  | { readonly ok: false; readonly message: string };

/** Comma-separated tags; blanks and duplicates are dropped. */
export function parseTags(text: string): ParsedTags {
  const tags = [...new Set(text.split(",").map((tag) => tag.trim()))].filter((tag) => tag !== "");
  if (tags.length > 64) return { ok: false, message: "At most 64 tags" };
  if (tags.some((tag) => tag.length > 255)) return { ok: false, message: "At most 255 characters per tag" };
  return { ok: true, tags };
}

/** File name of an exported session: safe characters, with the format's extension. */
export function exportFileName(
  session: Pick<CaptureSession, "name" | "created_at">,
  format: "har" | "session",
): string {
  const base = sessionTitle(session)
    .normalize("NFKD")
    .replaceAll(/[^\w.-]+/gu, "-")
    .replaceAll(/^[-.]+|[-.]+$/gu, "")
    .slice(0, 80);
  return `${base === "" ? "session" : base}${format === "har" ? ".har" : ".session.json"}`;
}
