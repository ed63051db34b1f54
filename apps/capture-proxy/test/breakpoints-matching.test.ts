import assert from "node:assert/strict";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { ALLOW, cleared, create, one, paused, resume } from "./breakpoints-rig.ts";
import { startProxyRig } from "./proxy-rig.ts";
import type { Sent } from "./proxy-rig.ts";

const rig = await startProxyRig();
after(() => rig[Symbol.asyncDispose]());

const JSON_BODY = '{"user":{"name":"ann"},"n":7}';
const post = (body: string | Buffer, headers: Record<string, string> = {}): Sent => ({
  method: "POST",
  path: "/items?q=1",
  headers: { "content-type": "application/json", ...headers },
  body,
});

const TABLE: readonly (readonly [string, object, Sent, boolean])[] = [
  ["a method", { type: "method", method: "post" }, post("{}"), true],
  ["another method", { type: "method", method: "GET" }, post("{}"), false],
  ["a query parameter", { type: "query_param", name: "q", value: "1" }, post("{}"), true],
  ["a text in the body", { type: "body_pattern", pattern: '"n":7' }, post(JSON_BODY), true],
  [
    "a text in a coded body",
    { type: "body_pattern", pattern: "ann" },
    post(gzipSync(JSON_BODY), { "content-encoding": "gzip" }),
    true,
  ],
  ["a text that is not in the body", { type: "body_pattern", pattern: "bob" }, post(JSON_BODY), false],
  ["a value in the body", { type: "json_path", path: "$.user.name", value: "ann" }, post(JSON_BODY), true],
  [
    "the opposite of a body",
    { type: "not", condition: { type: "body_pattern", pattern: "ann" } },
    post(JSON_BODY),
    false,
  ],
  [
    "a head and a body",
    {
      type: "and",
      conditions: [
        { type: "method", method: "POST" },
        { type: "body_pattern", pattern: "ann" },
      ],
    },
    post(JSON_BODY),
    true,
  ],
];
for (const [what, condition, sent, isPaused] of TABLE) {
  test(`a request rule for ${what} ${isPaused ? "pauses" : "lets pass"}`, async () => {
    await cleared(rig);
    await create(rig, { name: "r", condition, direction: "request" });
    const waiting = rig.send(sent);
    if (isPaused) await resume(rig, await one(rig), ALLOW);
    const response = await waiting;
    assert.equal(response.status, 200);
    assert.deepEqual(rig.seen[0]?.body, Buffer.from(sent.body ?? ""));
    await paused(rig, 0);
  });
}

test("an answer rule sees the answer's head and body, and its request's URL and body too", async () => {
  const inRequest = { type: "body_pattern", pattern: "ann", side: "request" };
  for (const [condition, isPaused] of [
    [{ type: "status_code", range: "2xx" }, true],
    [{ type: "status_code", range: "5xx" }, false],
    [{ type: "body_pattern", pattern: "^echo" }, true],
    [{ type: "body_pattern", pattern: "^other" }, false],
    [{ type: "path_pattern", pattern: "^/items$" }, true],
    [inRequest, true],
    [{ type: "and", conditions: [inRequest, { type: "body_pattern", pattern: "^echo" }] }, true],
    [{ type: "not", condition: inRequest }, false],
  ] as const) {
    await cleared(rig);
    await create(rig, { name: "r", condition, direction: "response" });
    const waiting = rig.send(post(JSON_BODY));
    if (isPaused) {
      const item = await one(rig);
      assert.equal(item.direction, "response");
      await resume(rig, item, ALLOW);
    }
    assert.equal((await waiting).body.toString(), `echo ${JSON_BODY}`, JSON.stringify(condition));
    await paused(rig, 0);
  }
});

test("of several rules the one with the lowest priority pauses, the oldest of equals, and only once", async () => {
  await cleared(rig);
  const all = { condition: { type: "all" }, direction: "request" };
  await create(rig, { ...all, name: "late", priority: 200 });
  await create(rig, { ...all, name: "first", priority: 5 });
  await create(rig, { ...all, name: "second", priority: 5 });
  await create(rig, { ...all, name: "off", priority: 0, enabled: false });
  const waiting = rig.send();
  const item = await one(rig);
  assert.equal(item.rule_name, "first");
  await resume(rig, item, ALLOW);
  assert.equal((await waiting).status, 200);
});

test("a rule for both directions pauses the request, then its answer", async () => {
  await cleared(rig);
  await create(rig, { name: "both", condition: { type: "all" }, direction: "both" });
  const waiting = rig.send();
  for (const direction of ["request", "response"]) {
    const item = await one(rig);
    assert.equal(item.direction, direction);
    await resume(rig, item, ALLOW);
  }
  assert.equal((await waiting).status, 200);
});
