import assert from "node:assert/strict";
import { test } from "node:test";
import type { CaptureSession, RestoredSession } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import type { StoreLimits } from "#storage/capture-store.ts";
import { openRig } from "#storage/store-rig.ts";
import type { StoreRig } from "#storage/store-rig.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createSessionsSlice } from "./sessions.slice.ts";

async function startSessions(
  limits: Partial<StoreLimits> = {},
): Promise<{ api: ApiRig; stored: StoreRig; [Symbol.asyncDispose](): Promise<void> }> {
  const directory = await temporaryDirectory();
  const stored = await openRig(directory.path, limits);
  const api = await startApi({ slices: (host) => [createSessionsSlice({ ...host, store: stored.store })] });
  return {
    api,
    stored,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]();
      await stored[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

test("sessions are created, listed, updated, switched to and deleted", async () => {
  await using rig = await startSessions();
  const { api } = rig;
  const [first] = (await api.call("GET", "/api/sessions")).json as CaptureSession[];
  assert.deepEqual([first?.name, first?.is_current, first?.request_count], ["Default Session", true, 0]);
  const created = await api.call("POST", "/api/sessions", { name: "Mine", description: "why" });
  assert.equal(created.status, 200);
  const session = created.json as CaptureSession;
  assert.deepEqual([session.name, session.notes, session.is_current], ["Mine", "why", false]);
  assert.equal((await api.call("POST", "/api/sessions")).status, 200, "a body is not needed");
  const patched = await api.call("PATCH", `/api/sessions/${session.id}`, { notes: null, tags: ["a"] });
  assert.deepEqual([(patched.json as CaptureSession).notes, (patched.json as CaptureSession).tags], [null, ["a"]]);
  assert.deepEqual((await api.call("POST", `/api/sessions/${session.id}/switch`)).json, { success: true });
  const current = (await api.call("GET", `/api/sessions/${session.id}`)).json as CaptureSession;
  assert.equal(current.is_current, true);
  const conflict = await api.call("DELETE", `/api/sessions/${session.id}`);
  assert.deepEqual([conflict.status, (conflict.json as { code: string }).code], [409, "CONFLICT"]);
  assert.equal((await api.call("DELETE", `/api/sessions/${first?.id}`)).status, 204);
  assert.equal((await api.call("DELETE", "/api/sessions/unknown")).status, 204);
});

test("switching to a session reports how many of its entries max_requests drops", async () => {
  await using rig = await startSessions({ maxRequests: 2 });
  const { api, stored } = rig;
  for (const path of ["/1", "/2"]) stored.add({ path, responseBody: ["answer"] });
  await stored.store.flush();
  const first = stored.store.activeSessionId;
  const next = (await api.call("POST", "/api/sessions")).json as CaptureSession;
  assert.deepEqual((await api.call("POST", `/api/sessions/${next.id}/switch`)).json, { success: true });
  stored.store.setLimits({ maxRequests: 1, maxTotalSizeMb: null, maxBodyBytes: 1000 });
  const back = await api.call("POST", `/api/sessions/${first}/switch`);
  assert.deepEqual(back.json, { success: true, dropped_count: 1 });
});

test("unknown sessions are 404", async () => {
  await using rig = await startSessions();
  const calls: readonly [method: string, path: string, body?: object][] = [
    ["GET", "/unknown"],
    ["PATCH", "/unknown", { name: "x" }],
    ["POST", "/unknown/switch"],
    ["GET", "/unknown/export"],
    ["GET", "/unknown/export?format=har"],
  ];
  for (const [method, path, body] of calls) {
    const { status, json } = await rig.api.call(method, `/api/sessions${path}`, body);
    assert.deepEqual([status, (json as { error: string }).error], [404, "Session not found"], path);
  }
});

test("an exported session imports unchanged; a bad file is rejected and leaves nothing behind", async () => {
  await using rig = await startSessions();
  const { api, stored } = rig;
  stored.add({ responseBody: ["answer"] });
  await stored.store.flush();
  const id = stored.store.activeSessionId;
  const exported = await api.call("GET", `/api/sessions/${id}/export`);
  assert.equal(exported.headers.get("x-total-count"), "1");
  const imported = await api.call("POST", "/api/sessions/import?session_name=Copy&switch_session=true", exported.json);
  assert.equal(imported.status, 200, JSON.stringify(imported.json));
  const session = imported.json as RestoredSession;
  assert.deepEqual([session.name, session.request_count, session.is_current], ["Copy", 1, true]);
  assert.deepEqual([session.skipped_count, session.errors], [0, []]);
  const har = await api.call("GET", `/api/sessions/${session.id}/export?format=har`);
  assert.equal((har.json as { log: { entries: unknown[] } }).log.entries.length, 1);
  const refused = await api.call("POST", "/api/sessions/import", { version: "9" });
  assert.deepEqual([refused.status, (refused.json as { code: string }).code], [400, "BAD_REQUEST"]);
  assert.equal(((await api.call("GET", "/api/sessions")).json as unknown[]).length, 2);
});
