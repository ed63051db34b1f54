import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Notice } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import { openRig } from "#storage/store-rig.ts";
import { HEALTHY, startApi } from "../../../test/api-rig.ts";
import type { ApiRig, ApiRigOptions } from "../../../test/api-rig.ts";
import { createCaptureSlice } from "./capture.slice.ts";

const startCapture = (options: ApiRigOptions = {}): Promise<ApiRig> =>
  startApi({ ...options, slices: (host) => [createCaptureSlice(host)] });

const recording = { capture_enabled: true, mode: "recording" };
const passthrough = { capture_enabled: false, mode: "passthrough" };

test("a toggle flips without a body, sets with one, and survives a restart", async () => {
  await using api = await startCapture();
  assert.deepEqual((await api.call("GET", "/api/capture")).json, recording);
  const toggle = async (body?: object): Promise<unknown> => (await api.call("POST", "/api/capture/toggle", body)).json;
  assert.deepEqual(await toggle(), passthrough);
  assert.deepEqual(await toggle(), recording);
  assert.deepEqual(await toggle({ enabled: true }), recording);
  assert.deepEqual(await toggle({ enabled: false }), passthrough);
  assert.deepEqual((await api.call("GET", "/api/capture")).json, passthrough);
  assert.equal(
    (JSON.parse(readFileSync(api.directory.file("config.json"), "utf8")) as { capture_enabled: boolean })
      .capture_enabled,
    false,
  );
});

test("a toggle that is not understood changes nothing", async () => {
  await using api = await startCapture();
  for (const body of [{}, { enabled: "no" }, { enable: false }]) {
    assert.equal((await api.call("POST", "/api/capture/toggle", body)).status, 400);
  }
  assert.deepEqual((await api.call("GET", "/api/capture")).json, recording);
});

test("statistics join what is stored with its limits, 0 standing for no limit", async () => {
  await using api = await startCapture({
    status: () => ({ ...HEALTHY, ok: false, problem: "The disk is full", entriesLost: 7 }),
  });
  const expected = {
    entry_count: 3,
    max_entries: 100_000,
    total_size_bytes: 1000,
    max_total_size_bytes: 0,
    max_body_size: 20_971_520,
    capture_enabled: true,
    capture_request_bodies: true,
    capture_response_bodies: true,
    ignored_domains: [],
    store_size_bytes: 4096,
    bodies_not_stored: 0,
    entries_removed: 0,
    entries_lost: 7,
    storage_ok: false,
    storage_problem: "The disk is full",
  };
  assert.deepEqual((await api.call("GET", "/api/capture/stats")).json, expected);
  api.settings.patch({ max_total_size_mb: 2, ignored_domains: ["a.test"] });
  assert.deepEqual((await api.call("GET", "/api/capture/stats")).json, {
    ...expected,
    max_total_size_bytes: 2_097_152,
    ignored_domains: ["a.test"],
  });
});

test("when pruning starts, all clients are notified once per session", async () => {
  const directory = await temporaryDirectory();
  const stored = await openRig(directory.path, { maxRequests: 3 });
  const notices: Notice[] = [];
  const lines: string[] = [];
  await using api = await startApi({
    savedSettings: { max_requests: 3 },
    slices: (host) => [
      createCaptureSlice({
        ...host,
        store: stored.store,
        log: pino({}, { write: (line) => void lines.push((JSON.parse(line) as { msg: string }).msg) }),
        events: { ...host.events, hasListeners: true, notice: (notice) => void notices.push(notice) },
      }),
    ],
  });
  const add = async (count: number): Promise<void> => {
    for (let number = 0; number < count; number += 1) stored.add();
    await stored.store.flush();
  };
  await add(3);
  assert.deepEqual(notices, []);
  await add(2);
  await add(2);
  const message =
    "The session has reached max_requests (3 entries): the oldest entries are removed as new ones come. Raise the limit, or export what you want to keep";
  assert.deepEqual([notices, lines], [[{ code: "entries-removed", message }], [message]]);
  const stats = (await api.call("GET", "/api/capture/stats")).json as { entries_removed: number; entry_count: number };
  assert.deepEqual([stats.entry_count, stats.entries_removed], [3, 4]);
  const other = await stored.store.createSession("other", null);
  await stored.store.switchSession(other.id);
  await add(4);
  assert.equal(notices.length, 2);
  await stored[Symbol.asyncDispose]();
  await directory.remove();
});
