// Tested by focus.slice.test.ts
import { randomUUID } from "node:crypto";
import type { FocusHost, focusOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { validateHostPattern } from "@headworks/host-patterns";
import { notFound, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import type { FocusStore, StoredFocusHost } from "./focus.store.ts";

/** Handlers of the focus patterns' operations. */
export function createFocusOperations(
  { clock, events }: Pick<SliceHost, "clock" | "events">,
  store: FocusStore,
): Handlers<typeof focusOperations> {
  return {
    listFocusHosts: () => ({ status: 200, body: store.list().map(show) }),
    addFocusHost: ({ body }) => {
      const problem = validateHostPattern(body.pattern);
      if (problem !== undefined) throw validationError([{ path: "body/pattern", message: problem.replace(/\.$/, "") }]);
      const added = { id: randomUUID(), pattern: body.pattern.trim().toLowerCase(), createdAtMs: clock.now() };
      const existing = store.add(added);
      if (!existing) events.changed("focus");
      return { status: 201, body: show(existing ?? added) };
    },
    clearFocusHosts: () => {
      if (store.clear() > 0) events.changed("focus");
      return { status: 204 };
    },
    removeFocusHost: ({ params }) => {
      if (!store.remove(params.id)) return notFound("focus pattern", params.id);
      events.changed("focus");
      return { status: 204 };
    },
  };
}

function show({ id, pattern, createdAtMs }: StoredFocusHost): FocusHost {
  return { id, pattern, created_at: new Date(createdAtMs).toISOString() };
}
