import type { BlockEntry, BlockEntryUpdate, NewBlockEntry } from "@headworks/capture-contract";
import { validateHostPattern } from "@headworks/host-patterns";

const DEFAULT_STATUS = 403;
const DEFAULT_BODY = "Blocked by Weir";
const DEFAULT_CONTENT_TYPE = "text/plain";

/** An entry as stored: times in milliseconds, defaults filled in. */
export interface StoredBlockEntry {
  readonly id: string;
  readonly pattern: string;
  readonly note: string | null;
  readonly enabled: boolean;
  readonly hitCount: number;
  readonly statusCode: number;
  readonly responseBody: string;
  readonly contentType: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Writable fields with defaults filled in; `null` selects the default. The pattern is trimmed and lower-cased. */
function written(
  body: NewBlockEntry | BlockEntryUpdate,
): Omit<StoredBlockEntry, "id" | "hitCount" | "createdAtMs" | "updatedAtMs"> {
  return {
    pattern: body.pattern.trim().toLowerCase(),
    note: body.note ?? null,
    enabled: body.enabled ?? true,
    statusCode: body.status_code ?? DEFAULT_STATUS,
    responseBody: body.response_body ?? DEFAULT_BODY,
    contentType: body.content_type ?? DEFAULT_CONTENT_TYPE,
  };
}

export function newBlockEntry(id: string, body: NewBlockEntry, nowMs: number): StoredBlockEntry {
  return { id, ...written(body), hitCount: 0, createdAtMs: nowMs, updatedAtMs: nowMs };
}

/** Replaces the writable fields; id, hits and creation time stay. */
export function updatedBlockEntry(entry: StoredBlockEntry, body: BlockEntryUpdate, nowMs: number): StoredBlockEntry {
  const { id, hitCount, createdAtMs } = entry;
  return { id, ...written(body), hitCount, createdAtMs, updatedAtMs: nowMs };
}

/** The wire form; `extraHits` are not persisted yet. */
export function showBlockEntry(entry: StoredBlockEntry, extraHits: number): BlockEntry {
  return {
    id: entry.id,
    pattern: entry.pattern,
    note: entry.note,
    enabled: entry.enabled,
    hit_count: entry.hitCount + extraHits,
    status_code: entry.statusCode,
    response_body: entry.responseBody,
    content_type: entry.contentType,
    created_at: new Date(entry.createdAtMs).toISOString(),
    updated_at: new Date(entry.updatedAtMs).toISOString(),
    device_id: null,
  };
}

/** The inverse of {@link showBlockEntry}. */
export function readBlockEntry(entry: BlockEntry): StoredBlockEntry {
  return {
    id: entry.id,
    ...written(entry),
    hitCount: entry.hit_count,
    createdAtMs: Date.parse(entry.created_at),
    updatedAtMs: Date.parse(entry.updated_at),
  };
}

/** Checks beyond the schema; paths are JSON pointers into the entry. */
export function blockEntryIssues({ pattern }: NewBlockEntry | BlockEntryUpdate): {
  readonly path: string;
  readonly message: string;
}[] {
  const problem = validateHostPattern(pattern);
  return problem === undefined ? [] : [{ path: "/pattern", message: problem.replace(/\.$/, "") }];
}
