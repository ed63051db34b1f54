import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import { DeadlineSweep, NOT_IN_SET } from "./connection-set.ts";

function timed(deadlineMs: number): {
  setIndex: number;
  deadlineMs: number;
  fired: Promise<void>;
  onDeadline: () => void;
  count: number;
} {
  const fired = Promise.withResolvers<void>();
  const entry = {
    setIndex: NOT_IN_SET,
    deadlineMs,
    fired: fired.promise,
    count: 0,
    onDeadline() {
      entry.count += 1;
      fired.resolve();
    },
  };
  return entry;
}

test("a deadline fires once, after its moment, and never when it was moved on or taken back", async () => {
  const sweep = new DeadlineSweep(5);
  const due = timed(performance.now() + 10);
  const moved = timed(performance.now() + 10);
  const removed = timed(performance.now() + 10);
  const last = timed(performance.now() + 60);
  for (const entry of [due, moved, removed, last]) sweep.add(entry);
  moved.deadlineMs = performance.now() + 100_000;
  sweep.delete(removed);
  await last.fired;
  sweep.stop();
  assert.deepEqual([due.count, moved.count, removed.count, last.count], [1, 0, 0, 1]);
});

test("a process that was held up reads what came in time before deadlines fire", async (context) => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [reader] = (await once(server, "connection")) as [Socket];
  const sweep = new DeadlineSweep(5);
  context.after(() => {
    sweep.stop();
    client.destroy();
    reader.destroy();
    server.close();
  });
  const entry = timed(performance.now() + 30);
  sweep.add(entry);
  const read = new Promise<void>((resolve) => {
    reader.once("data", () => {
      entry.deadlineMs = performance.now() + 100_000;
      resolve();
    });
  });
  client.write("in time");
  while (performance.now() < entry.deadlineMs + 30);
  await read;
  assert.equal(entry.count, 0);
});
