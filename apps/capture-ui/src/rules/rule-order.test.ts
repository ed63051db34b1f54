import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { inOrder, reordered } from "./rule-order.ts";

test("a moved rule has its new position, for any priorities", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 12 }),
      fc.nat(),
      fc.nat(),
      (numbers, from, to) => {
        const rules = numbers
          .toSorted((left, right) => left - right)
          .map((priority, index) => ({ id: `r${index}`, priority, created_at: new Date(index).toISOString() }));
        const moved = rules[from % rules.length];
        const before = rules[to % (rules.length + 1)] ?? null;
        assert.ok(moved);
        const changes = new Map(
          reordered(rules, moved.id, before?.id ?? null).map(({ rule, priority }) => [rule.id, priority]),
        );
        const after = inOrder(rules.map((rule) => ({ ...rule, priority: changes.get(rule.id) ?? rule.priority })));
        const rest = rules.filter((rule) => rule !== moved);
        const at = before === null || before === moved ? -1 : rest.indexOf(before);
        const wanted = before === moved ? rules : rest.toSpliced(at === -1 ? rest.length : at, 0, moved);
        assert.deepEqual(
          after.map((rule) => rule.id),
          wanted.map((rule) => rule.id),
        );
      },
    ),
  );
});

test("if priorities have a gap, only the moved rule changes", () => {
  const rules = [
    { id: "a", priority: 10 },
    { id: "b", priority: 20 },
    { id: "c", priority: 30 },
  ];
  assert.deepEqual(
    reordered(rules, "c", "b").map(({ rule, priority }) => [rule.id, priority]),
    [["c", 15]],
  );
  assert.deepEqual(reordered(rules, "c", null), []);
  assert.deepEqual(reordered(rules, "gone", null), []);
});
