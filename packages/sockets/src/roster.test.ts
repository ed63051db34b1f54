import assert from "node:assert/strict";
import { test } from "node:test";
import { oldSpaceGrowthBytes } from "@headworks/testkit";
import fc from "fast-check";
import { NOWHERE, Roster, type Rostered } from "./roster.ts";

const people = (count: number): Rostered[] => Array.from({ length: count }, () => ({ rosterPlace: NOWHERE }));

function membersOf(roster: Roster<Rostered>): Set<Rostered> {
  const visited: Rostered[] = [];
  roster.forEach((member) => visited.push(member));
  assert.equal(new Set(visited).size, visited.length, "nobody is visited twice while nothing changes");
  return new Set(visited);
}

test("a roster has the members that a set would have", () => {
  const changes = fc.array(fc.tuple(fc.constantFrom("add", "delete", "clear"), fc.nat(7)), { maxLength: 60 });
  fc.assert(
    fc.property(changes, (list) => {
      const all = people(8);
      const roster = new Roster<Rostered>();
      const model = new Set<Rostered>();
      for (const [change, index] of list) {
        const one = all[index];
        if (one === undefined) continue;
        if (change === "clear" && index > 0) continue;
        for (const target of [roster, model]) {
          if (change === "clear") target.clear();
          else if (change === "add") target.add(one);
          else target.delete(one);
        }
        assert.equal(roster.size, model.size);
        assert.deepEqual(membersOf(roster), model);
      }
      for (const one of all) assert.equal(one.rosterPlace === NOWHERE, !model.has(one));
    }),
  );
});

test("who stays is visited although others come and go during the walk", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 10 }), fc.array(fc.nat(9), { maxLength: 10 }), (gone, come) => {
      const all = people(10);
      const late = people(10);
      const roster = new Roster<Rostered>();
      for (const one of all) roster.add(one);
      const visited = new Set<Rostered>();
      let step = 0;
      roster.forEach((member) => {
        visited.add(member);
        const leaving = all[gone[step] ?? -1];
        const coming = late[come[step] ?? -1];
        if (leaving !== undefined) roster.delete(leaving);
        if (coming !== undefined) roster.add(coming);
        step += 1;
      });
      for (const one of all) if (one.rosterPlace !== NOWHERE) assert.ok(visited.has(one));
    }),
  );
});

test("who was on a roster for a moment does not grow old", () => {
  const roster = new Roster<Rostered>();
  const present: Rostered[] = [];
  const members = 200;
  const growth = oldSpaceGrowthBytes(50, () => {
    for (let count = 0; count < members; count += 1) {
      const one = { rosterPlace: NOWHERE, weight: Array.from({ length: 100 }, () => count) };
      roster.add(one);
      present.push(one);
      const leaving = present.length > 64 ? present.shift() : undefined;
      if (leaving !== undefined) roster.delete(leaving);
    }
  });
  // With a Set it is nine tenths of all there were: some 900 bytes each.
  assert.ok(growth / (50 * members) < 100, `${growth / (50 * members)} bytes of each member are kept`);
});
