import {
  Script,
  type ScriptFilter,
  type ScriptHook,
  type scriptsOperations,
  ScriptUpdate,
} from "@headworks/capture-contract";
import { portableList } from "#portable/portable-list.ts";
import { RuleTable } from "#rules/rule-table.ts";
import { type ActiveScript, createScriptEngine } from "#scripting/script-engine.ts";
import type { Slice, SliceHost } from "#slice.ts";
import type { Database } from "#storage/database.ts";
import { compileMatchFilter, filterIssues } from "./match-filter.ts";
import { createScriptHistory, createScriptValues, type ScriptHistory, type ScriptValues } from "./script-history.ts";
import { createScriptProblems } from "./script-problems.ts";
import { inRunOrder, readScript, showScript, type StoredScript } from "./script-rule.ts";
import { createScriptsOperations } from "./scripts.operations.ts";

/** Scripts of users that run for exchanges. */
export function createScriptsSlice(
  host: SliceHost,
  createEngine: typeof createScriptEngine = createScriptEngine,
): Slice<typeof scriptsOperations> {
  const { clock, database, events, log, settings } = host;
  const table = createScriptTable(database);
  const values = createScriptValues(database);
  const history = createScriptHistory({
    database,
    clock,
    limit: () => settings.running.script_history_limit,
    exists: (id) => table.find(id) !== undefined,
    onFailure: (error) =>
      log.warn({ err: error }, "executions of scripts could not be saved; they are kept and retried"),
  });
  const engine = createEngine({
    host,
    values,
    onCall: (call) => history.record(call),
    onProblem: () => events.changed("scripts"),
  });
  const { runner } = engine;
  const problems = createScriptProblems(runner);
  const compile = createScriptCompiler();
  let active: readonly ActiveScript[] = [];
  const load = (): void => {
    active = compile(table.list());
    engine.load(active);
  };
  const onChange = (): void => {
    load();
    events.changed("scripts");
  };
  settings.onChange((running, previous) => {
    if (running.script_memory_limit_mb !== previous.script_memory_limit_mb) load();
  });
  load();
  return {
    name: "scripts",
    operations: createScriptsOperations({
      table,
      remove: (id) => removeScript(id, { database, table, values, history }),
      history,
      problems,
      active: () => active,
      validate: (source) => runner.validate(source),
      testScript: (body, entry) => engine.test(body, entry),
      readTypes: engine.readTypes,
      traffic: host.store,
      settings,
      clock,
      onChange,
    }),
    interceptor: engine.pipeline,
    storeFilter: engine.pipeline.createStoreFilter(),
    task: {
      start: (signal) => {
        history.start(signal);
        engine
          .start()
          .catch((error: unknown) => log.warn({ err: error }, "scripts were not told of the active session"));
      },
      stopped: async () => {
        await engine.stop();
        history.flush();
      },
    },
    portableRules: portableList<Script>({
      key: "scripts",
      schemaVersion: 1,
      schemas: [Script, ScriptUpdate],
      list: () => table.list().map((script) => showScript(script, null)),
      check: ({ match_filter: filter }) =>
        filterIssues(filter).map(({ path, message }) => ({ path: `/match_filter${path}`, message })),
      write: (scripts) => {
        table.replaceAll(scripts.map(readScript));
        values.forgetDeleted();
      },
      reload: () => {
        table.reload();
        history.forgetDeleted();
        onChange();
      },
    }),
  };
}

/** The enabled scripts in the order of execution. An unchanged script stays the same object. */
function createScriptCompiler(): (scripts: readonly StoredScript[]) => readonly ActiveScript[] {
  const compiled = new WeakMap<StoredScript, ActiveScript>();
  return (scripts) =>
    inRunOrder(scripts)
      .filter(({ enabled }) => enabled)
      .map((script) => {
        const known = compiled.get(script);
        if (known !== undefined) return known;
        const { id, name, source, hooks, onError, matchFilter } = script;
        const made = { id, name, source, hooks: new Set(hooks), onError, matches: compileMatchFilter(matchFilter) };
        compiled.set(script, made);
        return made;
      });
}

function removeScript(
  id: string,
  parts: {
    readonly database: Database;
    readonly table: RuleTable<StoredScript>;
    readonly values: ScriptValues;
    readonly history: ScriptHistory;
  },
): boolean {
  const { database, table, values, history } = parts;
  try {
    const isRemoved = database.transaction(() => {
      if (!table.remove(id)) return false;
      values.forgetDeleted();
      return true;
    });
    if (isRemoved) history.forgetDeleted();
    return isRemoved;
  } catch (error) {
    // The copy in memory must match the disk.
    table.reload();
    throw error;
  }
}

function createScriptTable(database: Database): RuleTable<StoredScript> {
  return new RuleTable(database, {
    table: "scripts",
    columns: {
      name: ({ name }) => name,
      description: ({ description }) => description,
      source: ({ source }) => source,
      hooks: ({ hooks }) => JSON.stringify(hooks),
      match_filter: ({ matchFilter }) => (matchFilter === null ? null : JSON.stringify(matchFilter)),
      on_error: ({ onError }) => onError,
      priority: ({ priority }) => priority,
    },
    read: (row) => {
      const { description, match_filter: filter } = row;
      return {
        name: String(row["name"]),
        description: description === null ? null : String(description),
        source: String(row["source"]),
        hooks: JSON.parse(String(row["hooks"])) as ScriptHook[],
        matchFilter: filter === null ? null : (JSON.parse(String(filter)) as ScriptFilter),
        onError: String(row["on_error"]) as StoredScript["onError"],
        priority: Number(row["priority"]),
      };
    },
  });
}
