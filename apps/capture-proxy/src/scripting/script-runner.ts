import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { HOOK_FUNCTIONS, SCRIPT_HOOKS, type ScriptHook, type ScriptValidation } from "@headworks/capture-contract";
import type { RawFields } from "@headworks/http1";
import { createSandbox, type GuestFault, type GuestProgram, type GuestValue, type Sandbox } from "@headworks/sandbox";
import { checkedOutput, type HookOutput } from "./hook-output.ts";

const FUNCTION_NAMES = Object.values(HOOK_FUNCTIONS);
const FILENAME = "script.js";
/** Each script has a thread of its own up to this number; then scripts share threads. */
const MAX_THREADS = 4;
/** A test's thread is kept for the next one, since editors validate while a person types. */
const IDLE_TEST_THREAD_MS = 30_000;
const MIB = 1_048_576;

/** `text`, `bytes` or `none`: what is passed as the body; any other text: why the body is missing. */
export type BodyForm = string;

/** Data of a hook's call; JSON. */
export interface HookInput {
  readonly context: Readonly<Record<string, unknown>>;
  readonly request?: { readonly method: string; readonly url: string; readonly fields: Readonly<RawFields> };
  readonly requestBody?: BodyForm;
  readonly response?: {
    readonly status: number;
    readonly reason: string;
    readonly fields: Readonly<RawFields>;
    readonly durationMs: number | null;
  };
  readonly responseBody?: BodyForm;
  /** JSON text of `context.data`; undefined: `{}`. */
  readonly data?: string | undefined;
}

export interface HookOutcome {
  readonly durationMs: number;
  readonly error: string | null;
  readonly console: readonly string[];
  /** Undefined: the script changed nothing. */
  readonly output: HookOutput | undefined;
  /** Changed bodies, in the order of the call's bodies. */
  readonly bodies: readonly GuestValue[];
}

export interface LoadedScript {
  readonly id: string;
  readonly name: string;
  readonly source: string;
}

/** Small values that scripts keep, by script and key; JSON texts. */
export interface ScriptValues {
  all(): ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** Durable when the call returns; null removes a key. */
  write(scriptId: string, changes: Readonly<Record<string, string | null>>): void;
}

export interface ScriptLimits {
  readonly timeoutMs: number;
  readonly memoryLimitMb: number;
  readonly capturesConsole: boolean;
}

export interface ScriptRunnerParts {
  readonly limits: () => ScriptLimits;
  readonly values: ScriptValues;
  /** A script that was loaded cannot run, or can again. */
  readonly onProblem: (scriptId: string) => void;
  readonly after: (delayMs: number, callback: () => void) => () => void;
}

/** Runs scripts in threads. */
export interface ScriptRunner {
  /** Replaces the loaded scripts; unchanged ones keep their top-level state. */
  load(scripts: readonly LoadedScript[]): void;
  /** Why a loaded script cannot run; undefined if it can. */
  problemOf(scriptId: string): string | undefined;
  /** Calls a hook of a loaded script. Never rejects. */
  call(scriptId: string, hook: ScriptHook, input: HookInput, bodies: readonly GuestValue[]): Promise<HookOutcome>;
  /** Calls a hook of a source that is loaded for this call only; its store is empty and forgotten. */
  callOnce(source: string, hook: ScriptHook, input: HookInput, bodies: readonly GuestValue[]): Promise<HookOutcome>;
  validate(source: string): Promise<ScriptValidation>;
  /** Waits for the calls so far, which their timeouts bound, and ends the threads. */
  close(): Promise<void>;
}

export function createScriptRunner(parts: ScriptRunnerParts): ScriptRunner {
  const prelude = readFileSync(new URL("./script-api.js", import.meta.url), "utf8");
  const sandbox = createSandbox({ prelude, maxThreads: MAX_THREADS, threadName: "weir-scripts" });
  const tests = createTestSandbox(prelude, parts.after);
  const loaded = new Map<string, string>();
  const problems = new Map<string, string>();
  const calls = new Set<Promise<unknown>>();

  const programOf = (key: string, source: string, values: GuestProgram["values"]): GuestProgram =>
    program(key, source, values, parts.limits());
  const call = async (
    target: Sandbox,
    key: string,
    hook: ScriptHook,
    input: HookInput,
    bodies: readonly GuestValue[],
  ): Promise<HookOutcome & { readonly changedValues?: Readonly<Record<string, string | null>> }> => {
    const { timeoutMs, capturesConsole } = parts.limits();
    const args = [JSON.stringify(input), ...bodies];
    const outcome = await target.call(key, HOOK_FUNCTIONS[hook], args, timeoutMs);
    const [text = null, ...changed] = outcome.values;
    const output = text === null ? undefined : checkedOutput(text);
    const error = outcome.fault?.message ?? (typeof output === "string" ? output : null);
    return {
      durationMs: Math.round(outcome.durationMs * 1000) / 1000,
      error,
      console: capturesConsole ? outcome.console : [],
      output: typeof output === "string" || error !== null ? undefined : output,
      bodies: changed,
      ...(outcome.changedValues !== undefined && { changedValues: outcome.changedValues }),
    };
  };
  return {
    load: (scripts) => {
      const { memoryLimitMb } = parts.limits();
      const wanted = new Map(scripts.map((script) => [script.id, `${String(memoryLimitMb)}:${script.source}`]));
      for (const id of loaded.keys()) {
        if (wanted.has(id)) continue;
        sandbox.unload(id);
        loaded.delete(id);
        problems.delete(id);
      }
      const values = parts.values.all();
      for (const { id, source } of scripts) {
        const version = wanted.get(id) ?? "";
        if (loaded.get(id) === version) continue;
        loaded.set(id, version);
        void sandbox.load(programOf(id, source, values.get(id) ?? {})).then((fault) => {
          if (loaded.get(id) !== version || problems.get(id) === fault?.message) return;
          if (fault === undefined) problems.delete(id);
          else problems.set(id, fault.message);
          parts.onProblem(id);
        });
      }
    },
    problemOf: (scriptId) => problems.get(scriptId),
    call: async (scriptId, hook, input, bodies) => {
      const called = call(sandbox, scriptId, hook, input, bodies);
      calls.add(called);
      const { changedValues, ...outcome } = await called;
      calls.delete(called);
      if (changedValues === undefined) return outcome;
      try {
        parts.values.write(scriptId, changedValues);
        return outcome;
      } catch (error) {
        return { ...outcome, error: `store: ${(error as Error).message}` };
      }
    },
    callOnce: async (source, hook, input, bodies) =>
      await tests.use(async (target) => {
        const key = randomUUID();
        const fault = await target.load(programOf(key, source, {}));
        if (fault !== undefined) return failed(fault);
        const { changedValues: _forgotten, ...outcome } = await call(target, key, hook, input, bodies);
        target.unload(key);
        return outcome;
      }),
    validate: async (source) =>
      await tests.use(async (target) => {
        const { fault, functions } = await target.inspect(source, FILENAME, FUNCTION_NAMES);
        if (fault === undefined) {
          return { valid: true, hooks: SCRIPT_HOOKS.filter((hook) => functions.includes(HOOK_FUNCTIONS[hook])) };
        }
        const { line, column } = fault;
        // The place has members of its own.
        const message = fault.message.replace(/ \(line \d+, column \d+\)$/, "");
        return {
          valid: false,
          error: message,
          ...(line !== undefined && { line }),
          ...(column !== undefined && { column }),
        };
      }),
    close: async () => {
      await Promise.all(calls);
      await Promise.all([sandbox.close(), tests.close()]);
    },
  };
}

function program(
  key: string,
  source: string,
  values: GuestProgram["values"],
  { timeoutMs, memoryLimitMb }: ScriptLimits,
): GuestProgram {
  return {
    key,
    source,
    filename: FILENAME,
    functions: FUNCTION_NAMES,
    memoryLimitBytes: memoryLimitMb * MIB,
    values,
    timeoutMs,
  };
}

function failed(fault: GuestFault): HookOutcome {
  return { durationMs: 0, error: fault.message, console: [], output: undefined, bodies: [] };
}

interface TestSandbox {
  use<T>(run: (sandbox: Sandbox) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** A sandbox apart from the traffic's, since a test may be slow; it ends when it was idle for a while. */
function createTestSandbox(prelude: string, after: ScriptRunnerParts["after"]): TestSandbox {
  let sandbox: Sandbox | undefined;
  let users = 0;
  let cancelEnd = (): void => undefined;
  const end = async (): Promise<void> => {
    cancelEnd();
    const ended = sandbox;
    sandbox = undefined;
    await ended?.close();
  };
  return {
    use: async (run) => {
      cancelEnd();
      users += 1;
      sandbox ??= createSandbox({ prelude, maxThreads: 1, threadName: "weir-script-tests" });
      try {
        return await run(sandbox);
      } finally {
        users -= 1;
        if (users === 0) cancelEnd = after(IDLE_TEST_THREAD_MS, () => void end());
      }
    },
    close: end,
  };
}
