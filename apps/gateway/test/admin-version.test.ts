import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import { ADMIN, call, DEV, listeners } from "./admin-rig.ts";
import { startGateway } from "./gateway-rig.ts";

test("GET /version counts the uptime by the time that passes, whatever becomes of the wall clock", async () => {
  const clock = new FakeClock();
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [] }, { ...DEV, clock });
  const uptime = async (): Promise<number> => (await call(gateway, "/version")).json()["uptime_seconds"] ?? -1;
  await clock.advance(90_500);
  assert.equal(await uptime(), 90);
  clock.jumpWallClock(-3_600_000);
  assert.equal(await uptime(), 90);
  clock.jumpWallClock(7_200_000);
  assert.equal(await uptime(), 90);
});
