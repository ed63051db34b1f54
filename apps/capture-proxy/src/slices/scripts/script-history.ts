import type { ScriptExecution, ScriptHook } from "@headworks/capture-contract";
import type { HookCall } from "#scripting/script-pipeline.ts";
import type { Clock } from "#slice.ts";
import type { Database, SqlRow } from "#storage/database.ts";

/** Executions are written in batches, one transaction each; a crash loses at most this interval. */
const PERSIST_EVERY_MS = 2000;
/** A larger batch would block the thread noticeably; what is left follows after a pause. */
const MAX_BATCH = 500;
const PAUSE_MS = 50;

/** The newest executions of all scripts. Reads include executions that are not written yet. */
export interface ScriptHistory {
  /** Writes periodically, and a last time when the signal aborts. */
  start(signal: AbortSignal): void;
  record(execution: HookCall): void;
  /** Writes what waits. */
  flush(): void;
  /** Of one script, or of all that exist; newest first. */
  list(limit: number, scriptId?: string): ScriptExecution[];
  count(scriptId?: string): number;
  /** Of one entry, oldest first; of deleted scripts too. */
  ofEntry(entryId: string): ScriptExecution[];
  clear(scriptId: string): void;
  /** Removes executions of deleted scripts, except those of entries. */
  forgetDeleted(): void;
}

/** Limit of the executions that are shown with an entry. */
const MAX_TRACES = 200;

export function createScriptHistory(parts: {
  readonly database: Database;
  readonly clock: Pick<Clock, "every" | "after">;
  /** Number of executions that are kept. */
  readonly limit: () => number;
  readonly exists: (scriptId: string) => boolean;
  readonly onFailure: (error: unknown) => void;
}): ScriptHistory {
  const { database, limit, exists } = parts;
  const sql = prepared(database);
  let waiting: HookCall[] = [];
  let stored = Number(sql.countAll.get()?.["count"]);

  const save = (batch: readonly HookCall[]): void => {
    let removed = 0;
    database.transaction(() => {
      for (const execution of batch) sql.add.run(...valuesOf(execution));
      const excess = stored + batch.length - limit();
      if (excess > 0) removed = sql.removeOldest.run(excess).changes;
    });
    stored += batch.length - removed;
  };
  /** Writes the oldest of what waits; false if nothing more can be written now. */
  const persist = (): boolean => {
    const kept = limit();
    if (waiting.length > kept) waiting = kept === 0 ? [] : waiting.slice(-kept);
    if (waiting.length === 0 && stored <= kept) return false;
    const batch = waiting.slice(0, MAX_BATCH);
    try {
      save(batch);
    } catch (error) {
      // The batch is retried.
      parts.onFailure(error);
      return false;
    }
    waiting = waiting.slice(batch.length);
    return waiting.length > 0;
  };
  const persistAll = (): void => {
    while (persist());
  };
  let isContinuing = false;
  const persistAndContinue = (): void => {
    isContinuing = persist();
    if (isContinuing) parts.clock.after(PAUSE_MS, persistAndContinue);
  };
  const read = (isWanted: (execution: HookCall) => boolean): ScriptExecution[] => {
    persist();
    return waiting.filter(isWanted).map(showExecution);
  };
  const isOf = (scriptId: string | undefined) => (execution: HookCall) =>
    scriptId === undefined ? exists(execution.scriptId) : execution.scriptId === scriptId;
  return {
    start: (signal) => {
      const stop = parts.clock.every(PERSIST_EVERY_MS, () => {
        if (!isContinuing) persistAndContinue();
      });
      signal.addEventListener("abort", () => {
        stop();
        persistAll();
      });
    },
    record: (execution) => {
      if (limit() === 0) return;
      waiting.push(execution);
      // Removing one element at a time would copy the array for each execution.
      if (waiting.length > 2 * limit()) waiting = waiting.slice(-limit());
    },
    flush: persistAll,
    list: (count, scriptId) => {
      const unwritten = read(isOf(scriptId)).reverse();
      const rows = scriptId === undefined ? sql.newest.all(count) : sql.newestOfScript.all(scriptId, count);
      return [...unwritten, ...rows.map(toExecution)].slice(0, count);
    },
    count: (scriptId) => {
      const unwritten = read(isOf(scriptId)).length;
      const row = scriptId === undefined ? sql.count.get() : sql.countOfScript.get(scriptId);
      return unwritten + Number(row?.["count"]);
    },
    ofEntry: (entryId) => {
      const unwritten = read((execution) => execution.entryId === entryId);
      return [...sql.ofEntry.all(entryId).map(toExecution), ...unwritten].slice(0, MAX_TRACES);
    },
    clear: (scriptId) => {
      waiting = waiting.filter((execution) => execution.scriptId !== scriptId);
      stored -= sql.clear.run(scriptId).changes;
    },
    forgetDeleted: () => {
      waiting = waiting.filter(({ entryId, scriptId }) => entryId !== null || exists(scriptId));
      stored -= sql.removeDeleted.run().changes;
    },
  };
}

function prepared(database: Database) {
  const existing = "script_id IN (SELECT id FROM scripts)";
  return {
    countAll: database.prepare("SELECT COUNT(*) AS count FROM script_executions"),
    count: database.prepare(`SELECT COUNT(*) AS count FROM script_executions WHERE ${existing}`),
    countOfScript: database.prepare("SELECT COUNT(*) AS count FROM script_executions WHERE script_id = ?"),
    add: database.prepare(
      `INSERT INTO script_executions (script_id, script_name, hook, entry_id, duration_ms, error, console, changes, at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    removeOldest: database.prepare(
      "DELETE FROM script_executions WHERE number IN (SELECT number FROM script_executions ORDER BY number LIMIT ?)",
    ),
    newest: database.prepare(`SELECT * FROM script_executions WHERE ${existing} ORDER BY number DESC LIMIT ?`),
    newestOfScript: database.prepare(
      "SELECT * FROM script_executions WHERE script_id = ? ORDER BY number DESC LIMIT ?",
    ),
    ofEntry: database.prepare(
      `SELECT * FROM script_executions WHERE entry_id = ? ORDER BY number LIMIT ${String(MAX_TRACES)}`,
    ),
    clear: database.prepare("DELETE FROM script_executions WHERE script_id = ?"),
    removeDeleted: database.prepare(
      "DELETE FROM script_executions WHERE entry_id IS NULL AND script_id NOT IN (SELECT id FROM scripts)",
    ),
  };
}

function valuesOf(execution: HookCall) {
  const { scriptId, scriptName, hook, entryId, durationMs, error, console, changes, atMs } = execution;
  return [
    scriptId,
    scriptName,
    hook,
    entryId,
    durationMs,
    error,
    JSON.stringify(console),
    JSON.stringify(changes),
    atMs,
  ];
}

function showExecution(execution: HookCall): ScriptExecution {
  const { scriptId, scriptName, hook, entryId, durationMs, error, console, changes, atMs } = execution;
  return {
    script_id: scriptId,
    script_name: scriptName,
    ...(hook === null ? {} : { hook }),
    ...(entryId === null ? {} : { traffic_entry_id: entryId }),
    duration_ms: durationMs,
    success: error === null,
    error,
    console: [...console],
    changes: [...changes],
    timestamp: new Date(atMs).toISOString(),
  };
}

function toExecution(row: SqlRow): ScriptExecution {
  const { hook, entry_id: entryId, error } = row;
  return showExecution({
    scriptId: String(row["script_id"]),
    scriptName: String(row["script_name"]),
    hook: hook === null ? null : (String(hook) as ScriptHook),
    entryId: entryId === null ? null : String(entryId),
    durationMs: Number(row["duration_ms"]),
    error: error === null ? null : String(error),
    console: JSON.parse(String(row["console"])) as string[],
    changes: JSON.parse(String(row["changes"])) as string[],
    atMs: Number(row["at_ms"]),
  });
}

/** Limit of the keys and values of one script, in bytes of UTF-8. */
export const MAX_VALUES_BYTES = 1_048_576;

/** The values that scripts keep between executions and restarts. */
export interface ScriptValues {
  /** By script id, then by key. */
  all(): Map<string, Record<string, string>>;
  /**
   * Sets values, and removes those that are null: all or none, durable on return. Throws a `RangeError` above
   * {@link MAX_VALUES_BYTES}. Values of a script that was deleted are dropped.
   */
  write(scriptId: string, changes: Readonly<Record<string, string | null>>): void;
  /** Removes the values of deleted scripts. */
  forgetDeleted(): void;
}

export function createScriptValues(database: Database): ScriptValues {
  const all = database.prepare("SELECT * FROM script_values ORDER BY script_id, key");
  const set = database.prepare(
    `INSERT INTO script_values (script_id, key, value) SELECT id, ?, ? FROM scripts WHERE id = ?
     ON CONFLICT (script_id, key) DO UPDATE SET value = excluded.value`,
  );
  const remove = database.prepare("DELETE FROM script_values WHERE script_id = ? AND key = ?");
  const removeDeleted = database.prepare("DELETE FROM script_values WHERE script_id NOT IN (SELECT id FROM scripts)");
  const size = database.prepare(
    "SELECT COALESCE(SUM(octet_length(key) + octet_length(value)), 0) AS bytes FROM script_values WHERE script_id = ?",
  );
  return {
    all: () => {
      const values = new Map<string, Record<string, string>>();
      for (const row of all.iterate()) {
        const id = String(row["script_id"]);
        const known = values.get(id) ?? (Object.create(null) as Record<string, string>);
        known[String(row["key"])] = String(row["value"]);
        values.set(id, known);
      }
      return values;
    },
    write: (scriptId, changes) =>
      database.transaction(() => {
        for (const [key, value] of Object.entries(changes)) {
          if (value === null) remove.run(scriptId, key);
          else set.run(key, value, scriptId);
        }
        const bytes = Number(size.get(scriptId)?.["bytes"]);
        if (bytes <= MAX_VALUES_BYTES) return;
        throw new RangeError(
          `The stored values of a script are limited to ${MAX_VALUES_BYTES} bytes, keys included; these have ${bytes}`,
        );
      }),
    forgetDeleted: () => {
      removeDeleted.run();
    },
  };
}
