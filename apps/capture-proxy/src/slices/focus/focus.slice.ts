import { randomUUID } from "node:crypto";
import { FocusHost, type focusOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { validateHostPattern } from "@headworks/host-patterns";
import { notFound, validationError } from "#api/api-error.ts";
import { portableList } from "#portable/portable-list.ts";
import type { Slice, SliceHost } from "#slice.ts";
import type { Database, SqlRow } from "#storage/database.ts";

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

function createFocusOperations(
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

function showFocusHost({ id, pattern, createdAtMs }: StoredFocusHost): FocusHost {
  return { id, pattern, created_at: new Date(createdAtMs).toISOString() };
}

/** The inverse of {@link showFocusHost}. */
function readFocusHost({ id, pattern, created_at: createdAt }: FocusHost): StoredFocusHost {
  return { id, pattern, createdAtMs: Date.parse(createdAt) };
}

/** Checks a pattern in its stored form. */
function focusPatternIssues({ pattern }: Pick<FocusHost, "pattern">): readonly {
  readonly path: string;
  readonly message: string;
}[] {
  const problem =
    pattern === pattern.trim().toLowerCase()
      ? validateHostPattern(pattern)
      : "must be in lower case, without spaces around it";
  return problem === undefined ? [] : [{ path: "/pattern", message: problem.replace(/\.$/, "") }];
}

interface StoredFocusHost {
  readonly id: string;
  readonly pattern: string;
  readonly createdAtMs: number;
}

/** Stored focus patterns; changes are durable when a call returns. */
interface FocusStore {
  list(): StoredFocusHost[];
  /** Returns the existing entry of the same pattern, or undefined after storing the new one. */
  add(host: StoredFocusHost): StoredFocusHost | undefined;
  remove(id: string): boolean;
  /** Returns the number of removed patterns. */
  clear(): number;
  replaceAll(hosts: readonly StoredFocusHost[]): void;
}

function createFocusStore(database: Database): FocusStore {
  const list = database.prepare("SELECT * FROM focus_hosts ORDER BY position");
  const find = database.prepare("SELECT * FROM focus_hosts WHERE pattern = ?");
  const insert = database.prepare(
    "INSERT INTO focus_hosts (id, pattern, created_at_ms, position) VALUES (?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM focus_hosts))",
  );
  const remove = database.prepare("DELETE FROM focus_hosts WHERE id = ?");
  const clear = database.prepare("DELETE FROM focus_hosts");
  return {
    list: () => list.all().map(toHost),
    add: (host) =>
      database.transaction(() => {
        const existing = find.get(host.pattern);
        if (existing) return toHost(existing);
        insert.run(host.id, host.pattern, host.createdAtMs);
        return undefined;
      }),
    remove: (id) => remove.run(id).changes > 0,
    clear: () => clear.run().changes,
    replaceAll: (hosts) =>
      database.transaction(() => {
        clear.run();
        for (const { id, pattern, createdAtMs } of hosts) insert.run(id, pattern, createdAtMs);
      }),
  };
}

function toHost(row: SqlRow): StoredFocusHost {
  return { id: String(row["id"]), pattern: String(row["pattern"]), createdAtMs: Number(row["created_at_ms"]) };
}
