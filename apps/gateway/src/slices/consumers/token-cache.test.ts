import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConsumerIdentity } from "#request/context.ts";
import { TokenCache } from "./token-verifier.ts";

const who = (name: string): ConsumerIdentity => ({
  name,
  groups: [],
  priority: undefined,
  credential: "jwt",
  claims: {},
});

test("a token is known until it ends, and for a minute at most", () => {
  const cache = new TokenCache();
  cache.set("short", who("a"), 1000, 31_000);
  cache.set("long", who("b"), 1000, 3_600_000);
  assert.equal(cache.get("short", 30_999)?.name, "a");
  assert.equal(cache.get("short", 31_000), undefined);
  assert.equal(cache.get("long", 60_999)?.name, "b");
  assert.equal(cache.get("long", 61_000), undefined);
  assert.equal(cache.get("other", 1000), undefined);
  assert.equal(cache.size, 0, "what has ended is let go when it is asked for");
});

test("however many tokens come, so many are kept, and the oldest makes room", () => {
  const cache = new TokenCache();
  for (let at = 0; at < 10_000; at += 1) cache.set(`token-${at}`, who("a"), 0, 1000);
  assert.equal(cache.size, 8192);
  assert.equal(cache.get("token-0", 0), undefined);
  assert.equal(cache.get("token-9999", 0)?.name, "a");
});
