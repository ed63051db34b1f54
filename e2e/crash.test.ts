import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { proxyClient, startOrigin, temporaryDirectory } from "@headworks/testkit";
import type { Origin, ProxyClient } from "@headworks/testkit";
import { Cleanups, startWeir } from "./rig.ts";
import type { Entry, Weir } from "./rig.ts";
import { watchHealth } from "./watch.ts";

const ROUNDS = 4;
/** Exchanges that ended this long before the kill must be stored. */
const COMMITTED_AFTER_MS = 250;
/** If Weir takes longer to report its health, the machine was paused and nothing was committed. */
const ANSWERED_AFTER_MS = 100;

const cleanups = new Cleanups();
let origin: Origin;
before(async () => {
  origin = cleanups.use(
    await startOrigin({ handler: (request, response) => response.end(`response to ${request.url}`.repeat(50)) }),
  );
});
after(() => cleanups.run());

/** Sends requests sequentially until stopped; records when each response was complete. */
function load(
  client: ProxyClient,
  prefix: string,
): { stop(): Promise<Map<string, number>>; seen: Map<string, number>; sent: Set<string> } {
  const seen = new Map<string, number>();
  const sent = new Set<string>();
  let isFinished = false;
  const worker = async (number: number): Promise<void> => {
    for (let index = 0; !isFinished; index += 1) {
      const path = `/${prefix}-${number}-${index}`;
      sent.add(path);
      const status = await client.fetch(`${origin.url}${path}`).then(
        (response) => response.status,
        () => undefined,
      );
      if (status === 200) seen.set(path, performance.now());
      else return;
    }
  };
  const workers = Promise.all([0, 1, 2].map(worker));
  return {
    seen,
    sent,
    async stop() {
      isFinished = true;
      await workers;
      return seen;
    },
  };
}

async function storedPaths(weir: Weir): Promise<Map<string, Entry>> {
  const paths = new Map<string, Entry>();
  for (let offset = 0; ; offset += 1000) {
    const page = await weir.get<Entry[]>(`/traffic?limit=1000&offset=${offset}&include_bodies=true`);
    for (const entry of page) paths.set(entry.request.path, entry);
    if (page.length < 1000) return paths;
  }
}

test("after kill -9 under load all acknowledged exchanges are stored completely, and the database is intact", async () => {
  await using directory = await temporaryDirectory();
  const dataDir = directory.file("data");
  const acknowledged = new Set<string>();
  const requested = new Set<string>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const weir = await startWeir({ dataDir, args: ["--max-requests=0"] });
    const stored = await storedPaths(weir);
    const lost = [...acknowledged].filter((path) => !stored.has(path));
    assert.deepEqual(lost, [], `round ${round}: lost ${lost.length} of ${acknowledged.size}`);
    for (const [path, { response }] of stored) {
      assert.ok(requested.has(path), `${path} was never requested`);
      if (acknowledged.has(path)) assert.equal(response?.body, `response to ${path}`.repeat(50));
    }
    const running = load(proxyClient(weir.proxyPort), `round${round}`);
    const health = watchHealth(weir);
    await delay(randomInt(400, 900));
    const { maxMs } = await health.stop();
    const stoodStillMs = Math.max(0, maxMs - ANSWERED_AFTER_MS);
    const killedMs = performance.now();
    process.kill(weir.pid, "SIGKILL");
    await weir.process.exited;
    await weir.stop();
    for (const [path, endedMs] of await running.stop()) {
      if (endedMs < killedMs - COMMITTED_AFTER_MS - stoodStillMs) acknowledged.add(path);
    }
    for (const path of running.sent) requested.add(path);
    checkDatabases(dataDir);
  }
  assert.ok(acknowledged.size > 20, `${acknowledged.size} exchanges are too few to show anything`);
  process.stdout.write(`# ${acknowledged.size} acknowledged exchanges survived ${ROUNDS} kills\n`);
  await using last = await startWeir({ dataDir, args: ["--max-requests=0"] });
  const stored = await storedPaths(last);
  assert.deepEqual(
    [...acknowledged].filter((path) => !stored.has(path)),
    [],
  );
  assert.ok(
    [...stored.values()].every(({ state }) => state !== "pending"),
    "an entry waits for an end that cannot come",
  );
});

function checkDatabases(dataDir: string): void {
  for (const file of ["traffic.db", "weir.db"]) {
    const database = new DatabaseSync(join(dataDir, file));
    const [response] = database.prepare("PRAGMA integrity_check").all();
    database.close();
    assert.deepEqual({ ...response }, { integrity_check: "ok" }, file);
  }
}
