// Tested by import-warnings.test.ts
import type { Condition, MockResponse } from "@headworks/capture-contract";
import { parseCondition } from "@headworks/match-condition";
import type { SentBody } from "./postman-body.ts";

export interface SavedResponse {
  readonly name: string;
  /** Without the body. */
  readonly condition: Condition;
  readonly response: MockResponse;
  readonly enabled: boolean;
  readonly sent: SentBody;
}

/**
 * Adds body conditions to enabled responses that share a condition. Those without a possible body condition come last,
 * as the fallback. Of identical ones only the first ever responds, which causes a warning.
 */
export function tellApart(saved: readonly SavedResponse[], warn: (sentence: string) => void): readonly SavedResponse[] {
  const groups = Map.groupBy(
    saved.filter(({ enabled }) => enabled),
    ({ condition }) => JSON.stringify(condition),
  );
  const changed = new Map<SavedResponse, SavedResponse>();
  const last = new Set<SavedResponse>();
  for (const group of groups.values()) {
    if (new Set(group.map(({ sent }) => sent.key)).size < 2) {
      warnOfSame(group, "are the same", warn);
      continue;
    }
    const told = group.map((each) => ({ each, condition: withBody(each) }));
    for (const { each, condition } of told) {
      if (condition === undefined) last.add(each);
      else changed.set(each, { ...each, condition });
    }
    const same = Map.groupBy(told, ({ condition }) => JSON.stringify(condition) ?? "");
    for (const [condition, members] of same) {
      const reason = condition === "" ? "differ in bodies that no condition tells apart" : "are the same";
      warnOfSame(
        members.map(({ each }) => each),
        reason,
        warn,
      );
    }
  }
  return [...saved.filter((each) => !last.has(each)), ...last].map((each) => changed.get(each) ?? each);
}

function withBody({ condition, sent }: SavedResponse): Condition | undefined {
  if (sent.condition === undefined) return undefined;
  const both: Condition = { type: "and", conditions: [condition, sent.condition] };
  return parseCondition(both).ok ? both : undefined;
}

function warnOfSame(group: readonly SavedResponse[], reason: string, warn: (sentence: string) => void): void {
  const [first, ...others] = group.map(({ name }) => name.replace(/^Postman: /, "").slice(0, 100));
  if (first === undefined || others.length === 0) return;
  warn(`${[first, ...others].join(", ")}: these requests ${reason}, so that ${first} alone responds`);
}
