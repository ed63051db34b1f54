import { FocusHost } from "@headworks/capture-contract";
import type { focusOperations } from "@headworks/capture-contract";
import { portableList } from "#portable/portable-list.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { createFocusOperations, focusPatternIssues, readFocusHost, showFocusHost } from "./focus.operations.ts";
import { createFocusStore } from "./focus.store.ts";

/** Host patterns that the web UI highlights; traffic is not affected. */
export function createFocusSlice(host: SliceHost): Slice<typeof focusOperations> {
  const store = createFocusStore(host.database);
  return {
    name: "focus",
    operations: createFocusOperations(host, store),
    portableRules: portableList<FocusHost>({
      key: "focus",
      schemaVersion: 1,
      schemas: [FocusHost],
      uniqueText: ({ pattern }) => pattern,
      list: () => store.list().map(showFocusHost),
      check: focusPatternIssues,
      write: (hosts) => store.replaceAll(hosts.map(readFocusHost)),
      reload: () => host.events.changed("focus"),
    }),
  };
}
