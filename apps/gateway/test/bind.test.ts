import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runProcess, spawnProcess, temporaryDirectory } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { startGateway } from "./gateway-rig.ts";
import { responding } from "./route-documents.ts";

const MAIN = fileURLToPath(new URL("../bin/sluice.js", import.meta.url));
const BIND = { GATEWAY_BIND: "127.0.0.1:0" };

/** Listeners that cannot be opened: a foreign address, and missing files. */
const document = (body: string): DocumentInput => ({
  listeners: [
    { name: "far", address: "192.0.2.1", port: 80, policies: ["one"] },
    {
      name: "secure",
      address: "192.0.2.1",
      port: 443,
      protocol: "https",
      proxy_protocol: true,
      tls: { cert_file: "/no/such/cert.pem", key_file: "/no/such/key.pem" },
    },
  ],
  policies: [{ name: "one", rate_limits: [{ selector: ["ip"], requests_per: { hour: 1 } }] }],
  routes: [responding("r", "/r", { action: { type: "respond", status: 200, body } })],
});

test("GATEWAY_BIND replaces all listeners by one in plain text, without their policies, over reloads too", async () => {
  await using gateway = await startGateway(document("one"), { environment: BIND });
  assert.deepEqual(
    gateway.gateway.addresses.map(({ name, address }) => [name, address]),
    [["bind", "127.0.0.1"]],
  );
  const { port } = gateway.gateway.addresses[0] ?? { port: 0 };
  for (let at = 0; at < 3; at += 1) {
    const response = await gateway.send({ path: "/r", listener: "bind" });
    assert.deepEqual(
      [response.status, response.body.toString()],
      [200, "one"],
      "the listener's limit of 1 does not hold",
    );
    assert.equal((await gateway.send({ path: "/none", listener: "bind" })).status, 404);
  }
  assert.equal((await gateway.reload(document("two"))).outcome, "published");
  assert.equal((await gateway.send({ path: "/r", listener: "bind" })).body.toString(), "two");
  assert.equal(gateway.gateway.addresses[0]?.port, port);
});

test("GATEWAY_BIND does not hide what else is wrong with a document", async () => {
  const wrong = { ...document("x"), routes: [responding("r", "/r", { policies: ["none"] })] };
  await assert.rejects(startGateway(wrong, { environment: BIND }), { name: "Error", message: /has errors/ });
});

test("sluice serve takes GATEWAY_BIND, for its workers too, and says what is wrong with it", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.json");
  await writeFile(file, JSON.stringify(document("worked")));
  const args = [MAIN, "serve", "--config", file, "--json", "--workers", "2"];
  const bad = await runProcess(process.execPath, args, {
    timeoutMs: 30_000,
    env: { GATEWAY_BIND: "80" },
  });
  assert.equal(bad.code, 1);
  assert.match(bad.stderr, /sluice: GATEWAY_BIND must be an address and a port.*it is "80"\n/);
  await using child = await spawnProcess(process.execPath, args, { env: BIND });
  const [line] = await child.waitForOutput(/^\{.*"listeners".*\}$/m, 30_000);
  const { listeners } = JSON.parse(line) as { listeners: { name: string; port: number }[] };
  assert.deepEqual(
    listeners.map(({ name }) => name),
    ["bind"],
  );
  const responses = await Promise.all(
    Array.from({ length: 4 }, async () => await (await fetch(`http://127.0.0.1:${listeners[0]?.port}/r`)).text()),
  );
  assert.deepEqual(new Set(responses), new Set(["worked"]));
  process.kill(child.pid, "SIGTERM");
  assert.equal((await child.exited).code, 0);
});
