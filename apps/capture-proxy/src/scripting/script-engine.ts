import { readFileSync } from "node:fs";
import type { ScriptHook, ScriptTest, ScriptTestResult, TrafficEntry } from "@headworks/capture-contract";
import type { BodyLimits } from "#rules/message-edit.ts";
import type { SliceHost } from "#slice.ts";
import { type CompiledScript, namesBody, scriptSet } from "./compiled-script.ts";
import { type HookCall, ScriptPipeline } from "./script-pipeline.ts";
import { createScriptRunner, type ScriptRunner, type ScriptValues } from "./script-runner.ts";
import { testScript } from "./script-test.ts";

/** A script that runs, and what it sees. */
export interface ActiveScript {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly hooks: ReadonlySet<ScriptHook>;
  readonly onError: CompiledScript["onError"];
  readonly matches: CompiledScript["matches"];
}

export interface ScriptEngineParts {
  readonly host: SliceHost;
  readonly values: ScriptValues;
  readonly onCall: (call: HookCall) => void;
  /** A script cannot run, or can again. */
  readonly onProblem: (scriptId: string) => void;
}

/** Runs scripts for exchanges, and in tests. */
export interface ScriptEngine {
  readonly runner: ScriptRunner;
  readonly pipeline: ScriptPipeline;
  /** Replaces the scripts that run, in the order of execution. */
  load(scripts: readonly ActiveScript[]): void;
  /** Tells scripts of the active session. */
  start(): Promise<void>;
  /** Tells scripts that the session ends, waits for the calls so far and ends the threads. */
  stop(): Promise<void>;
  readonly test: (body: ScriptTest, entry: TrafficEntry | undefined) => Promise<ScriptTestResult>;
  /** The script API as TypeScript declarations. */
  readonly readTypes: () => string;
}

export function createScriptEngine({ host, values, onCall, onProblem }: ScriptEngineParts): ScriptEngine {
  const { clock, settings, store } = host;
  const after: BodyLimits["after"] = (delayMs, callback) => clock.after(delayMs, callback);
  const limits = (): BodyLimits => ({
    bodyBytes: settings.running.rewrite_body_limit,
    waitMs: settings.running.rewrite_body_wait_ms,
    after,
  });
  const runner = createScriptRunner({
    limits: () => ({
      timeoutMs: settings.running.script_timeout_ms,
      memoryLimitMb: settings.running.script_memory_limit_mb,
      capturesConsole: settings.running.script_capture_console,
    }),
    values,
    onProblem,
    after,
  });
  const pipeline = new ScriptPipeline({
    runner,
    limits,
    sessionIdOf: (exchange) => store.sessionIdOf(exchange),
    onCall,
    nowMs: () => clock.now(),
    spool: store.spool,
    maxStoredBytes: () => settings.running.max_body_size,
  });
  store.on("sessionSwitched", (before, now) => {
    pipeline.sessionChanged("on_session_end", before);
    pipeline.sessionChanged("on_session_start", now);
  });
  const tellOfSession = async (hook: "on_session_start" | "on_session_end"): Promise<void> => {
    if (pipeline.scripts[hook].length === 0) return;
    const session = await store.getSession(store.activeSessionId);
    if (session !== undefined) pipeline.sessionChanged(hook, { id: session.id, name: session.name });
  };
  return {
    runner,
    pipeline,
    load: (scripts) => {
      runner.load(scripts.map(({ id, name, source }) => ({ id, name, source })));
      pipeline.scripts = scriptSet(scripts.map((script) => ({ ...script, usesBody: namesBody(script.source) })));
    },
    start: async () => await tellOfSession("on_session_start"),
    stop: async () => {
      await tellOfSession("on_session_end");
      await runner.close();
    },
    test: async (body, entry) => await testScript(body, entry, { runner, limits }),
    readTypes: () => readFileSync(new URL("./script-api.d.ts", import.meta.url), "utf8"),
  };
}
