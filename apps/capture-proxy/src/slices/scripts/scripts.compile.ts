import type { Script, ScriptHook } from "@headworks/capture-contract";
import { compileMatchFilter, type MatchFilter } from "./match-filter.ts";
import { inRunOrder, type StoredScript } from "./script-rule.ts";

/** A script that runs. */
export interface ActiveScript {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly hooks: ReadonlySet<ScriptHook>;
  readonly onError: Script["on_error"];
  readonly matches: MatchFilter;
}

/** The enabled scripts without a problem, in the order of execution. An unchanged script stays the same object. */
export function createScriptCompiler(
  problemOf: (script: StoredScript) => string | null,
): (scripts: readonly StoredScript[]) => readonly ActiveScript[] {
  const compiled = new WeakMap<StoredScript, ActiveScript>();
  return (scripts) =>
    inRunOrder(scripts)
      .filter((script) => script.enabled && problemOf(script) === null)
      .map((script) => {
        const known = compiled.get(script);
        if (known !== undefined) return known;
        const { id, name, source, hooks, onError, matchFilter } = script;
        const made = { id, name, source, hooks: new Set(hooks), onError, matches: compileMatchFilter(matchFilter) };
        compiled.set(script, made);
        return made;
      });
}
