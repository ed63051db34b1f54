import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ReloadRequests } from "./watch-file.ts";

/** Reloads that end when the test says so. */
function rig() {
  const begun: { readonly force: boolean; readonly end: PromiseWithResolvers<string> }[] = [];
  const requests = new ReloadRequests(async (force) => {
    const end = Promise.withResolvers<string>();
    begun.push({ force, end });
    return await end.promise;
  });
  return { begun, requests };
}

test("one at a time: requests made meanwhile are merged into one, forced if any of them is", async () => {
  const { begun, requests } = rig();
  const first = requests.request(false);
  await turn();
  const others = [false, true, false, ...Array.from({ length: 1000 }, () => false)].map(
    async (force) => await requests.request(force),
  );
  await turn();
  assert.equal(begun.length, 1, "nothing begins before the first has ended");
  begun[0]?.end.resolve("first");
  assert.equal(await first, "first");
  await turn();
  assert.deepEqual(
    begun.map(({ force }) => force),
    [false, true],
  );
  begun[1]?.end.resolve("second");
  assert.deepEqual(new Set(await Promise.all(others)), new Set(["second"]));
});

test("a request during the second reload starts a third: the second may have read the file already", async () => {
  const { begun, requests } = rig();
  const outcomes = [requests.request(false)];
  await turn();
  outcomes.push(requests.request(false));
  begun[0]?.end.resolve("1");
  await turn();
  outcomes.push(requests.request(true));
  begun[1]?.end.resolve("2");
  await turn();
  begun[2]?.end.resolve("3");
  assert.deepEqual(await Promise.all(outcomes), ["1", "2", "3"]);
  assert.deepEqual(
    begun.map(({ force }) => force),
    [false, false, true],
  );
});

test("a failed reload rejects its requests, and the next is tried", async () => {
  const { begun, requests } = rig();
  const first = requests.request(true);
  await turn();
  const second = requests.request(false);
  begun[0]?.end.reject(new Error("no"));
  await assert.rejects(first, /no/);
  await turn();
  begun[1]?.end.resolve("yes");
  assert.equal(await second, "yes");
});
