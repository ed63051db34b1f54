import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { spawnProcess, temporaryDirectory } from "@headworks/testkit";

const MAIN = fileURLToPath(new URL("../bin/sluice.js", import.meta.url));

const document = (body: string, more = ""): string => `# ${body}, since the ticket says so
gateway: { shutdown_timeout_ms: 1000 }
listeners: [{ name: public, address: 127.0.0.1, port: 0 }]
admin: { bind: 127.0.0.1:0 }
routes:
  - { name: fixed, match: { path: { type: exact, value: / } }, action: { type: respond, status: 200, body: ${body} } }
${more}`;

const consumer = (key: string): string => `consumers: [{ name: c, credentials: [{ type: api_key, key: ${key} }] }]\n`;

/** A gateway that can be started again with what the one before left. */
async function gatewayFiles() {
  const directory = await temporaryDirectory();
  const [file, state] = [directory.file("gateway.yaml"), directory.file("state.db")];
  const env = { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: state };
  const start = async (text: string, workers = 1) => {
    await writeFile(file, text);
    const args = [MAIN, "serve", "--config", file, "--workers", String(workers), "--json"];
    const child = await spawnProcess(process.execPath, args, { env });
    const [line] = await child.waitForOutput(/^\{.*"listeners".*\}$/m, 60_000);
    const facts = JSON.parse(line) as { generation: number; admin: string; listeners: { port: number }[] };
    const call = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(`${facts.admin}${path}`, init);
      return { status: response.status, text: await response.text() };
    };
    const yaml = { "content-type": "application/yaml" };
    const json = { "content-type": "application/json" };
    return {
      generation: facts.generation,
      call,
      put: async (body: string) => await call("/config", { method: "PUT", headers: yaml, body }),
      rollback: async (generation: number) =>
        await call("/config/rollback", { method: "POST", headers: json, body: JSON.stringify({ generation }) }),
      history: async () => {
        const { generations } = JSON.parse((await call("/config/generations")).text) as {
          generations: { generation: number; route_count: number; source: string; is_running: boolean }[];
        };
        return generations.map((one) => [one.generation, one.source, one.route_count, one.is_running]);
      },
      response: async () => await (await fetch(`http://127.0.0.1:${facts.listeners[0]?.port}/`)).text(),
      [Symbol.asyncDispose]: async () => void (await child.stop()),
    };
  };
  return {
    start,
    state,
    written: async () => await readFile(file, "utf8"),
    [Symbol.asyncDispose]: async () => await directory.remove(),
  };
}

for (const workers of [1, 2]) {
  test(`history, numbers and rollback go on over restarts with a state store, with ${workers} processes for requests`, async () => {
    await using files = await gatewayFiles();
    {
      await using gateway = await files.start(document("one"), workers);
      assert.equal(gateway.generation, 1);
      assert.equal((await gateway.put(document("two"))).status, 200);
    }
    {
      await using gateway = await files.start(document("two"), workers);
      assert.equal(gateway.generation, 2);
      assert.deepEqual(await gateway.history(), [
        [2, "admin", 1, true],
        [1, "startup", 1, false],
      ]);
    }
    await using gateway = await files.start(document("three"), workers);
    assert.equal(gateway.generation, 3);
    assert.match((await gateway.call("/config/generations/1")).text, /body: one/);
    const back = await gateway.rollback(1);
    assert.equal(back.status, 200, back.text);
    assert.equal((JSON.parse(back.text) as { generation: number }).generation, 4);
    assert.equal(await gateway.response(), "one");
    assert.equal(await files.written(), document("one"));
    assert.deepEqual(
      (await gateway.history()).map(([generation, source]) => [generation, source]),
      [
        [4, "rollback"],
        [3, "startup"],
        [2, "admin"],
        [1, "startup"],
      ],
    );
  });
}

test("a rollback over a restart puts back inline secrets that still run, and says of others that they are not kept", async () => {
  await using files = await gatewayFiles();
  for (const key of ["the-first-key", "the-second-key"]) {
    await using gateway = await files.start(document("one", consumer(key)));
    assert.match((await gateway.call("/config/generations/1")).text, /\$\{redacted:sha256:/);
  }
  const database = new DatabaseSync(files.state, { readOnly: true });
  const rows = database.prepare("SELECT text FROM generation").all();
  database.close();
  assert.equal(rows.length, 2);
  assert.ok(!JSON.stringify(rows).includes("-key"));
  const now = document("two", consumer("the-second-key"));
  await using gateway = await files.start(now);
  const refused = await gateway.rollback(1);
  assert.equal(refused.status, 400);
  const { error } = JSON.parse(refused.text) as { error: { code: string; message: string } };
  assert.equal(error.code, "config_redacted_value");
  assert.match(error.message, /^Generation 1 cannot run any more\. .* sluice config get --generation 1,/);
  assert.equal(await files.written(), now);
  assert.equal((await gateway.rollback(2)).status, 200);
  assert.equal(await files.written(), document("one", consumer("the-second-key")));
});

test("a kept generation that does not compile any more is refused with what is wrong, and changes nothing", async () => {
  await using files = await gatewayFiles();
  {
    await using gateway = await files.start(document("one"));
    assert.equal((await gateway.put(document("two"))).status, 200);
  }
  const database = new DatabaseSync(files.state);
  database.exec("UPDATE generation SET text = 'routes: [{ name: of-another-version }]' WHERE number = 1");
  database.close();
  await using gateway = await files.start(document("two"));
  const refused = await gateway.rollback(1);
  assert.equal(refused.status, 400);
  const { error } = JSON.parse(refused.text) as { error: { code: string; message: string; issues: unknown[] } };
  assert.equal(error.code, "config_invalid");
  assert.match(error.message, /^Generation 1 cannot run any more\. The configuration has \d+ errors?: /);
  assert.ok(error.issues.length > 0);
  assert.deepEqual([await gateway.response(), await files.written()], ["two", document("two")]);
});
