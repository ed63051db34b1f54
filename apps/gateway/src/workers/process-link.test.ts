import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ProcessLink, type Batch, type Handlers } from "./process-link.ts";

type Left = { double: { input: number; output: number }; fail: { input: string; output: void } };
type Right = { note: { input: string; output: void } };

function connected(left: Handlers<Left>, right: Handlers<Right>) {
  const batches: Batch[] = [];
  // As between processes: a message arrives later and as a copy.
  const carry = (to: () => { receive(batch: Batch): void }) => (batch: Batch) => {
    batches.push(batch);
    setImmediate((copy: Batch) => to().receive(copy), structuredClone(batch));
  };
  const caller: ProcessLink<Left, Right> = new ProcessLink<Left, Right>(
    carry(() => answerer),
    right,
  );
  const answerer: ProcessLink<Right, Left> = new ProcessLink<Right, Left>(
    carry(() => caller),
    left,
  );
  return { caller, answerer, batches };
}

const LEFT: Handlers<Left> = {
  double: (value) => value * 2,
  fail: (why) => {
    throw Object.assign(new Error(why), { code: "EWHY" });
  },
};

test("calls of one turn are one message, and so are their replies", async () => {
  const { caller, batches } = connected(LEFT, { note: () => undefined });
  const responses = await Promise.all([1, 2, 3].map(async (value) => await caller.call("double", value)));
  assert.deepEqual(responses, [2, 4, 6]);
  assert.deepEqual(
    batches.map(({ calls, responses: back }) => [calls.length, back.length]),
    [
      [3, 0],
      [0, 3],
    ],
  );
});

test("replies in another order find their calls", async () => {
  const gates = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  const { caller } = connected(
    { ...LEFT, double: async (at) => (await gates[at]?.promise) ?? -1 },
    {
      note: () => undefined,
    },
  );
  const both = [caller.call("double", 0), caller.call("double", 1)];
  gates[1]?.resolve(11);
  assert.equal(await both[1], 11);
  gates[0]?.resolve(10);
  assert.equal(await both[0], 10);
});

test("an error of a handler rejects the call with its message and code", async () => {
  const { caller } = connected(LEFT, { note: () => undefined });
  await assert.rejects(caller.call("fail", "no room"), { message: "no room", code: "EWHY" });
  await assert.rejects(caller.call("missing" as "fail", ""), /no call missing/);
});

test("notifications arrive in order and without replies", async () => {
  const noted: string[] = [];
  const { answerer, batches } = connected(LEFT, { note: (text) => void noted.push(text) });
  for (const text of ["a", "b", "c"]) answerer.tell("note", text);
  for (let turns = 0; turns < 4; turns += 1) await turn();
  assert.deepEqual(noted, ["a", "b", "c"]);
  assert.equal(batches.length, 1);
});

test("a lost link fails pending and later calls, and sends nothing more", async () => {
  const { caller, batches } = connected(LEFT, { note: () => undefined });
  const waiting = caller.call("double", 1);
  caller.lost("The worker ended by SIGKILL");
  await assert.rejects(waiting, /ended by SIGKILL/);
  await assert.rejects(caller.call("double", 1), /ended by SIGKILL/);
  caller.tell("double", 1);
  await turn();
  assert.equal(batches.length, 0);
});
