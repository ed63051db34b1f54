import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { RewriteDryRunResult } from "@headworks/capture-contract";
import { startRewrites } from "./rewrites-rig.ts";
import type { RewritesRig } from "./rewrites-rig.ts";

let rig: RewritesRig;
before(async () => {
  rig = await startRewrites();
});
after(() => rig[Symbol.asyncDispose]());

async function dryRun(body: object): Promise<RewriteDryRunResult> {
  const { status, json } = await rig.api("POST", "/rewrites/dry-run", body);
  assert.equal(status, 200, JSON.stringify(json));
  return json as RewriteDryRunResult;
}

test("a rule is applied to a captured entry: before, after, trace, and nothing is sent, stored or counted", async () => {
  await rig.reset((_request, response) =>
    response
      .setHeader("Content-Encoding", "gzip")
      .setHeader("Content-Type", "application/json")
      .end(gzipSync('{"price":1.10}')),
  );
  await rig.client.fetch({
    url: `${rig.origin.url}/p?a=1`,
    method: "POST",
    headers: [["Content-Type", "text/plain"]],
    body: "hello",
  });
  const entry = await rig.entry();
  const { length } = rig.origin.requests;
  const result = await dryRun({
    entry_id: entry.id,
    rule: {
      name: "tried",
      direction: "both",
      condition: { type: "path_pattern", pattern: "^/p" },
      enabled: false,
      rewrites: [
        { type: "query_param", name: "a", value: "2" },
        { type: "body_rewrite", pattern: "hello", replacement: "bye" },
        { type: "json_merge", patch: { free: true } },
        { type: "set_status", code: 202 },
      ],
    },
  });
  assert.deepEqual([result.matched, result.changed], [true, true]);
  assert.deepEqual(
    [result.request.before.url, result.request.after.url],
    [`${rig.origin.url}/p?a=1`, `${rig.origin.url}/p?a=2`],
  );
  assert.deepEqual([result.request.before.body, result.request.after.body], ["hello", "bye"]);
  assert.equal(result.response?.before?.body, '{"price":1.10}');
  assert.equal(result.response?.after.body, '{"price":1.10,"free":true}');
  assert.deepEqual([result.response?.before?.status_code, result.response?.after.status_code], [200, 202]);
  assert.deepEqual(
    result.trace.map(({ rule_id: id, phase, changes }) => [id, phase, changes.length]),
    [
      ["dry-run", "request", 3],
      ["dry-run", "response", 3],
    ],
  );
  assert.equal(rig.origin.requests.length, length);
  assert.equal(((await rig.api("GET", "/traffic")).json as object[]).length, 1);
});

test("a stored rule is tried by its id even if disabled, and without a rule all enabled ones are", async () => {
  await rig.reset();
  await rig.client.fetch(`${rig.origin.url}/x`);
  const { id: entryId } = await rig.entry();
  const off = await rig.rule({ type: "set_header", name: "A", value: "1" }, { enabled: false, direction: "request" });
  await rig.rule({ type: "set_header", name: "B", value: "1" }, { direction: "request" });
  const one = await dryRun({ entry_id: entryId, rule_id: off });
  assert.deepEqual(one.request.after.headers_list.at(-1), ["A", "1"]);
  const all = await dryRun({ entry_id: entryId });
  assert.deepEqual(all.request.after.headers_list.at(-1), ["B", "1"]);
  assert.equal(((await rig.api("GET", `/rewrites/${off}`)).json as { hit_count: number }).hit_count, 0);
});

test("a rewritten entry is tried in its original form", async () => {
  await rig.reset((_request, response) => response.end("old"));
  const id = await rig.rule([{ type: "body_rewrite", pattern: "old", replacement: "new" }], { direction: "response" });
  const reply = await rig.client.fetch(`${rig.origin.url}/`);
  assert.equal(reply.body.toString(), "new");
  const { id: entryId } = await rig.entry();
  const { response } = await dryRun({ entry_id: entryId, rule_id: id });
  assert.deepEqual([response?.before?.body, response?.after.body], ["old", "new"]);
});

test("a rule that responds itself shows its response, and one that does not match shows none", async () => {
  await rig.reset();
  await rig.client.fetch(`${rig.origin.url}/x`);
  const { id: entryId } = await rig.entry();
  const map = {
    name: "m",
    direction: "request",
    condition: { type: "all" },
    rewrites: [{ type: "map_to_file", path: "none" }],
  };
  const mapped = await dryRun({ entry_id: entryId, rule: map });
  assert.deepEqual([mapped.response?.before, mapped.response?.after.status_code], [null, 404]);
  const other = await dryRun({ entry_id: entryId, rule: { ...map, condition: { type: "method", method: "PUT" } } });
  assert.deepEqual([other.matched, other.changed, other.trace.length], [false, false, 0]);
  assert.deepEqual(other.request.before, other.request.after);
});

test("invalid dry runs are rejected", async () => {
  await rig.reset();
  for (const [body, status] of [
    [{}, 400],
    [{ entry_id: "none" }, 404],
    [{ entry_id: "none", rule_id: "none" }, 404],
    [
      {
        entry_id: "none",
        rule_id: "x",
        rule: {
          name: "x",
          direction: "both",
          condition: { type: "all" },
          rewrites: [{ type: "set_status", code: 200 }],
        },
      },
      400,
    ],
    [
      {
        entry_id: "none",
        rule: {
          name: "x",
          direction: "request",
          condition: { type: "all" },
          rewrites: [{ type: "set_status", code: 200 }],
        },
      },
      400,
    ],
  ] as const) {
    assert.equal((await rig.api("POST", "/rewrites/dry-run", body)).status, status, JSON.stringify(body));
  }
});
