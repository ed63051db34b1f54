import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { gzipSync } from "node:zlib";
import { waitUntil } from "@headworks/testkit";
import type { MockRule, TrafficSnapshot } from "@headworks/capture-contract";
import { startMocksRig } from "./mocks-rig.ts";
import type { MocksRig } from "./mocks-rig.ts";

let rig: MocksRig;
before(async () => {
  rig = await startMocksRig();
});
after(async () => {
  await rig[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await rig.api("POST", "/mocks/recording/clear");
  for (const { id } of (await rig.api("GET", "/mocks")).json as MockRule[]) await rig.api("DELETE", `/mocks/${id}`);
});

const recording = async (enabled: boolean) => (await rig.api("POST", "/mocks/recording", { enabled })).json;
const recorded = async () => (await rig.api("GET", "/mocks/recording/recorded")).json as MockRule[];
const single = (rule: MockRule | undefined) =>
  rule?.response_config.type === "single" ? rule.response_config.response : assert.fail("not a single answer");

test("while recording, responses of origins become rules that are active once promoted", async () => {
  let count = 0;
  rig.handler = (_request, response) => {
    count += 1;
    response.setHeader("X-Count", String(count));
    response.setHeader("Content-Encoding", "gzip");
    response.setHeader("Content-Type", "application/json");
    response.statusCode = 201;
    response.end(gzipSync(`{"n":${count}}`));
  };
  const url = `${rig.origin.url}/r?a=(1)`;
  await rig.get(url);
  assert.deepEqual(await recording(true), { recording: true, recorded: 0, missed: 0 });
  await rig.get(url);
  await rig.get({ url, method: "DELETE" });
  await recording(false);
  await rig.get(`${rig.origin.url}/after`);
  const rules = await waitUntil(async () => {
    const found = await recorded();
    return found.length === 2 && found;
  });
  assert.deepEqual(
    rules.map(({ name }) => name),
    [`Recorded: DELETE ${url}`, `Recorded: GET ${url}`],
  );
  const response = single(rules[1]);
  assert.deepEqual([response.status_code, response.body, response.headers["X-Count"]], [201, '{"n":2}', "2"]);
  assert.equal("Content-Encoding" in response.headers, false);
  assert.deepEqual(((await rig.api("GET", "/mocks")).json as MockRule[]).length, 0);
  assert.notEqual((await rig.get(url)).text, '{"n":2}');
  assert.deepEqual((await rig.api("POST", "/mocks/recording/promote")).json, { promoted: 2 });
  assert.deepEqual(await recorded(), []);
  assert.deepEqual(await rig.get(url), { status: 201, text: '{"n":2}' });
  assert.deepEqual((await rig.api("GET", "/mocks/recording/status")).json, {
    recording: false,
    recorded: 0,
    missed: 0,
  });
});

test("responses to the same request are recorded as one rule in order; responses of rules are not recorded", async () => {
  const texts = ["a", "a", "b", "c"];
  let at = 0;
  rig.handler = (_request, response) => {
    response.sendDate = false;
    response.end(texts[at]);
    at += 1;
  };
  await rig.mock({ name: "own", condition: { type: "path_pattern", pattern: "^/own$" }, response: { body: "own" } });
  await recording(true);
  for (const _ of texts) await rig.get(`${rig.origin.url}/same`);
  await rig.get(`${rig.origin.url}/own`);
  const [rule] = await waitUntil(async () => {
    const found = await recorded();
    const config = found[0]?.response_config;
    return config?.type === "sequence" && config.responses.length === 3 && found;
  });
  await recording(false);
  const config = rule?.response_config;
  assert.deepEqual(config?.type === "sequence" && config.responses.map(({ body }) => body), ["a", "b", "c"]);
  assert.equal((await recorded()).length, 1);
  await rig.api("POST", "/mocks/recording/promote", { ids: [rule?.id, "nobody"] });
  const again = [];
  for (let index = 0; index < 4; index += 1) again.push((await rig.get(`${rig.origin.url}/same`)).text);
  assert.deepEqual(again, ["a", "b", "c", "c"]);
});

test("cleared rules are gone, and responses that cannot be recorded are counted", async () => {
  rig.handler = (_request, response) => void response.end("x".repeat(6_000_000));
  await recording(true);
  await rig.get(`${rig.origin.url}/large`);
  await waitUntil(async () => {
    const { json } = await rig.api("GET", "/mocks/recording/status");
    return (json as { missed: number }).missed === 1;
  });
  rig.handler = (_request, response) => void response.end("x");
  await rig.get(`${rig.origin.url}/small`);
  await waitUntil(async () => (await recorded()).length === 1);
  assert.equal((await rig.api("POST", "/mocks/recording/clear")).status, 204);
  assert.deepEqual(await recorded(), []);
  await recording(false);
});

test("captured entries become rules with decoded bodies; failures are reported per entry", async () => {
  rig.handler = (request, response) => {
    if (request.url === "/image") {
      return void response.setHeader("Content-Type", "image/png").end(Buffer.from([0, 255]));
    }
    response.setHeader("Content-Encoding", "br, unknown");
    response.setHeader("Set-Cookie", ["a=1", "b=2"]);
    response.end("as it is");
  };
  await rig.get(`${rig.origin.url}/image`);
  await rig.get(`${rig.origin.url}/odd`);
  const rows = await waitUntil(async () => {
    const found = ((await rig.api("GET", "/traffic/rows")).json as { rows: TrafficSnapshot[] }).rows;
    return found.some(({ path }) => path === "/odd") && found;
  });
  const idOf = (path: string) => rows.find((row) => row.path === path)?.id ?? "";
  const body = { entry_ids: [idOf("/image"), "nobody", idOf("/odd")], name_prefix: "T:", enabled: true };
  const { status, json } = await rig.api("POST", "/mocks/from-traffic", body);
  assert.equal(status, 201, JSON.stringify(json));
  const made = json as { created: number; ids: string[]; errors: object[]; total: number };
  assert.deepEqual([made.created, made.total, made.errors], [2, 3, [{ entry_id: "nobody", error: "Entry not found" }]]);
  const [image, odd] = await Promise.all(made.ids.map((id) => rig.rule(id)));
  assert.equal(image?.name, `T: GET ${rig.origin.url}/image`);
  assert.equal(single(image).body_base64, "AP8=");
  assert.deepEqual(single(odd).headers["Set-Cookie"], ["a=1", "b=2"]);
  const response = await rig.client.fetch(`${rig.origin.url}/odd`);
  assert.deepEqual([response.header("content-encoding"), response.body.toString()], ["br, unknown", "as it is"]);
  assert.equal((await rig.api("POST", "/mocks/from-traffic", { entry_ids: ["nobody"] })).status, 404);
});
