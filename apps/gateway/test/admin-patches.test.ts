import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { ADMIN, call, DEV, listeners, type AdminAnswer } from "./admin-rig.ts";
import { startGateway, type TestGateway } from "./gateway-rig.ts";

const route = (body: string) => ({
  name: "fixed",
  match: { path: { type: "exact" as const, value: "/" } },
  action: { type: "respond" as const, status: 200, body },
});

async function patch(gateway: TestGateway, type: "merge-patch" | "json-patch", change: unknown) {
  const headers = { "content-type": `application/${type}+json` };
  return await call(gateway, "/config", { method: "PATCH", body: JSON.stringify(change), headers });
}

const code = (answer: AdminAnswer): string => (answer.json() as unknown as { error: { code: string } }).error.code;

test("settings of the gateway at the root of a patch are those below gateway, as often as one likes", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  for (const [type, change, expected] of [
    ["merge-patch", { request_id_header: "x-one" }, "request_id_header: x-one"],
    ["merge-patch", { request_id_header: "x-two" }, "request_id_header: x-two"],
    ["json-patch", [{ op: "add", path: "/request_id_header", value: "x-three" }], "request_id_header: x-three"],
    ["merge-patch", { name: "shop", gateway: { request_id_header: "x-four" } }, "request_id_header: x-four"],
  ] as const) {
    const answer = await patch(gateway, type, change);
    assert.equal(answer.status, 200, answer.text);
    assert.match((await call(gateway, "/config")).text, new RegExp(`^gateway:\\n(?: {2}.*\\n)* {2}${expected}$`, "m"));
  }
  assert.equal((await patch(gateway, "merge-patch", { request_id_header: null })).status, 200);
  assert.doesNotMatch((await call(gateway, "/config")).text, /request_id_header/);
  const twice = await patch(gateway, "merge-patch", { name: "a", gateway: { name: "b" } });
  assert.deepEqual([twice.status, code(twice)], [400, "patch_invalid"]);
  assert.match(twice.text, /\\"name\\" is set at the root and under \\"gateway\\"/);
});

test("a patch leaves the file YAML, with its comments and secrets, and a later reload of it changes nothing", async () => {
  const text = `# Ours
listeners: # doors
  - ${JSON.stringify(listeners[0])}
admin: ${JSON.stringify(ADMIN)}
consumers:
  - name: c # the first
    credentials: [{ type: api_key, key: a-plain-secret }]
routes:
  # The only one
  - name: fixed
    match: { path: { type: exact, value: / } }
    action: { type: respond, status: 200, body: two }
`;
  await using gateway = await startGateway(text, DEV);
  const answer = await patch(gateway, "json-patch", [{ op: "replace", path: "/routes/0/action/body", value: "three" }]);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(await readFile(gateway.configFile, "utf8"), text.replace("body: two", "body: three"));
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "three");
  assert.equal((await gateway.gateway.reload(false)).outcome, "unchanged");
  const hash = (await call(gateway, "/config")).headers.get("x-gateway-config-hash");
  assert.equal(hash, answer.headers.get("x-gateway-config-hash"));
});

test("what is wrong with a patched document is told with its line in the new text", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const before = await readFile(gateway.configFile, "utf8");
  const answer = await patch(gateway, "json-patch", [{ op: "add", path: "/routes/0/timeout", value: 3 }]);
  assert.deepEqual([answer.status, code(answer)], [400, "config_invalid"]);
  assert.match(answer.text, /"path":"\/routes\/0\/timeout".*"line":[0-9]+/);
  assert.equal(await readFile(gateway.configFile, "utf8"), before);
});

test("If-Match names one hash or several, of which the running one has to be one", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const etag = (await call(gateway, "/config")).headers.get("etag") ?? "";
  const send = async (field: string) =>
    await call(gateway, "/config?dry_run=true", {
      method: "PATCH",
      body: JSON.stringify({ routes: [route("two")] }),
      headers: { "content-type": "application/merge-patch+json", "if-match": field },
    });
  for (const [field, status] of [
    [etag, 200],
    [`"0x1", ${etag}`, 200],
    ["*", 200],
    ['"0x1", "0x2"', 412],
    [`${etag}, nonsense`, 412],
  ] as const) {
    assert.equal((await send(field)).status, status, field);
  }
});
