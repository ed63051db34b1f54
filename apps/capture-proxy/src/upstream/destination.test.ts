import assert from "node:assert/strict";
import { test } from "node:test";
import { heapGrowthBytes } from "@headworks/testkit";
import { isSameDestination, ownDestination } from "./destination.ts";
import type { Destination } from "./destination.ts";

const HEAD = Buffer.alloc(60_000, "x").toString("latin1");

test("idle connections own the strings of their destination, which stays the same", async () => {
  const kept: Destination[] = [];
  const keep = async (own: (destination: Destination) => Destination): Promise<number> =>
    await heapGrowthBytes(() => {
      for (let at = 0; at < 100; at += 1) {
        const head = `${HEAD}some-shop-${at}.example`;
        const host = head.slice(60_000);
        const serverName = at % 2 === 0 ? undefined : `${HEAD}a-name-of-shop-${at}.example`.slice(60_000);
        kept.push(own({ host, port: 443, secure: true, serverName, via: [head] }));
      }
    });
  assert.ok((await keep((destination) => destination)) > 5_000_000, "pieces hold on to their heads: the test sees it");
  assert.ok((await keep(ownDestination)) < 200_000);
  for (const [at, destination] of kept.slice(0, 100).entries()) {
    assert.ok(isSameDestination(destination, kept[100 + at] as Destination));
  }
});
