import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { ADMIN, call, DEV, listeners, type AdminResponse } from "./admin-rig.ts";
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

const code = (response: AdminResponse): string =>
  (response.json() as unknown as { error: { code: string } }).error.code;

test("settings of the gateway at the root of a patch are those below gateway, as often as one likes", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  for (const [type, change, expected] of [
    ["merge-patch", { request_id_header: "x-one" }, "request_id_header: x-one"],
    ["merge-patch", { request_id_header: "x-two" }, "request_id_header: x-two"],
    ["json-patch", [{ op: "add", path: "/request_id_header", value: "x-three" }], "request_id_header: x-three"],
    ["json-patch", [{ op: "replace", path: "/request_id_header", value: "x-five" }], "request_id_header: x-five"],
    ["merge-patch", { name: "shop", gateway: { request_id_header: "x-four" } }, "request_id_header: x-four"],
  ] as const) {
    const response = await patch(gateway, type, change);
    assert.equal(response.status, 200, response.text);
    assert.match((await call(gateway, "/config")).text, new RegExp(`^gateway:\\n(?: {2}.*\\n)* {2}${expected}$`, "m"));
  }
  assert.equal((await patch(gateway, "merge-patch", { request_id_header: null })).status, 200);
  assert.doesNotMatch((await call(gateway, "/config")).text, /request_id_header/);
  const twice = await patch(gateway, "merge-patch", { name: "a", gateway: { name: "b" } });
  assert.deepEqual([twice.status, code(twice)], [400, "patch_invalid"]);
  assert.match(twice.text, /\\"name\\" is set at the root and under \\"gateway\\"/);
});

for (const [type, change] of [
  ["json-patch", [{ op: "replace", path: "/routes/0/action/body", value: "two" }]],
  [
    "json-patch",
    [
      { op: "add", path: "/request_id_header", value: "x-one" },
      { op: "remove", path: "/request_id_header" },
    ],
  ],
  ["merge-patch", { request_id_header: null }],
  ["merge-patch", { gateway: {} }],
] as const) {
  test(`no patch leaves an empty section for settings of the gateway: ${type} ${JSON.stringify(change)}`, async () => {
    await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
    const response = await patch(gateway, type, change);
    assert.equal(response.status, 200, response.text);
    assert.doesNotMatch((await call(gateway, "/config")).text, /^gateway:/m);
    assert.doesNotMatch(await readFile(gateway.configFile, "utf8"), /gateway"?:/);
  });
}

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
  const response = await patch(gateway, "json-patch", [
    { op: "replace", path: "/routes/0/action/body", value: "three" },
  ]);
  assert.equal(response.status, 200, response.text);
  assert.equal(await readFile(gateway.configFile, "utf8"), text.replace("body: two", "body: three"));
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "three");
  assert.equal((await gateway.gateway.reload(false)).outcome, "unchanged");
  const hash = (await call(gateway, "/config")).headers.get("x-gateway-config-hash");
  assert.equal(hash, response.headers.get("x-gateway-config-hash"));
});

test("what is wrong with a patched document is told with its line in the new text", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const before = await readFile(gateway.configFile, "utf8");
  const response = await patch(gateway, "json-patch", [{ op: "add", path: "/routes/0/timeout", value: 3 }]);
  assert.deepEqual([response.status, code(response)], [400, "config_invalid"]);
  assert.match(response.text, /"path":"\/routes\/0\/timeout".*"line":[0-9]+/);
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

test("no patch and no plan brings a secret to where it can be read", async () => {
  const secrets = ["TOP-SECRET-KEY", "Bearer W-SECRET"];
  const document = {
    listeners,
    admin: ADMIN,
    consumers: [{ name: "acme", credentials: [{ type: "api_key" as const, key: "TOP-SECRET-KEY" }] }],
    webhooks: [
      {
        url: "http://127.0.0.1:9/",
        events: ["config_rejected" as const],
        headers: { authorization: "Bearer W-SECRET" },
      },
    ],
    routes: [route("one")],
  };
  await using gateway = await startGateway(document, DEV);
  const responses: string[] = [];
  for (const from of ["/consumers/0/credentials/0/key", "/webhooks/0/headers/authorization"]) {
    for (const [path, op] of [
      ["/routes/0/service", "copy"],
      ["/routes/0/name", "copy"],
      ["/routes/0/action/body", "copy"],
      ["/unknown", "move"],
    ]) {
      const body = JSON.stringify([{ op, from, path }]);
      const headers = { "content-type": "application/json-patch+json" };
      responses.push((await call(gateway, "/config/plan", { method: "POST", body, headers })).text);
    }
    const patched = await patch(gateway, "json-patch", [{ op: "copy", from, path: "/routes/0/action/body" }]);
    assert.equal(patched.status, 200, patched.text);
    responses.push((await call(gateway, "/config")).text, (await gateway.send({ path: "/" })).body.toString());
  }
  for (const [at, text] of responses.entries()) {
    for (const secret of secrets) assert.ok(!text.includes(secret), `answer ${at} tells ${secret}`);
  }
  const file = await readFile(gateway.configFile, "utf8");
  assert.deepEqual(
    secrets.map((secret) => file.split(secret).length - 1),
    [1, 1],
  );
  assert.equal(
    (await gateway.send({ path: "/", fields: ["X-API-Key: TOP-SECRET-KEY"] })).status,
    200,
    "the key still is one",
  );
});

test("a patch overwrites no unpublished edit of the file", async () => {
  const text = `listeners: ${JSON.stringify(listeners)}
admin: ${JSON.stringify(ADMIN)}
routes:
  - { name: fixed, match: { path: { type: exact, value: / } }, action: { type: respond, status: 200, body: one } }
`;
  await using gateway = await startGateway(text, DEV);
  const change = [{ op: "replace", path: "/routes/0/action/body", value: "two" }];
  const more =
    "  - { name: mine, match: { path: { type: exact, value: /mine } }, action: { type: respond, status: 204 } }\n";
  for (const saved of [`${text}${more}`, `${text}typo: 1\n`, `${text}  - {`]) {
    await writeFile(gateway.configFile, saved);
    const response = await patch(gateway, "json-patch", change);
    assert.deepEqual([response.status, code(response)], [409, "config_file_differs"]);
    assert.equal(await readFile(gateway.configFile, "utf8"), saved);
  }
  // A comment changes nothing of what runs, so it is kept instead.
  await writeFile(gateway.configFile, text.replace("routes:", "# ticket 4711\nroutes:"));
  assert.equal((await patch(gateway, "json-patch", change)).status, 200);
  assert.match(await readFile(gateway.configFile, "utf8"), /# ticket 4711\nroutes:\n.*body: two/);
});

for (const method of ["PUT", "PATCH"]) {
  test(`a whole document by ${method} overwrites no unpublished edit of the file unless it says overwrite`, async () => {
    await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
    const ran = await readFile(gateway.configFile, "utf8");
    const next = JSON.stringify({ listeners, admin: ADMIN, routes: [route("two")] });
    const send = async (query = "", body = next): Promise<AdminResponse> =>
      await call(gateway, `/config${query}`, { method, body });
    for (const saved of [`${ran}\ntypo: 1\n`, ran.replace("one", "three")]) {
      await writeFile(gateway.configFile, saved);
      for (const query of ["", "?dry_run=true", "?overwrite=false"]) {
        const response = await send(query);
        assert.deepEqual([response.status, code(response)], [409, "config_file_differs"], query);
      }
      assert.equal(await readFile(gateway.configFile, "utf8"), saved);
    }
    // A plan writes nothing, so it can be asked for.
    assert.equal((await call(gateway, "/config/plan", { method: "POST", body: next })).status, 200);
    // Nothing is lost of what is in the document itself, as when the file itself is applied.
    await writeFile(gateway.configFile, next);
    assert.equal((await send()).status, 200);
    await writeFile(gateway.configFile, `# A comment is no change\n${next}`);
    assert.equal((await send("", ran)).status, 200);
    await writeFile(gateway.configFile, "typo: 1\n");
    assert.equal((await send("?overwrite=true")).status, 200);
    assert.equal(await readFile(gateway.configFile, "utf8"), next);
  });
}

test("a patch that says overwrite changes the running document, whatever the file holds", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  await writeFile(gateway.configFile, "typo: 1\n");
  const headers = { "content-type": "application/json-patch+json" };
  const body = JSON.stringify([{ op: "replace", path: "/routes/0/action/body", value: "two" }]);
  const response = await call(gateway, "/config?overwrite=true", { method: "PATCH", body, headers });
  assert.equal(response.status, 200, response.text);
  const written = JSON.parse(await readFile(gateway.configFile, "utf8")) as Record<string, unknown>;
  assert.deepEqual(written["routes"], [route("two")]);
});

test("a rollback overwrites no unpublished edit of the file unless it says overwrite", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const first = await readFile(gateway.configFile, "utf8");
  await gateway.reload({ listeners, admin: ADMIN, routes: [route("two")] });
  const back = async (query = ""): Promise<AdminResponse> =>
    await call(gateway, `/config/rollback${query}`, {
      method: "POST",
      body: '{"generation":1}',
      headers: { "content-type": "application/json" },
    });
  await writeFile(gateway.configFile, "typo: 1\n");
  const refused = await back();
  assert.deepEqual([refused.status, code(refused)], [409, "config_file_differs"]);
  assert.equal(await readFile(gateway.configFile, "utf8"), "typo: 1\n");
  assert.equal((await back("?overwrite=true")).status, 200);
  assert.equal(await readFile(gateway.configFile, "utf8"), first);
});

test("a file that is put back after a patch is noticed", async () => {
  const document = { listeners, admin: ADMIN, routes: [route("one")] };
  await using gateway = await startGateway(document, { ...DEV, followsFile: true });
  const before = await readFile(gateway.configFile, "utf8");
  const change = [{ op: "replace", path: "/routes/0/action/body", value: "two" }];
  assert.equal((await patch(gateway, "json-patch", change)).status, 200);
  await writeFile(gateway.configFile, before);
  await waitUntil(async () => (await gateway.send({ path: "/" })).body.toString() === "one", {
    what: "the document that was put back",
  });
});

test("a patch whose members are there twice is read as JSON is, and what is no patch is refused without quoting it", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")] }, DEV);
  const headers = { "content-type": "application/merge-patch+json" };
  const send = async (body: string) => await call(gateway, "/config", { method: "PATCH", body, headers });
  assert.equal((await send('{"name":"a","name":"b"}')).status, 200);
  assert.match((await call(gateway, "/config")).text, /name: b/);
  for (const body of ["{secret", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, ""]) {
    const response = await send(body);
    assert.deepEqual([response.status, code(response)], [400, "patch_invalid"], response.text.slice(0, 200));
    assert.doesNotMatch(response.text, /secret/);
  }
});

test("members of a patch with names of prototypes are unknown fields like others", async () => {
  const consumers = [{ name: "acme", credentials: [{ type: "api_key" as const, key: "an-inline-secret" }] }];
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [route("one")], consumers }, DEV);
  const headers = { "content-type": "application/merge-patch+json" };
  for (const name of ["__proto__", "constructor", "toString", "nobody"]) {
    for (const [body, path] of [
      [`{"${name}": {"routes": []}}`, `/${name}`],
      [`{"name": "x", "gateway": {"${name}": 1}}`, `/gateway/${name}`],
    ] as const) {
      const response = await call(gateway, "/config", { method: "PATCH", body, headers });
      const { error } = response.json() as unknown as { error: { issues: { code: string; path: string }[] } };
      assert.equal(response.status, 400, body);
      assert.deepEqual(
        error.issues.map((issue) => `${issue.code} ${issue.path}`),
        [`unknown_field ${path}`],
      );
    }
  }
});
