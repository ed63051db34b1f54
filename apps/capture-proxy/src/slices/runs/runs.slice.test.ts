import assert from "node:assert/strict";
import { test } from "node:test";
import type { CaptureSession, Run } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { SessionProxy } from "#slice.ts";
import type { StoreLimits } from "#storage/capture-store.ts";
import { sampleExchange } from "#storage/read/sample-exchange.ts";
import { openRig, type StoreRig } from "#storage/store-rig.ts";
import { type ApiRig, startApi } from "../../../test/api-rig.ts";
import { createRunsSlice, MAX_RUNS } from "./runs.slice.ts";

/** A proxy whose client count the test sets. */
class Placeholder implements SessionProxy {
  readonly url = "http://127.0.0.1:45123";
  readonly session: number;
  clientCount = 0;
  idleMs = 0;
  isClosed = false;

  constructor(session: number) {
    this.session = session;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.resolve();
  }
}

interface Rig extends AsyncDisposable {
  readonly api: ApiRig;
  readonly stored: StoreRig;
  readonly proxies: readonly Placeholder[];
  readonly slice: ReturnType<typeof createRunsSlice>;
  begin(name?: string): Promise<Run>;
  /** Ends the run and advances the clock until the response arrives. */
  end(id: string): Promise<Run>;
}

async function startRuns(limits: Partial<StoreLimits> = {}): Promise<Rig> {
  const directory = await temporaryDirectory();
  const stored = await openRig(directory.path, limits);
  const proxies: Placeholder[] = [];
  const made: ReturnType<typeof createRunsSlice>[] = [];
  const api = await startApi({
    slices: (host) => {
      const slice = createRunsSlice({ ...host, store: stored.store }, async (session) => {
        const proxy = new Placeholder(session);
        proxies.push(proxy);
        return await Promise.resolve(proxy);
      });
      made.push(slice);
      return [slice];
    },
  });
  const [slice = assert.fail("no slice")] = made;
  const stop = new AbortController();
  slice.task?.start(stop.signal);
  return {
    api,
    stored,
    proxies,
    slice,
    begin: async (name) => {
      const { status, json } = await api.call("POST", "/api/runs", name === undefined ? undefined : { name });
      assert.equal(status, 200, JSON.stringify(json));
      return json as Run;
    },
    end: async (id) => {
      let response: { status: number; json: unknown } | undefined;
      const call = api.call("POST", `/api/runs/${id}/end`).then((given) => (response = given));
      while (response === undefined) await api.clock.advance(20);
      await call;
      assert.equal(response.status, 200, JSON.stringify(response.json));
      return response.json as Run;
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await api[Symbol.asyncDispose]();
      await stored[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

const sessionOf = async ({ stored }: Rig, id: string): Promise<CaptureSession | undefined> =>
  await stored.store.getSession(id);

test("a run has a proxy and a session of its own, and the active session stays", async () => {
  await using rig = await startRuns();
  const activeId = rig.stored.store.activeSessionId;
  const run = await rig.begin("mine");
  assert.deepEqual([run.session_name, run.proxy_url, run.ended_at], ["mine", "http://127.0.0.1:45123", null]);
  assert.equal(rig.stored.store.activeSessionId, activeId);
  const [proxy] = rig.proxies;
  rig.stored.add({ path: "/theirs" });
  rig.stored.add({ path: "/ours", client: { address: "127.0.0.1:1", connection: 1, session: proxy?.session } });
  await rig.stored.store.flush();
  const paths = async (session_id: string) => (await rig.stored.rows({ session_id })).rows.map(({ path }) => path);
  assert.deepEqual([await paths(activeId), await paths(run.session_id)], [["/theirs"], ["/ours"]]);
  const list = await rig.api.call("GET", "/api/runs");
  assert.deepEqual([list.headers.get("x-total-count"), list.json], ["1", [run]]);
  assert.deepEqual((await rig.api.call("GET", `/api/runs/${run.id}`)).json, run);
});

test("the end of a run waits for exchanges in flight, at most three seconds", async () => {
  await using rig = await startRuns();
  const run = await rig.begin();
  const client = { address: "127.0.0.1:1", connection: 1, session: rig.proxies[0]?.session };
  const exchange = sampleExchange({ client, state: { step: "forwarding" } }) as ExchangeView;
  rig.slice.observer?.onStarted?.(exchange);
  const startMs = rig.api.clock.monotonic();
  const waited = await rig.end(run.id);
  assert.equal(waited.open_exchanges, 1);
  assert.ok(rig.api.clock.monotonic() - startMs >= 3000);
  rig.slice.observer?.onFinished?.(exchange);
  assert.equal((await rig.end(run.id)).open_exchanges, 0);
});

test("the proxy of a run that has ended closes when it is idle; one that is in use or renewed stays open", async () => {
  await using rig = await startRuns();
  const [ended, used, silent, heard] = [await rig.begin(), await rig.begin(), await rig.begin(), await rig.begin()];
  await rig.end(ended.id);
  await rig.end(used.id);
  for (const proxy of rig.proxies) proxy.idleMs = 1e9;
  const [, usedProxy] = rig.proxies;
  if (usedProxy) usedProxy.clientCount = 1;
  const open = (): boolean[] => rig.proxies.map(({ isClosed }) => !isClosed);
  await rig.api.clock.advance(10_000);
  assert.deepEqual(open(), [false, true, true, true]);
  await rig.api.clock.advance(14 * 60_000);
  assert.equal((await rig.api.call("POST", `/api/runs/${heard.id}/renew`)).status, 200);
  await rig.api.clock.advance(2 * 60_000);
  assert.deepEqual(open(), [false, true, false, true]);
  assert.equal((await rig.api.call("GET", `/api/runs/${silent.id}`)).status, 404);
  assert.ok((await sessionOf(rig, silent.session_id)) !== undefined, "what it captured stays");
});

test("the number of open runs is limited, and an unknown run is 404", async () => {
  await using rig = await startRuns();
  for (let count = 0; count < MAX_RUNS; count += 1) await rig.begin();
  const refused = await rig.api.call("POST", "/api/runs");
  assert.deepEqual([refused.status, (refused.json as { code: string }).code], [409, "CONFLICT"]);
  for (const [method, path] of [
    ["GET", "/unknown"],
    ["POST", "/unknown/renew"],
    ["POST", "/unknown/end"],
  ] as const) {
    assert.equal((await rig.api.call(method, `/api/runs${path}`)).status, 404, path);
  }
});

test("max_requests applies to a run's session while its proxy is open, separately from the active session", async () => {
  await using rig = await startRuns({ maxRequests: 3 });
  const run = await rig.begin();
  const client = { address: "127.0.0.1:1", connection: 1, session: rig.proxies[0]?.session };
  for (let count = 0; count < 3; count += 1) rig.stored.add();
  for (let count = 0; count < 5; count += 1) rig.stored.add({ client });
  await rig.stored.store.flush();
  assert.equal((await sessionOf(rig, run.session_id))?.request_count, 3);
  assert.equal((await sessionOf(rig, rig.stored.store.activeSessionId))?.request_count, 3);
});

test("traffic of a run whose session was deleted goes into the active session", async () => {
  await using rig = await startRuns();
  const run = await rig.begin();
  const client = { address: "127.0.0.1:1", connection: 1, session: rig.proxies[0]?.session };
  await rig.stored.store.deleteSession(run.session_id);
  const exchange = rig.stored.add({ client });
  await rig.stored.store.flush();
  assert.equal(rig.stored.store.sessionIdOf(exchange), rig.stored.store.activeSessionId);
  assert.equal((await rig.stored.rows()).total, 1);
});
