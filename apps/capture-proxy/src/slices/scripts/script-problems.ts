import type { ScriptValidation } from "@headworks/capture-contract";
import type { StoredScript } from "./script-rule.ts";

/** Why sources of scripts cannot run, such as syntax errors. */
export interface ScriptProblems {
  /** Null for a source that can run or was not checked yet. */
  problemOf(script: StoredScript): string | null;
  /** Checks the sources that were not checked yet. Resolves to true if a problem was found. */
  check(scripts: readonly StoredScript[]): Promise<boolean>;
}

export function createScriptProblems(validate: (source: string) => Promise<ScriptValidation>): ScriptProblems {
  const checked = new Map<string, { readonly source: string; readonly problem: string | null }>();
  return {
    problemOf: ({ id, source }) => {
      const known = checked.get(id);
      return known?.source === source ? known.problem : null;
    },
    check: async (scripts) => {
      const ids = new Set(scripts.map(({ id }) => id));
      for (const id of checked.keys()) if (!ids.has(id)) checked.delete(id);
      let isFound = false;
      for (const { id, source } of scripts) {
        if (checked.get(id)?.source === source) continue;
        const problem = problemText(await validate(source));
        checked.set(id, { source, problem });
        isFound ||= problem !== null;
      }
      return isFound;
    },
  };
}

/** The error with its place; null for a valid source. */
export function problemText({ valid, error, line, column }: ScriptValidation): string | null {
  if (valid) return null;
  const message = error ?? "cannot be compiled";
  return line === undefined ? message : `line ${line}${column === undefined ? "" : `, column ${column}`}: ${message}`;
}
