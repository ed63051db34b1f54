import { randomUUID } from "node:crypto";
import type {
  NewScript,
  ScriptConfig,
  ScriptConfigUpdate,
  ScriptHook,
  ScriptMatchPreview,
  ScriptTest,
  ScriptTestResult,
  ScriptUpdate,
  ScriptValidation,
  scriptsOperations,
  Settings,
  TrafficEntry,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { changeSettings, notFound, validationError } from "#api/api-error.ts";
import type { RuleTable } from "#rules/rule-table.ts";
import type { ActiveScript } from "#scripting/script-engine.ts";
import type { Clock, SliceHost } from "#slice.ts";
import { filterIssues, type FilteredRequest } from "./match-filter.ts";
import type { ScriptHistory } from "./script-history.ts";
import { problemText, type ScriptProblems } from "./script-problems.ts";
import {
  hasSameHooks,
  inRunOrder,
  moved,
  newScript,
  showMatch,
  showScript,
  type StoredScript,
  updatedScript,
} from "./script-rule.ts";
import { SCRIPT_TEMPLATES } from "./script-templates.ts";

const DEFAULT_HISTORY = 100;
const DEFAULT_SCRIPT_HISTORY = 50;
const BYTES_PER_MIB = 1_048_576;

export interface ScriptsOperationsParts {
  readonly table: RuleTable<StoredScript>;
  /** Removes a script with its values and its history; false if it does not exist. */
  readonly remove: (id: string) => boolean;
  readonly history: ScriptHistory;
  readonly problems: ScriptProblems;
  readonly active: () => readonly ActiveScript[];
  readonly validate: (source: string) => Promise<ScriptValidation>;
  readonly testScript: (body: ScriptTest, entry: TrafficEntry | undefined) => Promise<ScriptTestResult>;
  readonly readTypes: () => string;
  readonly traffic: Pick<SliceHost["store"], "getEntry" | "getRow">;
  readonly settings: SliceHost["settings"];
  readonly clock: Clock;
  readonly onChange: () => void;
}

type All = Handlers<typeof scriptsOperations>;
type HistoryOperation = "listScriptHistory" | "getScriptHistory" | "clearScriptHistory" | "getScriptTraces";
type LimitOperation = "getScriptConfig" | "updateScriptConfig";
type TrialOperation = "testScript" | "validateScript" | "previewScriptMatches";

export function createScriptsOperations(parts: ScriptsOperationsParts): All {
  return {
    ...scriptOperations(parts),
    ...historyOperations(parts),
    ...configOperations(parts),
    ...trialOperations(parts),
    listScriptTemplates: () => ({ status: 200, body: [...SCRIPT_TEMPLATES] }),
    getScriptTypes: () => ({ status: 200, body: parts.readTypes() }),
  };
}

function scriptOperations(
  parts: ScriptsOperationsParts,
): Omit<All, HistoryOperation | LimitOperation | TrialOperation | "listScriptTemplates" | "getScriptTypes"> {
  const { table, problems, clock, onChange } = parts;
  const find = (id: string): StoredScript => table.find(id) ?? notFound("script", id);
  const replace = (script: StoredScript): void => {
    if (!table.update(script)) notFound("script", script.id);
    onChange();
  };
  return {
    listScripts: async () => {
      await problems.check(table.list());
      const scripts = inRunOrder(table.list());
      const body = scripts.map((script) => showScript(script, problems.problemOf(script)));
      return { status: 200, headers: { "x-total-count": String(scripts.length) }, body };
    },
    createScript: async ({ body }) => {
      const declared = await checked(parts, body);
      const script = newScript(randomUUID(), body, declared, clock.now());
      table.insert(script);
      onChange();
      return { status: 201, body: { id: script.id, script: showScript(script, null) } };
    },
    getScript: async ({ params }) => {
      await problems.check(table.list());
      const script = find(params.id);
      return { status: 200, body: showScript(script, problems.problemOf(script)) };
    },
    updateScript: async ({ params, body }) => {
      const before = find(params.id);
      const isNewSource = body.source !== undefined && body.source !== before.source;
      const declared = isNewSource ? await checked(parts, body) : [];
      if (!isNewSource) refuseFilter(body);
      const followsSource =
        isNewSource && hasSameHooks(before.hooks, (await parts.validate(before.source)).hooks ?? []);
      // The script may have changed meanwhile.
      const script = find(params.id);
      replace(updatedScript(script, body, followsSource ? declared : script.hooks, clock.now()));
      return { status: 204 };
    },
    deleteScript: ({ params }) => {
      if (!parts.remove(params.id)) return notFound("script", params.id);
      onChange();
      return { status: 204 };
    },
    toggleScript: ({ params, body }) => {
      const script = find(params.id);
      const enabled = body?.enabled ?? !script.enabled;
      if (enabled !== script.enabled) replace({ ...script, enabled, updatedAtMs: clock.now() });
      return { status: 200, body: { id: script.id, enabled } };
    },
    reorderScript: ({ params, body: { direction, priority } }) => {
      if (direction !== undefined && priority !== undefined) {
        throw validationError([{ path: "body/priority", message: "cannot be combined with direction" }]);
      }
      const script = find(params.id);
      if (priority !== undefined) {
        if (priority !== script.priority) replace({ ...script, priority, updatedAtMs: clock.now() });
        return { status: 204 };
      }
      if (direction === undefined) throw validationError([{ path: "body", message: "needs direction or priority" }]);
      const changed = moved(table.list(), script.id, direction);
      if (changed === undefined) {
        const end = direction === "up" ? "first" : "last";
        throw validationError([{ path: "body/direction", message: `the script is already the ${end} one` }]);
      }
      const updatedAtMs = clock.now();
      table.updateAll(changed.map((each) => ({ ...each, updatedAtMs })));
      onChange();
      return { status: 204 };
    },
  };
}

/** Returns the hooks that the source declares. Throws 400 for a source that cannot run, and for an invalid filter. */
async function checked(
  { validate }: ScriptsOperationsParts,
  body: NewScript | (ScriptUpdate & { readonly source?: string }),
): Promise<readonly ScriptHook[]> {
  refuseFilter(body);
  const validation = await validate(body.source ?? "");
  const problem = problemText(validation);
  if (problem !== null) throw validationError([{ path: "body/source", message: problem }]);
  return validation.hooks ?? [];
}

function refuseFilter({ match_filter: filter }: Pick<ScriptUpdate, "match_filter">): void {
  const issues = filterIssues(filter);
  if (issues.length === 0) return;
  throw validationError(issues.map(({ path, message }) => ({ path: `body/match_filter${path}`, message })));
}

function historyOperations({ table, history, traffic }: ScriptsOperationsParts): Pick<All, HistoryOperation> {
  const known = (id: string): string => (table.find(id) ?? notFound("script", id)).id;
  return {
    listScriptHistory: ({ query: { limit = DEFAULT_HISTORY } }) => ({
      status: 200,
      headers: { "x-total-count": String(history.count()) },
      body: history.list(limit),
    }),
    getScriptHistory: ({ params, query: { limit = DEFAULT_SCRIPT_HISTORY } }) => {
      const id = known(params.id);
      const headers = { "x-total-count": String(history.count(id)) };
      return { status: 200, headers, body: history.list(limit, id) };
    },
    clearScriptHistory: ({ params }) => {
      history.clear(known(params.id));
      return { status: 204 };
    },
    getScriptTraces: async ({ params }) => {
      if ((await traffic.getRow(params.id)) === undefined) return notFound("entry", params.id);
      return { status: 200, body: history.ofEntry(params.id) };
    },
  };
}

function configOperations({ settings }: ScriptsOperationsParts): Pick<All, LimitOperation> {
  return {
    getScriptConfig: () => ({ status: 200, body: showConfig(settings.running) }),
    updateScriptConfig: ({ body }) => {
      const now = showConfig(settings.running);
      const megabytes = chosen(body, now, "memory_limit_mb", "max_memory_bytes", (bytes) => bytes / BYTES_PER_MIB);
      const capture = chosen(body, now, "capture_console", "enable_console", (isOn) => isOn);
      const change = {
        ...(body.timeout_ms !== undefined && { script_timeout_ms: body.timeout_ms }),
        ...(body.history_limit !== undefined && { script_history_limit: body.history_limit }),
        ...(megabytes !== undefined && { script_memory_limit_mb: megabytes }),
        ...(capture !== undefined && { script_capture_console: capture }),
      };
      if (Object.keys(change).length > 0) changeSettings("script_", () => settings.patch(change));
      return { status: 200, body: showConfig(settings.running) };
    },
  };
}

function showConfig(settings: Settings): ScriptConfig {
  return {
    timeout_ms: settings.script_timeout_ms,
    memory_limit_mb: settings.script_memory_limit_mb,
    capture_console: settings.script_capture_console,
    history_limit: settings.script_history_limit,
    max_memory_bytes: settings.script_memory_limit_mb * BYTES_PER_MIB,
    enable_console: settings.script_capture_console,
    allow_network: false,
    allow_fs: false,
  };
}

/** The value of a setting with two names: the one that differs from the current value. */
function chosen<Name extends keyof ScriptConfigUpdate, Other extends keyof ScriptConfigUpdate>(
  body: ScriptConfigUpdate,
  now: ScriptConfig,
  name: Name,
  otherName: Other,
  read: (value: NonNullable<ScriptConfigUpdate[Other]>) => ScriptConfig[Name],
): ScriptConfig[Name] | undefined {
  const value = body[name] as ScriptConfig[Name] | undefined;
  const other = body[otherName];
  if (other === undefined || other === null) return value;
  const otherValue = read(other);
  if (value === undefined || value === now[name]) return otherValue;
  if (otherValue === now[name] || otherValue === value) return value;
  throw validationError([{ path: `body/${otherName}`, message: `contradicts ${name}` }]);
}

function trialOperations(parts: ScriptsOperationsParts): Pick<All, TrialOperation> {
  return {
    testScript: async ({ body }) => ({
      status: 200,
      body: await parts.testScript(body, await testedEntry(parts, body)),
    }),
    validateScript: async ({ body }) => ({ status: 200, body: await parts.validate(body.source) }),
    previewScriptMatches: async ({ body }) => {
      await parts.problems.check(parts.table.list());
      const request = previewedRequest(body);
      const matching = parts
        .active()
        .filter(
          ({ hooks, matches }) =>
            (body.hook === undefined ? [...hooks].some(isOfExchange) : hooks.has(body.hook)) && matches(request),
        );
      const scripts = matching.flatMap(({ id }) => parts.table.find(id) ?? []);
      const runnable = scripts.filter((script) => parts.problems.problemOf(script) === null);
      return { status: 200, body: runnable.map(showMatch) };
    },
  };
}

/** The hooks of sessions are not about a request. */
function isOfExchange(hook: ScriptHook): boolean {
  return hook !== "on_session_start" && hook !== "on_session_end";
}

async function testedEntry({ traffic }: ScriptsOperationsParts, body: ScriptTest): Promise<TrafficEntry | undefined> {
  const { entry_id: id, request, response } = body;
  if (id === undefined) return undefined;
  if (request !== undefined || response !== undefined) {
    const path = `body/${request === undefined ? "response" : "request"}`;
    throw validationError([{ path, message: "cannot be combined with entry_id" }]);
  }
  const entry = await traffic.getEntry(id, { includeBodies: true, decompressed: false });
  if (entry === undefined) return notFound("traffic entry", id);
  if (!entry.is_passthrough) return entry;
  throw validationError([
    { path: "body/entry_id", message: "a tunnel whose content was not captured has no messages for a script" },
  ]);
}

function previewedRequest({ url, method = "GET", host, path }: ScriptMatchPreview): FilteredRequest {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw validationError([{ path: "body/url", message: "must be an absolute URL" }]);
  }
  return {
    method,
    url,
    host: host ?? parsed.hostname.replace(/^\[|\]$/g, ""),
    path: path ?? parsed.pathname + parsed.search,
  };
}
