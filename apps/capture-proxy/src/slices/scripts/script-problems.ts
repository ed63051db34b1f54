import type { ScriptValidation } from "@headworks/capture-contract";
import type { ScriptRunner } from "#scripting/script-runner.ts";
import type { StoredScript } from "./script-rule.ts";

/** Why scripts cannot run: their source cannot be compiled, or fails when it is loaded. */
export interface ScriptProblems {
  /** Checks the sources that were not checked yet. */
  check(scripts: readonly StoredScript[]): Promise<void>;
  /** Null for a script that can run, or whose source was not checked yet. */
  problemOf(script: StoredScript): string | null;
}

export function createScriptProblems(runner: Pick<ScriptRunner, "validate" | "problemOf">): ScriptProblems {
  const checked = new Map<string, { readonly source: string; readonly problem: string | null }>();
  return {
    check: async (scripts) => {
      const ids = new Set(scripts.map(({ id }) => id));
      for (const id of checked.keys()) if (!ids.has(id)) checked.delete(id);
      for (const { id, source } of scripts) {
        if (checked.get(id)?.source === source) continue;
        const validation = await runner.validate(source);
        // Without a place it is not the source that is wrong, such as a thread that did not start in time.
        if (!validation.valid && validation.line === undefined) continue;
        checked.set(id, { source, problem: problemText(validation) });
      }
    },
    problemOf: ({ id, source }) => {
      const known = checked.get(id);
      return (known?.source === source ? known.problem : null) ?? runner.problemOf(id) ?? null;
    },
  };
}

/** The error with its place; null for a valid source. */
export function problemText({ valid, error, line, column }: ScriptValidation): string | null {
  if (valid) return null;
  const message = error ?? "cannot be compiled";
  return line === undefined ? message : `line ${line}${column === undefined ? "" : `, column ${column}`}: ${message}`;
}
