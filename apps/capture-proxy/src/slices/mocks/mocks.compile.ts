import type { MockResponseConfig } from "@headworks/capture-contract";
import { compileCondition, compileConditionSet, type CompiledCondition } from "@headworks/match-condition";
import { isExpired, type StoredCollection, type StoredMock } from "./mock-rule.ts";
import type { RequestSubject } from "./request-subject.ts";
import { compileResponseChoice, type MockProgress, type ResponseChoice } from "./response-choice.ts";

export interface CompiledMock {
  readonly rule: StoredMock;
  readonly condition: CompiledCondition;
  readonly choice: ResponseChoice;
  readonly progress: MockProgress;
}

/** The active rules; immutable, replaced on every change. */
export interface MockSet {
  readonly size: number;
  /** The matching rule; `needs-body` when that depends on a body not read yet. */
  find(subject: RequestSubject, nowMs: number): CompiledMock | "needs-body" | undefined;
  /** Rules that cannot be compiled and have no effect. */
  readonly issues: readonly { readonly id: string; readonly issue: string }[];
}

/** Compiles rules; unchanged parts are reused. */
export interface MockCompiler {
  compile(rules: readonly StoredMock[], collections: readonly StoredCollection[]): MockSet;
  /** Throws when the rule cannot be compiled. */
  one(rule: StoredMock): CompiledMock;
}

/** `progress` returns a rule's mutable state. */
export function createMockCompiler(progress: (id: string) => MockProgress): MockCompiler {
  const choices = new WeakMap<MockResponseConfig, ResponseChoice>();
  const one = (rule: StoredMock): CompiledMock => ({
    rule,
    condition: compileCondition(rule.condition),
    choice: kept(choices, rule.responseConfig, compileResponseChoice),
    progress: progress(rule.id),
  });
  return {
    one,
    compile: (rules, collections) => {
      const issues: { id: string; issue: string }[] = [];
      const compiled = candidates(rules, collections).flatMap((rule) => {
        try {
          return [one(rule)];
        } catch (error) {
          issues.push({ id: rule.id, issue: error instanceof Error ? error.message : String(error) });
          return [];
        }
      });
      return mockSet(compiled, issues);
    },
  };
}

function kept<K extends WeakKey, V>(cache: WeakMap<K, V>, key: K, make: (key: K) => V): V {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make(key);
  cache.set(key, made);
  return made;
}

/** The active rules, by priority and then oldest first. */
function candidates(rules: readonly StoredMock[], collections: readonly StoredCollection[]): StoredMock[] {
  const suppressed = new Set(collections.filter(({ enabled }) => !enabled).map(({ id }) => id));
  return rules
    .filter((rule) => rule.enabled && !rule.isRecorded && !suppressed.has(rule.collectionId ?? ""))
    .toSorted((a, b) => a.priority - b.priority);
}

function mockSet(mocks: readonly CompiledMock[], issues: MockSet["issues"]): MockSet {
  const set = compileConditionSet(mocks, ({ condition }) => condition);
  return {
    size: mocks.length,
    issues,
    find: (subject, nowMs) => {
      for (const mock of set.candidates(subject)) {
        const decision = mock.condition.decide(subject);
        if (decision === false || isExpired(mock.rule, mock.progress.hits, nowMs)) continue;
        return decision === true ? mock : decision;
      }
      return undefined;
    },
  };
}
