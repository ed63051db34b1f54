import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { startOrigin, temporaryDirectory } from "@headworks/testkit";
import { ADMIN, call, DEV, listeners, type AdminResponse } from "../admin-rig.ts";
import { serving, startGateway, type TestGateway } from "../gateway-rig.ts";
import { agentsOfWorkers, get, startWorkers } from "../workers-rig.ts";

const document = {
  listeners,
  admin: ADMIN,
  consumers: [
    { name: "acme", credentials: [{ type: "api_key" as const, key: "key-of-the-document" }] },
    { name: "idle" },
  ],
  routes: [
    {
      name: "whoever",
      match: { path: { type: "prefix" as const, value: "/" } },
      auth_required: true,
      action: { type: "respond" as const, status: 200, body: "in" },
    },
  ],
};

const post = async (gateway: TestGateway, path: string, body?: object): Promise<AdminResponse> =>
  await call(gateway, path, {
    method: "POST",
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });

async function statusWith(gateway: TestGateway, key: string): Promise<number> {
  return (await gateway.send({ path: "/", fields: [`X-API-Key: ${key}`] })).status;
}

const withState = (path: string) => ({ environment: { ...DEV.environment, GATEWAY_STATE_DB: path } });

test("a key that is given out is good at once beside that of the document, is shown once, and survives a restart", async () => {
  await using directory = await temporaryDirectory();
  const options = withState(directory.file("state.db"));
  let id = "";
  {
    await using gateway = await startGateway(document, options);
    assert.equal(await statusWith(gateway, "chosen-by-the-operator"), 401);
    const issued = await post(gateway, "/consumers/acme/credentials", { key: "chosen-by-the-operator" });
    assert.equal(issued.status, 201, issued.text);
    assert.doesNotMatch(issued.text, /chosen-by/);
    id = issued.json()["credential_id"] ?? "";
    assert.equal(await statusWith(gateway, "chosen-by-the-operator"), 200);
    assert.equal(await statusWith(gateway, "key-of-the-document"), 200);
    const made = (await post(gateway, "/consumers/idle/credentials")).json()["key"] ?? "";
    assert.match(made, /^[\w-]{43}$/);
    assert.equal(await statusWith(gateway, made), 200);
    assert.equal(readFileSync(directory.file("state.db")).includes("chosen-by-the-operator"), false);
  }
  await using gateway = await startGateway(document, options);
  assert.equal(await statusWith(gateway, "chosen-by-the-operator"), 200);
  const list = await call(gateway, "/consumers/acme/credentials");
  const [credential] = list.json()["credentials"] as unknown as Record<string, unknown>[];
  assert.deepEqual([credential?.["id"], credential?.["kind"], credential?.["retire_at"]], [id, "api_key", null]);
  assert.doesNotMatch(list.text, /chosen-by/);
});

test("a document cannot give a consumer the key that another one was given; what it was given itself is a warning", async () => {
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(document, withState(directory.file("state.db")));
  const issued = await post(gateway, "/consumers/acme/credentials", { key: "chosen-by-the-operator" });
  const proposed = async (consumers: object): Promise<string[]> => {
    const response = await call(gateway, "/config/validate", {
      method: "POST",
      body: JSON.stringify({ ...document, consumers }),
      headers: { "content-type": "application/json" },
    });
    const { issues } = response.json() as unknown as { issues: { severity: string; code: string; path: string }[] };
    assert.doesNotMatch(response.text, /chosen-by/);
    return issues
      .filter(({ code }) => code === "duplicate_credential")
      .map(({ severity, code, path }) => `${severity} ${code} ${path}`);
  };
  const having = (name: string): object => ({
    name,
    credentials: [{ type: "api_key", key: "chosen-by-the-operator" }],
  });
  const place = (at: number): string => `duplicate_credential /consumers/${at}/credentials/0/key`;
  assert.deepEqual(await proposed([{ name: "acme" }, having("idle")]), [`error ${place(1)}`]);
  assert.deepEqual(await proposed([having("acme")]), [`warning ${place(0)}`]);
  assert.deepEqual(await proposed([having("idle")]), [], "the key of a consumer that is gone opens nothing");
  await post(gateway, `/credentials/${issued.json()["credential_id"] ?? ""}/retire`);
  assert.deepEqual(await proposed([{ name: "acme" }, having("idle")]), []);
});

test("a key is retired now, or at a time, and stays listed", async () => {
  await using directory = await temporaryDirectory();
  let nowMs = Date.parse("2027-01-01T00:00:00Z");
  const clock = { now: () => nowMs, monotonic: () => performance.now() };
  await using gateway = await startGateway(document, { ...withState(directory.file("state.db")), clock });
  const issue = async (key: string): Promise<string> =>
    (await post(gateway, "/consumers/acme/credentials", { key })).json()["credential_id"] ?? "";
  const first = await issue("first-key-of-acme");
  const second = await issue("second-key-of-acme");
  const now = await post(gateway, `/credentials/${first}/retire`);
  assert.deepEqual([now.status, now.json()["effective"]], [200, "immediate"]);
  assert.equal(await statusWith(gateway, "first-key-of-acme"), 401);
  const later = await post(gateway, `/credentials/${second}/retire`, { at_ms: nowMs + 60_000 });
  assert.deepEqual([later.status, later.json()["effective"]], [200, "scheduled"]);
  assert.equal(await statusWith(gateway, "second-key-of-acme"), 200);
  nowMs += 60_000;
  assert.equal(await statusWith(gateway, "second-key-of-acme"), 401);
  const again = await post(gateway, `/credentials/${first}/retire`);
  assert.deepEqual([again.status, codeOf(again)], [404, "credential_not_active"]);
  const { credentials } = (await call(gateway, "/consumers/acme/credentials")).json();
  assert.equal((credentials as unknown as object[]).length, 2);
});

const codeOf = (response: AdminResponse): string => (response.json()["error"] as unknown as { code: string }).code;

test("what cannot be given out is refused with a code and a reason, and nothing is given", async () => {
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(document, withState(directory.file("state.db")));
  for (const [key, reason] of [
    ["short", /16 to 512 characters, not 5/],
    ["x".repeat(513), /16 to 512/],
    [" blank-at-its-begin", /visible ASCII/],
    ["line\r\nend-in-a-long-key", /visible ASCII/],
    ["schlüssel-mit-umlaut", /visible ASCII/],
    ["key-of-the-document", /given out before/],
  ] as const) {
    const response = await post(gateway, "/consumers/acme/credentials", { key });
    assert.deepEqual([response.status, codeOf(response)], [400, "credential_issue_invalid"], key);
    assert.match(response.text, reason);
    assert.ok(!response.text.includes(key));
  }
  const nobody = await post(gateway, "/consumers/nobody/credentials");
  assert.deepEqual([nobody.status, codeOf(nobody)], [404, "unknown_consumer"]);
  const past = (await post(gateway, "/consumers/acme/credentials")).json()["credential_id"] ?? "";
  const retired = await post(gateway, `/credentials/${past}/retire`, { at_ms: 1 });
  assert.deepEqual([retired.status, codeOf(retired)], [400, "credential_retire_invalid"]);
  const { credentials } = (await call(gateway, "/consumers/acme/credentials")).json();
  assert.equal((credentials as unknown as object[]).length, 1);
});

test("a key of a consumer that leaves the document opens nothing until it is back", async () => {
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(document, withState(directory.file("state.db")));
  await post(gateway, "/consumers/idle/credentials", { key: "key-of-the-idle-one" });
  assert.equal(await statusWith(gateway, "key-of-the-idle-one"), 200);
  const without = { ...document, consumers: document.consumers.slice(0, 1) };
  await call(gateway, "/config", { method: "PATCH", body: JSON.stringify(without) });
  assert.equal(await statusWith(gateway, "key-of-the-idle-one"), 401);
  assert.equal((await call(gateway, "/consumers/idle/credentials")).status, 200);
  await call(gateway, "/config", { method: "PATCH", body: JSON.stringify(document) });
  assert.equal(await statusWith(gateway, "key-of-the-idle-one"), 200);
});

test("without a state store nothing is given out, and the answer says what is missing", async () => {
  await using gateway = await startGateway(document, DEV);
  for (const response of [
    await call(gateway, "/consumers/acme/credentials"),
    await post(gateway, "/consumers/acme/credentials"),
    await post(gateway, "/credentials/x/retire"),
  ]) {
    assert.deepEqual([response.status, codeOf(response)], [404, "state_store_not_configured"]);
  }
});

test("every worker process takes a key when it is given out, and refuses it when it is retired", async () => {
  await using origin = await startOrigin({ handler: (_request, response) => void response.end("in") });
  await using gateway = await startWorkers(
    {
      ...serving("api", [origin.port]),
      admin: ADMIN,
      consumers: document.consumers,
      routes: [
        {
          name: "all",
          service: "api",
          auth_required: true,
          match: { path: { type: "prefix", value: "/" } },
          action: { type: "proxy" },
        },
      ],
    },
    { state: true },
  );
  const agents = await agentsOfWorkers(gateway);
  const admin = async (path: string, body: object): Promise<Record<string, string>> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${gateway.adminUrl}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return (await response.json()) as Record<string, string>;
  };
  const statuses = async (): Promise<readonly number[]> =>
    await Promise.all(
      agents.map(
        async (agent) =>
          (await get(gateway.port, "/", { agent, headers: { "x-api-key": "given-while-it-runs" } })).status,
      ),
    );
  try {
    assert.deepEqual(await statuses(), [401, 401]);
    const { credential_id } = await admin("/consumers/acme/credentials", { key: "given-while-it-runs" });
    assert.deepEqual(await statuses(), [200, 200]);
    await admin(`/credentials/${credential_id ?? ""}/retire`, {});
    assert.deepEqual(await statuses(), [401, 401]);
  } finally {
    for (const agent of agents) agent.destroy();
  }
});
