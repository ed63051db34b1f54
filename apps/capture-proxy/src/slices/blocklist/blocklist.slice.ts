import { createHitCounter } from "#rules/hit-counter.ts";
import { BlockEntry, BlockEntryUpdate } from "@headworks/capture-contract";
import type { blocklistOperations } from "@headworks/capture-contract";
import { portableList } from "#portable/portable-list.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { blockEntryIssues, readBlockEntry, showBlockEntry } from "./block-entry.ts";
import { compileBlockRules } from "./blocklist.compile.ts";
import type { BlockRules } from "./blocklist.compile.ts";
import { createBlocklistInterceptor } from "./blocklist.interceptor.ts";
import { createBlocklistOperations } from "./blocklist.operations.ts";
import { createBlocklistStore } from "./blocklist.store.ts";

/** Hosts whose requests get a response of the proxy. */
export function createBlocklistSlice(host: SliceHost): Slice<typeof blocklistOperations> {
  const { clock, log, events } = host;
  const store = createBlocklistStore(host.database);
  const compile = (): BlockRules => {
    const compiled = compileBlockRules(store.list());
    if (compiled.issues.length > 0) {
      log.error({ issues: compiled.issues }, "block entries with unreadable patterns block nothing");
    }
    return compiled;
  };
  let rules = compile();
  const hits = createHitCounter({
    addHits: (batch) => store.addHits(batch),
    every: (intervalMs, callback) => clock.every(intervalMs, callback),
    onFailure: (error) =>
      log.warn({ err: error }, "hit counts of the block list could not be saved; they are kept and will be retried"),
  });
  const onChange = (): void => {
    rules = compile();
    events.changed("blocklist");
  };
  return {
    name: "blocklist",
    operations: createBlocklistOperations({ store, hits, clock, onChange }),
    interceptor: createBlocklistInterceptor({ rules: () => rules, onHit: (entryId) => hits.hit(entryId) }),
    task: hits,
    portableRules: portableList<BlockEntry>({
      key: "block_list",
      schemaVersion: 1,
      schemas: [BlockEntry, BlockEntryUpdate],
      list: () => store.list().map((entry) => showBlockEntry(entry, hits.pending(entry.id))),
      check: blockEntryIssues,
      write: (entries) => store.replaceAll(entries.map(readBlockEntry)),
      reload: () => {
        hits.forgetAll();
        store.reload();
        onChange();
      },
    }),
  };
}
