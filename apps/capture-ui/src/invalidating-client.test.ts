import assert from "node:assert/strict";
import { test } from "node:test";
import { QueryObserver } from "@tanstack/react-query";
import { InvalidatingClient } from "./queries.ts";

/** A query whose answers are given by hand, in the order in which they were asked for. */
function watched(client: InvalidatingClient) {
  const asked: ((response: string) => void)[] = [];
  const queryFn = async (): Promise<string> => await new Promise((resolve) => asked.push(resolve));
  const observer = new QueryObserver(client, { queryKey: ["topic", "list"], queryFn, staleTime: Infinity });
  const stop = observer.subscribe(() => undefined);
  return { asked, data: () => observer.getCurrentResult().data, [Symbol.dispose]: stop };
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test("a change during the first fetch causes another fetch", async () => {
  const client = new InvalidatingClient();
  using list = watched(client);
  const invalidated = client.invalidateQueries({ queryKey: ["topic"] });
  list.asked[0]?.("before the change");
  await turn();
  assert.equal(list.asked.length, 2);
  list.asked[1]?.("after the change");
  await invalidated;
  assert.equal(list.data(), "after the change");
});

test("after several changes during the first fetch the last state is shown", async () => {
  const client = new InvalidatingClient();
  using list = watched(client);
  const invalidated = [1, 2, 3].map(async () => await client.invalidateQueries({ queryKey: ["topic"] }));
  list.asked[0]?.("before");
  await turn();
  assert.ok(list.asked.length <= 4, `${list.asked.length} fetches`);
  list.asked.at(-1)?.("after");
  await Promise.all(invalidated);
  assert.equal(list.data(), "after");
});

test("loaded data is fetched once, and other topics are not fetched", async () => {
  const client = new InvalidatingClient();
  using list = watched(client);
  list.asked[0]?.("first");
  await turn();
  await client.invalidateQueries({ queryKey: ["another"] });
  assert.equal(list.asked.length, 1);
  const invalidated = client.invalidateQueries({ queryKey: ["topic"] });
  list.asked[1]?.("second");
  await invalidated;
  assert.deepEqual([list.asked.length, list.data()], [2, "second"]);
});
