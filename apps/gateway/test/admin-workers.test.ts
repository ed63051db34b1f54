import assert from "node:assert/strict";
import { constants, copyFile, rename } from "node:fs/promises";
import { test } from "node:test";
import { startOrigin, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { ADMIN } from "./admin-rig.ts";
import { serving } from "./gateway-rig.ts";
import { agentsOfWorkers, get, startWorkers } from "./workers-rig.ts";

test("POST /cache/purge reaches every worker process", async () => {
  let version = "old";
  await using origin = await startOrigin({
    handler: (_request, response) => {
      response.setHeader("cache-control", "max-age=600");
      response.end(version);
    },
  });
  await using gateway = await startWorkers({
    ...serving("api", [origin.port]),
    admin: ADMIN,
    routes: [
      {
        name: "cached",
        service: "api",
        match: { path: { type: "prefix", value: "/" } },
        action: { type: "proxy" },
        cache: { ttl_secs: 600 },
      },
    ],
  });
  const agents = await agentsOfWorkers(gateway);
  const got = async (): Promise<readonly string[]> =>
    await Promise.all(agents.map(async (agent) => (await get(gateway.port, "/", { agent })).text));
  try {
    assert.deepEqual(await got(), ["old", "old"]);
    version = "new";
    assert.deepEqual(await got(), ["old", "old"]);
    const purged = await fetch(`${gateway.adminUrl}/cache/purge`, { method: "POST", body: '{"route":"cached"}' });
    assert.deepEqual(await purged.json(), { routes: 1 });
    assert.deepEqual(await got(), ["new", "new"]);
    const none = await fetch(`${gateway.adminUrl}/cache/purge`, { method: "POST", body: '{"route":"none"}' });
    assert.equal(none.status, 404);
  } finally {
    for (const agent of agents) agent.destroy();
  }
});

test("GET /traffic adds up what all workers handled", async () => {
  await using origin = await startOrigin({});
  await using gateway = await startWorkers({
    ...serving("api", [origin.port]),
    admin: ADMIN,
    routes: [
      { name: "all", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
    ],
  });
  const agents = await agentsOfWorkers(gateway);
  try {
    for (const agent of agents) for (let at = 0; at < 3; at += 1) await get(gateway.port, "/", { agent });
    const traffic = (await (await fetch(`${gateway.adminUrl}/traffic`)).json()) as { routes: object[] };
    assert.deepEqual(traffic.routes, [{ name: "all", requests: 6, share: 1 }]);
  } finally {
    for (const agent of agents) agent.destroy();
  }
});

test("GET /health says ready while at least one worker takes requests, and not ready without any", async () => {
  await using directory = await temporaryDirectory();
  const node = directory.file("node");
  await copyFile(process.execPath, node, constants.COPYFILE_FICLONE);
  await using gateway = await startWorkers({ routes: [], admin: ADMIN }, { node });
  const isReady = async (): Promise<unknown> => {
    const { ready } = (await (await fetch(`${gateway.adminUrl}/health`)).json()) as { ready: unknown };
    return ready;
  };
  const ended = (): number => gateway.lines().filter(({ code }) => code === "worker_ended").length;
  assert.equal(await isReady(), true);
  // No other can be started meanwhile.
  await rename(node, directory.file("away"));
  const [first = 0, second = 0] = gateway.workerPids();
  process.kill(first, "SIGKILL");
  await waitUntil(() => ended() > 0, { what: "the end of one worker" });
  assert.equal(await isReady(), true);
  process.kill(second, "SIGKILL");
  await gateway.child.waitForOutput(new RegExp(`"code":"worker_ended"[^\\n]*"worker_pid":${second}`));
  assert.equal(await isReady(), false);
  await rename(directory.file("away"), node);
  await waitUntil(() => gateway.workerPids().length > 2, { what: "another worker", timeoutMs: 30_000 });
  assert.equal(await isReady(), true);
});
