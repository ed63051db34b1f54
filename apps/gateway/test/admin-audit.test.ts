import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin, temporaryDirectory } from "@headworks/testkit";
import { ADMIN, call, DEV, listeners } from "./admin-rig.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

const route = (body: string) => ({
  name: "fixed",
  match: { path: { type: "exact" as const, value: "/" } },
  action: { type: "respond" as const, status: 200, body },
});

/** What the audit log says, oldest first. */
async function told(gateway: TestGateway): Promise<(string | undefined)[][]> {
  const { entries } = (await call(gateway, "/audit")).json() as unknown as { entries: Record<string, string>[] };
  return entries.map(({ operation, outcome, detail }) => [operation, outcome, detail]).toReversed();
}

test("the audit log says which generation a change of the configuration became, and what was a dry run", async () => {
  const document = { listeners, admin: ADMIN, routes: [route("one")] };
  await using gateway = await startGateway(document, DEV);
  const body = JSON.stringify({ ...document, routes: [route("two")] });
  await call(gateway, "/config?dry_run=true", { method: "PUT", body });
  await call(gateway, "/config", { method: "PUT", body });
  await call(gateway, "/config?dry_run=true", { method: "PATCH", body: "nope: 1" });
  await call(gateway, "/config", { method: "PATCH", body: "nope: 1" });
  const back = { method: "POST", headers: { "content-type": "application/json" } };
  await call(gateway, "/config/rollback", { ...back, body: '{"generation":1}' });
  await call(gateway, "/config/rollback", { ...back, body: '{"generation":99}' });
  assert.deepEqual(await told(gateway), [
    ["putConfig", "ok", "dry run"],
    ["putConfig", "ok", "generation 2"],
    ["patchConfig", "config_invalid", "dry run"],
    ["patchConfig", "config_invalid", undefined],
    ["rollbackConfig", "ok", "back to 1: generation 3"],
    ["rollbackConfig", "generation_not_found", "back to 99"],
  ]);
});

test("the audit log names the breakers and endpoints that operators changed, and how", async () => {
  await using origin = await startOrigin();
  const { upstreams, services } = serving("api", [origin.port], { breaker: {}, health: {} });
  await using gateway = await startGateway(
    { listeners, admin: ADMIN, upstreams, services, routes: [route("one")] },
    DEV,
  );
  const endpoint = `127.0.0.1:${origin.port}`;
  const post = async (path: string, body: object): Promise<void> =>
    void (await call(gateway, path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    }));
  await post("/upstreams/api/breaker", { state: "open" });
  await post(`/upstreams/api/endpoints/${endpoint}`, { action: "drain" });
  await post("/upstreams/api/endpoints/127.0.0.1:1", { action: "eject" });
  await post("/upstreams/none/breaker", { state: "closed" });
  assert.deepEqual(await told(gateway), [
    ["forceBreaker", "ok", "api open"],
    ["forceEndpoint", "ok", `api ${endpoint} drain`],
    ["forceEndpoint", "not_found", "api 127.0.0.1:1 eject"],
    ["forceBreaker", "not_found", "none closed"],
  ]);
});

test("runs of exports: the audit log names their window, and a limit is taken as 1 to 100", async () => {
  await using directory = await temporaryDirectory();
  const analytics = { exports: { directory: directory.file("exports") } };
  await using gateway = await startGateway(
    { listeners, admin: ADMIN, analytics, routes: [route("one")] },
    { environment: { ...DEV.environment, GATEWAY_STATE_DB: directory.file("state.db") } },
  );
  const fromMs = Date.UTC(2026, 0, 31, 12);
  const body = JSON.stringify({ window: "hourly", window_start_ms: fromMs });
  for (const _time of [1, 2]) {
    const headers = { "content-type": "application/json" };
    const run = await call(gateway, "/analytics/exports/run", { method: "POST", body, headers });
    assert.equal(run.status, 200, run.text);
  }
  const window = new Date(fromMs).toISOString();
  const entry = ["runExport", "ok", `hourly ${window}`];
  assert.deepEqual(await told(gateway), [entry, entry]);
  for (const [limit, count] of [
    ["0", 1],
    ["-5", 1],
    ["1", 1],
    ["100000", 2],
  ] as const) {
    const { runs } = (await call(gateway, `/analytics/exports?limit=${limit}`)).json() as unknown as {
      runs: unknown[];
    };
    assert.equal(runs.length, count, limit);
  }
});
