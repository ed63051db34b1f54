import { randomUUID } from "node:crypto";
import type { FocusHost, focusOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { validateHostPattern } from "@headworks/host-patterns";
import { notFound, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import type { FocusStore, StoredFocusHost } from "./focus.store.ts";

export function createFocusOperations(
  { clock, events }: Pick<SliceHost, "clock" | "events">,
  store: FocusStore,
): Handlers<typeof focusOperations> {
  return {
    listFocusHosts: () => ({ status: 200, body: store.list().map(showFocusHost) }),
    addFocusHost: ({ body }) => {
      const issues = focusPatternIssues({ pattern: body.pattern.trim().toLowerCase() });
      if (issues.length > 0) throw validationError(issues.map(({ message }) => ({ path: "body/pattern", message })));
      const added = { id: randomUUID(), pattern: body.pattern.trim().toLowerCase(), createdAtMs: clock.now() };
      const existing = store.add(added);
      if (!existing) events.changed("focus");
      return { status: 201, body: showFocusHost(existing ?? added) };
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

export function showFocusHost({ id, pattern, createdAtMs }: StoredFocusHost): FocusHost {
  return { id, pattern, created_at: new Date(createdAtMs).toISOString() };
}

/** The inverse of {@link showFocusHost}. */
export function readFocusHost({ id, pattern, created_at: createdAt }: FocusHost): StoredFocusHost {
  return { id, pattern, createdAtMs: Date.parse(createdAt) };
}

/** Checks a pattern in its stored form. */
export function focusPatternIssues({ pattern }: Pick<FocusHost, "pattern">): readonly {
  readonly path: string;
  readonly message: string;
}[] {
  const problem =
    pattern === pattern.trim().toLowerCase()
      ? validateHostPattern(pattern)
      : "must be in lower case, without spaces around it";
  return problem === undefined ? [] : [{ path: "/pattern", message: problem.replace(/\.$/, "") }];
}
