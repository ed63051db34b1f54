import type { BlockEntry, NewBlockEntry } from "@headworks/capture-contract";

export interface BlockDraft {
  readonly pattern: string;
  readonly note: string;
  readonly statusCode: string;
  readonly contentType: string;
  readonly responseBody: string;
}

export const BLOCK_FIELDS = [
  "pattern",
  "note",
  "status_code",
  "content_type",
  "response_body",
  "enabled",
  "device_id",
] as const;

/** Draft of a new entry; the service fills empty fields. */
export const NEW_BLOCK: BlockDraft = { pattern: "", note: "", statusCode: "", contentType: "", responseBody: "" };

export function draftOf(entry: BlockEntry): BlockDraft {
  return {
    pattern: entry.pattern,
    note: entry.note ?? "",
    statusCode: String(entry.status_code),
    contentType: entry.content_type,
    responseBody: entry.response_body,
  };
}

/** The request body of a draft. A status that is not a number is refused here, because the draft is text. */
export function bodyOf(
  draft: BlockDraft,
):
  | { readonly ok: true; readonly body: NewBlockEntry }
  | { readonly ok: false; readonly fields: Readonly<Record<string, string>> } {
  const fields: Record<string, string> = {};
  const pattern = draft.pattern.trim();
  if (pattern === "") fields["pattern"] = "Enter a host or pattern";
  const status = draft.statusCode.trim();
  if (status !== "" && !/^\d{3}$/u.test(status)) fields["status_code"] = "Enter three digits, such as 403";
  if (Object.keys(fields).length > 0) return { ok: false, fields };
  return {
    ok: true,
    body: {
      pattern,
      note: draft.note.trim() === "" ? null : draft.note.trim(),
      ...(status === "" ? {} : { status_code: Number(status) }),
      content_type: draft.contentType.trim() === "" ? null : draft.contentType.trim(),
      response_body: draft.responseBody === "" ? null : draft.responseBody,
    },
  };
}

/** The request body that restores a deleted entry; its hit count restarts. */
export function restoreBody(entry: BlockEntry): NewBlockEntry {
  return {
    pattern: entry.pattern,
    note: entry.note,
    enabled: entry.enabled,
    status_code: entry.status_code,
    response_body: entry.response_body,
    content_type: entry.content_type,
    device_id: entry.device_id,
  };
}
