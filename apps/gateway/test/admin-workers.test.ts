import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
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
