// Tested by mocks.compile.test.ts
import type { Condition } from "@headworks/capture-contract";
import { compileCondition } from "@headworks/match-condition";
import type { CompiledCondition } from "@headworks/match-condition";

const compiled = new WeakMap<Condition, CompiledCondition>();

/**
 * Compiles a condition that was parsed, or gives what was made of the same object before: the check of a rule, its first
 * compilation and every later one share the work. Throws a `RangeError` for what cannot be compiled.
 */
export function compiledCondition(condition: Condition): CompiledCondition {
  const known = compiled.get(condition);
  if (known !== undefined) return known;
  const made = compileCondition(condition);
  compiled.set(condition, made);
  return made;
}
