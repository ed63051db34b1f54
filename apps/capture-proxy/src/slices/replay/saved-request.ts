import { SavedRequest, SavedRequestUpdate } from "@headworks/capture-contract";
import { portableList } from "#portable/portable-list.ts";
import type { RuleIssue } from "#portable/portable-list.ts";
import { ApiError } from "#api/api-error.ts";
import type { PortableRules } from "#slice.ts";
import { requestOf, showRequest } from "./replay-request.ts";
import type { SavedRequestsStore, StoredRequest } from "./saved-requests.ts";

/** The API form of a saved request. */
export function showSaved(stored: StoredRequest, withBody: boolean): SavedRequest {
  return {
    id: stored.id,
    source_entry_id: stored.sourceEntryId,
    name: stored.name,
    request: showRequest(stored.request, withBody ? stored.request.body : undefined, stored.bodyBytes),
    saved_at: new Date(stored.savedAtMs).toISOString(),
    updated_at: new Date(stored.updatedAtMs).toISOString(),
    tags: [...stored.tags],
    collection: stored.collection,
  };
}

/** The inverse of {@link showSaved}. Throws 400 for a request that cannot be sent. */
function readSaved(saved: SavedRequest, at: string): StoredRequest {
  const request = requestOf(saved.request, at);
  return {
    id: saved.id,
    sourceEntryId: saved.source_entry_id,
    name: saved.name,
    collection: saved.collection,
    tags: saved.tags,
    request,
    bodyBytes: request.body?.length ?? 0,
    savedAtMs: Date.parse(saved.saved_at),
    updatedAtMs: Date.parse(saved.updated_at),
  };
}

export function portableRequests(store: SavedRequestsStore, onChange: () => void): PortableRules {
  return portableList<SavedRequest>({
    key: "saved_requests",
    schemaVersion: 1,
    schemas: [SavedRequest, SavedRequestUpdate],
    list: () => store.all().map((stored) => showSaved(stored, true)),
    check: issuesOf,
    write: (requests) => {
      store.clear();
      store.insert(requests.map((saved) => readSaved(saved, "")));
    },
    reload: onChange,
  });
}

function issuesOf(saved: SavedRequest): RuleIssue[] {
  try {
    readSaved(saved, "/request");
    return [];
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return (error.details ?? []).map(({ path, message }) => ({ path, message }));
  }
}
