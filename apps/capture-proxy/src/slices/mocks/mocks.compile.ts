import type { MockResponseConfig } from "@headworks/capture-contract";
import { compileCondition, compileConditionSet } from "@headworks/match-condition";
import type { CompiledCondition } from "@headworks/match-condition";
import { isExpired } from "./mock-rule.ts";
import type { StoredCollection, StoredMock } from "./mock-rule.ts";
import type { RequestSubject } from "./request-subject.ts";
import { compileResponseChoice } from "./response-choice.ts";
import type { MockProgress, ResponseChoice } from "./response-choice.ts";

/** A rule ready to be asked and to answer. */
export interface CompiledMock {
  readonly rule: StoredMock;
  readonly condition: CompiledCondition;
  readonly choice: ResponseChoice;
  readonly progress: MockProgress;
}

/** The rules that may answer; immutable, replaced whole on every change. */
export interface MockSet {
  readonly size: number;
  /** The rule that answers, `needs-body` when that depends on a body that was not read. */
  find(subject: RequestSubject, nowMs: number): CompiledMock | "needs-body" | undefined;
  /** Rules that cannot be compiled: they answer nothing, which must not stay unnoticed. */
  readonly issues: readonly { readonly id: string; readonly issue: string }[];
}

/** Compiles rules; parts that did not change since the last time are taken from then. */
export interface MockCompiler {
  compile(rules: readonly StoredMock[], collections: readonly StoredCollection[]): MockSet;
  /** One rule, whether it may answer or not. Throws for what cannot be compiled. */
  one(rule: StoredMock): CompiledMock;
}

/** `progress` gives the place where a rule stands. */
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

/** What may answer, in the order in which it is asked: by priority, then the oldest first. */
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
