import { randomUUID } from "node:crypto";
import type { BlockEntryUpdate, NewBlockEntry, blocklistOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound, validationError } from "#api/api-error.ts";
import type { Clock } from "#slice.ts";
import { blockEntryIssues, newBlockEntry, showBlockEntry, updatedBlockEntry } from "./block-entry.ts";
import type { StoredBlockEntry } from "./block-entry.ts";
import type { BlocklistStore } from "./blocklist.store.ts";
import type { HitCounter } from "#rules/hit-counter.ts";

export interface BlocklistOperationsParts {
  readonly store: BlocklistStore;
  readonly hits: HitCounter;
  readonly clock: Clock;
  /** Recompiles the stored entries and notifies clients. */
  readonly onChange: () => void;
}

export function createBlocklistOperations({
  store,
  hits,
  clock,
  onChange,
}: BlocklistOperationsParts): Handlers<typeof blocklistOperations> {
  const find = (id: string): StoredBlockEntry => store.find(id) ?? notFound("block entry", id);
  const replace = (entry: StoredBlockEntry): StoredBlockEntry => {
    if (!store.update(entry)) return notFound("block entry", entry.id);
    onChange();
    return entry;
  };
  const show = (entry: StoredBlockEntry) => showBlockEntry(entry, hits.pending(entry.id));
  return {
    listBlockEntries: () => ({ status: 200, body: store.list().reverse().map(show) }),
    createBlockEntry: ({ body }) => {
      checkWritten(body);
      const entry = newBlockEntry(randomUUID(), body, clock.now());
      store.insert(entry);
      onChange();
      return { status: 201, body: { id: entry.id } };
    },
    getBlocklistStats: () => {
      const entries = store.list();
      const enabled = entries.filter((entry) => entry.enabled).length;
      const totalHits = entries.reduce((sum, entry) => sum + entry.hitCount + hits.pending(entry.id), 0);
      return {
        status: 200,
        body: { total: entries.length, enabled, disabled: entries.length - enabled, total_hits: totalHits },
      };
    },
    getBlockEntry: ({ params }) => ({ status: 200, body: show(find(params.id)) }),
    updateBlockEntry: ({ params, body }) => {
      checkWritten(body);
      return { status: 200, body: show(replace(updatedBlockEntry(find(params.id), body, clock.now()))) };
    },
    deleteBlockEntry: ({ params }) => {
      if (!store.remove(params.id)) return notFound("block entry", params.id);
      hits.forget(params.id);
      onChange();
      return { status: 204 };
    },
    toggleBlockEntry: ({ params, body }) => {
      const entry = find(params.id);
      const enabled = body?.enabled ?? !entry.enabled;
      if (enabled !== entry.enabled) replace({ ...entry, enabled, updatedAtMs: clock.now() });
      return { status: 200, body: { id: entry.id, enabled } };
    },
  };
}

function checkWritten(body: NewBlockEntry | BlockEntryUpdate): void {
  const issues = blockEntryIssues(body);
  if (issues.length > 0) throw validationError(issues.map(({ path, message }) => ({ path: `body${path}`, message })));
}
