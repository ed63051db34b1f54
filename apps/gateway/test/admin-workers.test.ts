import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import { ADMIN } from "./admin-rig.ts";
import { serving } from "./gateway-rig.ts";
import { startWorkers } from "./workers-rig.ts";

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
  // A connection each, which the workers share among them.
  const got = async (): Promise<readonly string[]> =>
    await Promise.all(
      Array.from({ length: 40 }, async () => {
        const answer = await fetch(`http://127.0.0.1:${gateway.port}/`, { headers: { connection: "close" } });
        return await answer.text();
      }),
    );
  await got();
  await gateway.servedBy(200, 2);
  version = "new";
  assert.ok((await got()).every((text) => text === "old"));
  const purged = await fetch(`${gateway.adminUrl}/cache/purge`, { method: "POST", body: '{"route":"cached"}' });
  assert.deepEqual(await purged.json(), { routes: 1 });
  assert.ok((await got()).every((text) => text === "new"));
  const none = await fetch(`${gateway.adminUrl}/cache/purge`, { method: "POST", body: '{"route":"none"}' });
  assert.equal(none.status, 404);
});
