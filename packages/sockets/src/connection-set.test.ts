import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { oldSpaceGrowthBytes } from "@headworks/testkit";
import { ConnectionSet, NOT_IN_SET, Queue, type QueueEntry, type SetMember } from "./connection-set.ts";

const people = (count: number): SetMember[] => Array.from({ length: count }, () => ({ setIndex: NOT_IN_SET }));

function membersOf(connectionSet: ConnectionSet<SetMember>): Set<SetMember> {
  const visited: SetMember[] = [];
  connectionSet.forEach((member) => visited.push(member));
  assert.equal(new Set(visited).size, visited.length, "no member is visited twice while the set is unchanged");
  return new Set(visited);
}

test("a connection set has the members that a set would have", () => {
  const changes = fc.array(fc.tuple(fc.constantFrom("add", "delete", "clear"), fc.nat(7)), { maxLength: 60 });
  fc.assert(
    fc.property(changes, (list) => {
      const all = people(8);
      const connectionSet = new ConnectionSet<SetMember>();
      const model = new Set<SetMember>();
      for (const [change, index] of list) {
        const one = all[index];
        if (one === undefined) continue;
        if (change === "clear" && index > 0) continue;
        for (const target of [connectionSet, model]) {
          if (change === "clear") target.clear();
          else if (change === "add") target.add(one);
          else target.delete(one);
        }
        assert.equal(connectionSet.size, model.size);
        assert.deepEqual(membersOf(connectionSet), model);
      }
      for (const one of all) assert.equal(one.setIndex === NOT_IN_SET, !model.has(one));
    }),
  );
});

test("a remaining member is visited while others are added and deleted", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 10 }), fc.array(fc.nat(9), { maxLength: 10 }), (gone, come) => {
      const all = people(10);
      const late = people(10);
      const connectionSet = new ConnectionSet<SetMember>();
      for (const one of all) connectionSet.add(one);
      const visited = new Set<SetMember>();
      let step = 0;
      connectionSet.forEach((member) => {
        visited.add(member);
        const leaving = all[gone[step] ?? -1];
        const coming = late[come[step] ?? -1];
        if (leaving !== undefined) connectionSet.delete(leaving);
        if (coming !== undefined) connectionSet.add(coming);
        step += 1;
      });
      for (const one of all) if (one.setIndex !== NOT_IN_SET) assert.ok(visited.has(one));
    }),
  );
});

test("a short-lived member does not reach the old generation", () => {
  const connectionSet = new ConnectionSet<SetMember>();
  const present: SetMember[] = [];
  const members = 200;
  const growth = oldSpaceGrowthBytes(50, () => {
    for (let count = 0; count < members; count += 1) {
      const one = { setIndex: NOT_IN_SET, weight: Array.from({ length: 100 }, () => count) };
      connectionSet.add(one);
      present.push(one);
      const leaving = present.length > 64 ? present.shift() : undefined;
      if (leaving !== undefined) connectionSet.delete(leaving);
    }
  });
  // With a Set it is nine tenths of all members ever added, about 900 bytes each.
  assert.ok(growth / (50 * members) < 100, `${growth / (50 * members)} bytes of each member are kept`);
});

test("a queue serves in the order of arrival, without those who left, as a list would", () => {
  const changes = fc.array(fc.tuple(fc.constantFrom("push", "shift", "leave"), fc.nat(20)), { maxLength: 60 });
  fc.assert(
    fc.property(changes, (list) => {
      const queue = new Queue<number>();
      const model: number[] = [];
      const places: QueueEntry[] = [];
      for (const [change, at] of list) {
        if (change === "push") model.push(places.push(queue.push(places.length)) - 1);
        else if (change === "shift") assert.equal(queue.shift(), model.shift());
        else {
          const place = places[at];
          if (place === undefined) continue;
          queue.leave(place);
          if (model.includes(at)) model.splice(model.indexOf(at), 1);
        }
        assert.equal(queue.size, model.length);
        assert.equal(queue.first, model[0]);
        for (const [member, { isWaiting }] of places.entries()) assert.equal(isWaiting, model.includes(member));
      }
      assert.deepEqual(queue.shiftAll(), model);
      assert.deepEqual([queue.size, queue.first, queue.shift()], [0, undefined, undefined]);
    }),
  );
});

test("a short-lived queue entry does not reach the old generation, even if references are held", () => {
  const queue = new Queue<{ readonly weight: readonly number[] }>();
  const held: QueueEntry[] = [];
  const members = 200;
  const growth = oldSpaceGrowthBytes(50, () => {
    for (let count = 0; count < members; count += 1) {
      const place = queue.push({ weight: Array.from({ length: 100 }, () => count) });
      if (count === 0) held.push(place);
      if (queue.size > 64) queue.shift();
    }
  });
  assert.ok(held.length > 50);
  // With a Set, or with links that are kept, it is nine tenths of all members ever added, about 900 bytes each.
  assert.ok(growth / (50 * members) < 100, `${growth / (50 * members)} bytes of each member are kept`);
});
