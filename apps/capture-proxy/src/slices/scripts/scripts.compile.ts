import type { ActiveScript } from "#scripting/script-engine.ts";
import { compileMatchFilter } from "./match-filter.ts";
import { inRunOrder, type StoredScript } from "./script-rule.ts";

/** The enabled scripts in the order of execution. An unchanged script stays the same object. */
export function createScriptCompiler(): (scripts: readonly StoredScript[]) => readonly ActiveScript[] {
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
