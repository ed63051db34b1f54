import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { constants, copyFile, rename, writeFile } from "node:fs/promises";
import type { Agent } from "node:http";
import { test } from "node:test";
import { startOrigin, temporaryDirectory, waitUntil, type Origin, type TemporaryDirectory } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving } from "./gateway-rig.ts";
import { agentsOfWorkers, get, startWorkers, type WorkerGateway } from "./workers-rig.ts";

type Route = NonNullable<DocumentInput["routes"]>[number];

/** What all rules are shown with. Each has routes and consumers of its own, and leaves two workers that take requests. */
interface Shared {
  readonly origin: Origin;
  readonly directory: TemporaryDirectory;
  readonly gateway: WorkerGateway;
  /** What it runs, with this body at /fixed. */
  readonly document: (body: string, listeners?: DocumentInput["listeners"]) => DocumentInput;
}

const fixed = (name: string, body: string, more: Partial<Route> = {}): Route => ({
  name,
  match: { path: { type: "exact", value: `/${name}` } },
  action: { type: "respond", status: 200, body },
  ...more,
});

/** A consumer with a key that is named after it. */
const budgeted = (name: string) => ({
  name,
  credentials: [{ type: "api_key" as const, key: `key-of-${name}` }],
  quotas: { daily_requests: 50n },
});
const keyOf = (name: string) => ({ "X-API-Key": `key-of-${name}` });

const documentOver = (port: number, keyFile: string, body: string): DocumentInput => ({
  ...serving("u", [port], { breaker: {} }),
  consumers: [
    budgeted("acme"),
    budgeted("bereft"),
    { name: "signing", credentials: [{ type: "hmac", key_id: "key-1", secret: "signing-secret-1" }] },
    { name: "filed", credentials: [{ type: "api_key", key: `\${file:${keyFile}}` }] },
  ],
  policies: [
    { name: "thirty", rate_limits: [{ selector: ["ip"], requests_per: { hour: 30 } }] },
    { name: "ten", rate_limits: [{ selector: ["route"], requests_per: { hour: 10 } }] },
  ],
  routes: [
    fixed("fixed", body),
    fixed("counted", "one"),
    fixed("stuck", "one"),
    fixed("thirty", "one", { policies: ["thirty"] }),
    fixed("ten", "one", { policies: ["ten"] }),
    { name: "all", service: "u", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
  ],
});

/** The fields of a signed request without a body. */
function signed(path: string): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const nonce = "nonce-000000000001";
  const digest = createHash("sha256").update("").digest("hex");
  const canonical = `gateway-hmac-v1\nkey-1\nGET\n${path}\n\n${timestamp}\n${nonce}\n${digest}`;
  return {
    "X-Gateway-Key-Id": "key-1",
    "X-Gateway-Timestamp": timestamp,
    "X-Gateway-Nonce": nonce,
    "X-Gateway-Body-Sha256": digest,
    "X-Gateway-Signature": createHmac("sha256", "signing-secret-1").update(canonical).digest("hex"),
  };
}

/** What a scrape says of one sample. */
async function metric(gateway: WorkerGateway, sample: string): Promise<number> {
  const { text } = await get(gateway.port, "/metrics");
  const line = text.split("\n").find((each) => each.startsWith(`${sample} `));
  return Number(line?.slice(sample.length + 1) ?? Number.NaN);
}

/** Sends requests at once, each on a connection of its own; gives the answers. */
async function atOnce(port: number, path: string, count: number, headers: Record<string, string> = {}) {
  return await Promise.all(Array.from({ length: count }, async () => await get(port, path, { headers })));
}

/** Every body that came at /fixed. */
async function bodies(port: number, count: number): Promise<string[]> {
  return [...new Set((await atOnce(port, "/fixed", count)).map(({ text }) => text))];
}

/** Kills the worker that runs for the longest time. */
function killWorker(gateway: WorkerGateway): number {
  const [victim = 0] = gateway.runningPids();
  process.kill(victim, "SIGKILL");
  return victim;
}

/** The same, and waits until another one takes its place. */
async function replaceWorker(gateway: WorkerGateway): Promise<void> {
  const victim = killWorker(gateway);
  await waitUntil(() => !gateway.runningPids().includes(victim), { what: "the end of the worker" });
  await gateway.whole();
}

/** Changes what the gateway runs, and waits until it says so. */
async function published(gateway: WorkerGateway, change: () => Promise<void> | void): Promise<void> {
  const before = gateway.generation();
  await change();
  await waitUntil(() => gateway.generation() > before, { what: "the next generation" });
}

const adminOf = (gateway: WorkerGateway): number => Number(new URL(gateway.adminUrl).port);

const RULES: Readonly<Record<string, (shared: Shared) => Promise<void>>> = {
  "a quota of 50 under parallel load of both workers admits exactly 50": async ({ origin, gateway }) => {
    using clients = new Clients(await agentsOfWorkers(gateway));
    const first = await clients.statuses(gateway.port, "/quota", 1, keyOf("acme"));
    assert.deepEqual(first, [[200], [200]], "both admit some");
    const statuses = [first, await clients.statuses(gateway.port, "/quota", 99, keyOf("acme"))].flat(2);
    assert.equal(statuses.filter((status) => status === 200).length, 50);
    assert.equal(statuses.filter((status) => status === 429).length, 150);
    assert.equal(origin.requests.filter(({ url }) => url === "/quota").length, 50);
    const usage = await get(adminOf(gateway), "/quotas/usage?consumer=acme");
    assert.match(usage.text, /"used":50,/);
  },

  "a rate limit is one for all workers": async ({ gateway }) => {
    using clients = new Clients(await agentsOfWorkers(gateway));
    const statuses = await clients.statuses(gateway.port, "/thirty", 60);
    assert.equal(statuses.flat().filter((status) => status === 200).length, 30);
    assert.equal(statuses.flat().filter((status) => status === 429).length, 90);
    assert.equal(await metric(gateway, 'rate_limited_total{route="thirty"}'), 90);
  },

  "a signed request is taken once, whichever workers it is shown to": async ({ gateway }) => {
    using clients = new Clients(await agentsOfWorkers(gateway));
    const statuses = await clients.statuses(gateway.port, "/fixed", 30, signed("/fixed"));
    assert.equal(statuses.flat().filter((status) => status === 200).length, 1);
    assert.equal(statuses.flat().filter((status) => status === 401).length, 59);
  },

  "an operator's draining and breaker reach every worker": async ({ gateway }) => {
    const set = async (state: string): Promise<void> => {
      const response = await fetch(`${gateway.adminUrl}/upstreams/u/breaker`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ state }),
      });
      assert.equal(((await response.json()) as { breaker: { state: string } }).breaker.state, state);
    };
    const statuses = async (): Promise<number[]> => [
      ...new Set((await atOnce(gateway.port, "/", 40)).map(({ status }) => status)),
    ];
    await set("open");
    assert.deepEqual(await statuses(), [503]);
    await set("closed");
    assert.deepEqual(await statuses(), [200]);
    const { text } = await get(adminOf(gateway), "/events");
    const { events } = JSON.parse(text) as { events: { kind: string }[] };
    const kinds = events.map(({ kind }) => kind).filter((kind) => kind.startsWith("breaker"));
    assert.deepEqual(kinds.toSorted(), ["breaker_closed", "breaker_opened"], "once for the instance");
  },

  "metrics of the workers add up on every worker": async ({ gateway }) => {
    await atOnce(gateway.port, "/counted", 60);
    const sample = 'requests_total{route="counted",listener="public",status_class="2xx"}';
    for (let time = 0; time < 6; time += 1) assert.equal(await metric(gateway, sample), 60);
    assert.equal(await metric(gateway, 'request_duration_seconds_count{route="counted"}'), 60);
    await replaceWorker(gateway);
    assert.equal(await metric(gateway, sample), 60, "what was scraped never goes back");
  },

  "a quota stays exact when a worker is killed under load: admitted and charged never exceed it": async ({
    origin,
    gateway,
  }) => {
    let answered = 0;
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const status = await get(gateway.port, "/bereft", { headers: keyOf("bereft") }).then(
          (got) => got.status,
          () => 0,
        );
        answered += 1;
        if (answered === 10) killWorker(gateway);
        return status;
      }),
    );
    await waitUntil(() => gateway.runningPids().length === 1, { what: "the end of the worker" });
    await gateway.whole();
    const more = (await atOnce(gateway.port, "/bereft", 100, keyOf("bereft"))).map(({ status }) => status);
    const admitted = [...outcomes, ...more].filter((status) => status === 200).length;
    const lost = outcomes.filter((status) => status === 0).length;
    const reached = origin.requests.filter(({ url }) => url === "/bereft").length;
    assert.ok(admitted <= 50, `${admitted} were admitted`);
    assert.ok(reached <= 50, `the origin saw ${reached}`);
    // A unit may be charged for a request that died with its worker, and for no other.
    assert.ok(admitted + lost >= 50, `${admitted} admitted and ${lost} lost of 50`);
    const usage = await get(adminOf(gateway), "/quotas/usage?consumer=bereft");
    assert.match(usage.text, /"used":50,/);
  },

  "a worker that takes another's place runs the same generation, although a secret's file has changed": async ({
    gateway,
    directory,
  }) => {
    const statuses = async (value: string): Promise<number[]> => [
      ...new Set((await atOnce(gateway.port, "/fixed", 30, { "X-API-Key": value })).map(({ status }) => status)),
    ];
    assert.deepEqual(await statuses("first-key"), [200]);
    await writeFile(directory.file("key"), "other-key");
    await replaceWorker(gateway);
    assert.deepEqual([await statuses("first-key"), await statuses("other-key")], [[200], [401]]);
    await published(gateway, () => void process.kill(gateway.child.pid, "SIGHUP"));
    await waitUntil(async () => (await statuses("first-key")).join() === "401", { what: "the other key everywhere" });
    assert.deepEqual(await statuses("other-key"), [200]);
  },

  "a rate limit goes on where it stood after a reload and after the end of a worker": async ({ gateway, document }) => {
    const statuses = async (count: number): Promise<number[]> => {
      const responses = await atOnce(gateway.port, "/ten", count);
      return responses.map(({ status }) => status).toSorted((a, b) => a - b);
    };
    assert.deepEqual(await statuses(5), [200, 200, 200, 200, 200]);
    await published(gateway, async () => await gateway.write(document("another")));
    await replaceWorker(gateway);
    assert.deepEqual(await statuses(7), [200, 200, 200, 200, 200, 429, 429]);
  },

  "a killed worker is logged and replaced, and requests go on meanwhile": async ({ gateway }) => {
    const victim = killWorker(gateway);
    await gateway.child.waitForOutput(new RegExp(`"code":"worker_ended"[^\\n]*"worker_pid":${victim},[^\\n]*SIGKILL`));
    for (let time = 0; time < 20; time += 1) assert.equal((await get(gateway.port, "/fixed")).status, 200);
    await gateway.whole();
    assert.equal((await get(gateway.port, "/fixed")).status, 200);
  },

  "a worker that is stopped in its tracks holds up neither scrapes nor requests, and follows when it goes on": async ({
    gateway,
    document,
  }) => {
    const sample = 'requests_total{route="stuck",listener="public",status_class="2xx"}';
    await atOnce(gateway.port, "/stuck", 20);
    assert.equal(await metric(gateway, sample), 20);
    const [stuck = 0] = gateway.runningPids();
    process.kill(stuck, "SIGSTOP");
    try {
      for (let time = 0; time < 5; time += 1) assert.equal((await get(gateway.port, "/stuck")).text, "one");
      assert.equal(await metric(gateway, sample), 25, "with the last that the worker said");
      await gateway.write(document("after a stop"));
      process.kill(gateway.child.pid, "SIGHUP");
    } finally {
      process.kill(stuck, "SIGCONT");
    }
    await waitUntil(async () => (await bodies(gateway.port, 40)).join() === "after a stop", { what: "it everywhere" });
  },

  "a reload reaches every worker before it is told, and a rejected one none": async ({ gateway, document }) => {
    const [before] = await bodies(gateway.port, 40);
    await published(gateway, async () => {
      await gateway.write(document("two"));
      process.kill(gateway.child.pid, "SIGHUP");
    });
    await waitUntil(async () => (await get(gateway.port, "/fixed")).text === "two", { what: "the second generation" });
    await waitUntil(async () => !(await bodies(gateway.port, 40)).includes(before ?? ""), { what: "it everywhere" });
    const generation = gateway.generation();
    await gateway.write("{broken");
    process.kill(gateway.child.pid, "SIGHUP");
    await gateway.child.waitForOutput(/"code":"config_rejected"/);
    assert.deepEqual(await bodies(gateway.port, 40), ["two"]);
    assert.equal(await metric(gateway, "config_generation"), generation);
    // A patch never overwrites a broken file: it holds a user's work.
    await gateway.write(document("two"));
    // The admin API answers when every worker runs what it was given.
    const { routes } = document("three");
    const response = await fetch(`${gateway.adminUrl}/config`, {
      method: "PATCH",
      headers: { "content-type": "application/merge-patch+json" },
      body: JSON.stringify({ routes }),
    });
    assert.equal(response.status, 200, await response.text());
    assert.deepEqual(await bodies(gateway.port, 40), ["three"]);
  },

  "a listener stays open in workers that are replaced after the document named the port that the system gave": async ({
    gateway,
    document,
  }) => {
    const listener = { name: "public", address: "127.0.0.1", port: gateway.port };
    await published(gateway, async () => await gateway.write(document("of a named port", [listener])));
    await waitUntil(async () => (await bodies(gateway.port, 1)).join() === "of a named port");
    for (let worker = 0; worker < 2; worker += 1) {
      await replaceWorker(gateway);
      for (let time = 0; time < 10; time += 1) assert.deepEqual(await bodies(gateway.port, 1), ["of a named port"]);
    }
  },

  "a worker that cannot even begin is tried again until it can, and one that is left answers meanwhile": async ({
    gateway,
    directory,
  }) => {
    await rename(directory.file("node"), directory.file("away"));
    killWorker(gateway);
    await gateway.child.waitForOutput(/"code":"worker_ended"[^\n]*before it began: [^\n]*ENOENT/);
    assert.equal((await get(gateway.port, "/fixed")).status, 200);
    await rename(directory.file("away"), directory.file("node"));
    await gateway.whole();
  },

  "workers end with the control process, however that ends": async ({ gateway }) => {
    process.kill(gateway.child.pid, "SIGKILL");
    const isGone = (pid: number): boolean => {
      try {
        return process.kill(pid, 0) && false;
      } catch {
        return true;
      }
    };
    await waitUntil(() => gateway.workerPids().every(isGone), { what: "the end of the workers" });
  },
};

test("two workers of one gateway", async (context) => {
  await using origin = await startOrigin({});
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("key"), "first-key");
  // A program of its own, which can be away for a while.
  const node = directory.file("node");
  await copyFile(process.execPath, node, constants.COPYFILE_FICLONE);
  const document: Shared["document"] = (body, listeners) => ({
    ...documentOver(origin.port, directory.file("key"), body),
    ...(listeners === undefined ? {} : { listeners }),
  });
  await using gateway = await startWorkers(document("one"), { state: true, node });
  for (const [rule, show] of Object.entries(RULES)) {
    await context.test(rule, async () => {
      await gateway.whole();
      await show({ origin, directory, gateway, document });
    });
  }
});

/** Clients with connections to one worker each, closed at the end. */
class Clients {
  readonly #agents: readonly Agent[];

  constructor(agents: readonly Agent[]) {
    this.#agents = agents;
  }

  /** Sends `count` requests to each worker, all at once; gives the statuses by worker. */
  async statuses(port: number, path: string, count: number, headers: Record<string, string> = {}): Promise<number[][]> {
    const each = this.#agents.map(async (agent) => {
      const sent = Array.from({ length: count }, async () => (await get(port, path, { agent, headers })).status);
      return await Promise.all(sent);
    });
    return await Promise.all(each);
  }

  [Symbol.dispose](): void {
    for (const agent of this.#agents) agent.destroy();
  }
}
