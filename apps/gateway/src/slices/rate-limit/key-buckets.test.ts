import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyBuckets, SHARD_KEYS } from "./rate-rule.ts";

test("keys: 16 shards x 4096, however many clients come", () => {
  const buckets = new KeyBuckets(1);
  for (let index = 0; index < 200_000; index += 1) buckets.of(`10.0.${index >> 8}.${index & 255}`, 0)[0] = 1000;
  assert.ok(buckets.size <= 16 * SHARD_KEYS, `${buckets.size} keys`);
  assert.ok(buckets.size > 8 * SHARD_KEYS, "and they are spread over the shards");
  assert.ok(buckets.evictions > 0);
});

test("keys: idle first, which loses nothing", () => {
  const buckets = new KeyBuckets(2);
  for (let index = 0; index < 30_000; index += 1) buckets.of(`idle ${index}`, 0)[1] = 500;
  for (let index = 0; index < 20_000; index += 1) buckets.of(`busy ${index}`, 0)[1] = 5000;
  for (let index = 0; index < 20_000; index += 1) buckets.of(`new ${index}`, 1000)[0] = 2000;
  assert.ok(buckets.size < 70_000, "idle ones are gone");
  assert.equal(buckets.evictions, 0);
  for (let index = 0; index < 20_000; index += 1) assert.equal(buckets.of(`busy ${index}`, 1000)[1], 5000);
});

test("keys: then the idlest half, so that the most limited keys stay limited", () => {
  const buckets = new KeyBuckets(1);
  buckets.of("limited", 0)[0] = 1_000_000;
  for (let index = 0; index < 300_000; index += 1) buckets.of(`flood ${index}`, 0)[0] = 1000;
  assert.equal(buckets.of("limited", 0)[0], 1_000_000);
});
