import type { CaptureSession } from "@headworks/capture-contract";
import type { SessionRecord } from "../write/writer-messages.ts";

export function shownSession(session: SessionRecord, isCurrent: boolean): CaptureSession {
  return {
    id: session.id,
    name: session.name,
    created_at: new Date(session.createdMs).toISOString(),
    updated_at: new Date(session.updatedMs).toISOString(),
    request_count: session.entryCount,
    total_size_bytes: session.storedBytes,
    is_current: isCurrent,
    notes: session.notes,
    tags: [...session.tags],
  };
}
