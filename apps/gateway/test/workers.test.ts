import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { constants, copyFile, rename, writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import { test } from "node:test";
import { runProcess, startOrigin, temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { fileURLToPath } from "node:url";
import { serving } from "./gateway-rig.ts";
import { agentsOfWorkers, get, startWorkers, type WorkerGateway } from "./workers-rig.ts";

const MAIN = fileURLToPath(new URL("../bin/sluice.js", import.meta.url));
const KEY = { "X-API-Key": "key-of-acme" };

const fixed = (body: string): DocumentInput => ({
  routes: [
    {
      name: "fixed",
      match: { path: { type: "exact", value: "/fixed" } },
      action: { type: "respond", status: 200, body },
    },
  ],
});

const proxied = (port: number, more: DocumentInput = {}): DocumentInput => ({
  ...serving("u", [port]),
  routes: [{ name: "all", service: "u", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } }],
  ...more,
});

const budgeted = (port: number): DocumentInput =>
  proxied(port, {
    consumers: [
      { name: "acme", credentials: [{ type: "api_key", key: "key-of-acme" }], quotas: { daily_requests: 50n } },
    ] as unknown as NonNullable<DocumentInput["consumers"]>,
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

/** Sends requests at once, each on a connection of its own; gives how often each body came. */
async function bodies(port: number, count: number): Promise<Map<string, number>> {
  const seen = new Map<string, number>();
  const answers = await Promise.all(Array.from({ length: count }, async () => await get(port, "/fixed")));
  for (const { text } of answers) seen.set(text, (seen.get(text) ?? 0) + 1);
  return seen;
}

test("a quota of 50 under parallel load of both workers admits exactly 50", async () => {
  await using origin = await startOrigin({});
  await using gateway = await startWorkers(budgeted(origin.port), { state: true });
  using clients = new Clients(await agentsOfWorkers(gateway));
  const first = await clients.statuses(gateway.port, "/", 1, KEY);
  assert.deepEqual(first, [[200], [200]], "both admit some");
  const statuses = [first, await clients.statuses(gateway.port, "/", 99, KEY)].flat(2);
  assert.equal(statuses.filter((status) => status === 200).length, 50);
  assert.equal(statuses.filter((status) => status === 429).length, 150);
  assert.equal(origin.requests.length, 50);
  const usage = await get(Number(new URL(gateway.adminUrl).port), "/quotas/usage?consumer=acme");
  assert.match(usage.text, /"used":50,/);
});

test("a quota stays exact when a worker is killed under load: admitted and charged never exceed it", async () => {
  await using origin = await startOrigin({});
  await using gateway = await startWorkers(budgeted(origin.port), { state: true });
  const [victim = 0] = gateway.workerPids();
  let answered = 0;
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const status = await get(gateway.port, "/", { headers: KEY }).then(
        (got) => got.status,
        () => 0,
      );
      answered += 1;
      if (answered === 10) process.kill(victim, "SIGKILL");
      return status;
    }),
  );
  await waitUntil(() => gateway.workerPids().length === 3, { what: "another worker", timeoutMs: 30_000 });
  const more = await Promise.all(
    Array.from({ length: 100 }, async () => (await get(gateway.port, "/", { headers: KEY })).status),
  );
  const admitted = [...outcomes, ...more].filter((status) => status === 200).length;
  const lost = outcomes.filter((status) => status === 0).length;
  assert.ok(admitted <= 50, `${admitted} were admitted`);
  assert.ok(origin.requests.length <= 50, `the origin saw ${origin.requests.length}`);
  // A unit may be charged for a request that died with its worker, and for no other.
  assert.ok(admitted + lost >= 50, `${admitted} admitted and ${lost} lost of 50`);
  const usage = await get(Number(new URL(gateway.adminUrl).port), "/quotas/usage?consumer=acme");
  assert.match(usage.text, /"used":50,/);
});

test("a rate limit is one for all workers", async () => {
  await using gateway = await startWorkers({
    ...fixed("one"),
    gateway: { global_policies: ["p"] },
    policies: [{ name: "p", rate_limits: [{ selector: ["ip"], requests_per: { hour: 30 } }] }],
  });
  using clients = new Clients(await agentsOfWorkers(gateway));
  const statuses = await clients.statuses(gateway.port, "/fixed", 60);
  assert.equal(statuses.flat().filter((status) => status === 200).length, 30);
  assert.equal(statuses.flat().filter((status) => status === 429).length, 90);
  assert.equal(await metric(gateway, 'rate_limited_total{route="fixed"}'), 90);
});

test("a rate limit goes on where it stood after a reload and after the end of a worker", async () => {
  const document = (body: string): DocumentInput => ({
    ...fixed(body),
    gateway: { global_policies: ["p"] },
    policies: [{ name: "p", rate_limits: [{ selector: ["route"], requests_per: { hour: 10 } }] }],
  });
  await using gateway = await startWorkers(document("one"));
  const statuses = async (count: number): Promise<number[]> => {
    const answers = await Promise.all(Array.from({ length: count }, async () => await get(gateway.port, "/fixed")));
    return answers.map(({ status }) => status).toSorted((a, b) => a - b);
  };
  assert.deepEqual(await statuses(5), [200, 200, 200, 200, 200]);
  await gateway.write(document("two"));
  await gateway.child.waitForOutput(/"generation":2[^\n]*"source":"reload"/);
  process.kill(gateway.workerPids()[0] ?? 0, "SIGKILL");
  await waitUntil(() => gateway.workerPids().length === 3, { what: "another worker", timeoutMs: 30_000 });
  assert.deepEqual(await statuses(7), [200, 200, 200, 200, 200, 429, 429]);
});

test("a signed request is taken once, whichever workers it is shown to", async () => {
  await using gateway = await startWorkers({
    ...fixed("one"),
    consumers: [{ name: "acme", credentials: [{ type: "hmac", key_id: "key-1", secret: "signing-secret-1" }] }],
  });
  using clients = new Clients(await agentsOfWorkers(gateway));
  const statuses = await clients.statuses(gateway.port, "/fixed", 30, signed("/fixed"));
  assert.equal(statuses.flat().filter((status) => status === 200).length, 1);
  assert.equal(statuses.flat().filter((status) => status === 401).length, 59);
});

test("a reload reaches every worker before it is told, and a rejected one none", async () => {
  await using gateway = await startWorkers(fixed("one"));
  assert.deepEqual([...(await bodies(gateway.port, 40)).keys()], ["one"]);
  await gateway.write(fixed("two"));
  process.kill(gateway.child.pid, "SIGHUP");
  await gateway.child.waitForOutput(/"generation":2[^\n]*"source":"reload"/);
  await waitUntil(async () => (await get(gateway.port, "/fixed")).text === "two", { what: "the second generation" });
  await waitUntil(async () => !(await bodies(gateway.port, 40)).has("one"), { what: "the second everywhere" });
  await gateway.write("{broken");
  process.kill(gateway.child.pid, "SIGHUP");
  await gateway.child.waitForOutput(/"code":"config_rejected"/);
  assert.deepEqual([...(await bodies(gateway.port, 40)).keys()], ["two"]);
  assert.equal(await metric(gateway, "config_generation"), 2);
  // What is broken in the file is somebody's work: no patch writes over it.
  await gateway.write(fixed("two"));
  // The admin API answers when every worker runs what it was given.
  const adminPort = Number(new URL(gateway.adminUrl).port);
  const answer = await fetch(`http://127.0.0.1:${adminPort}/config`, {
    method: "PATCH",
    headers: { "content-type": "application/merge-patch+json" },
    body: JSON.stringify({ routes: fixed("three").routes }),
  });
  assert.equal(answer.status, 200, await answer.text());
  assert.deepEqual([...(await bodies(gateway.port, 40)).keys()], ["three"]);
});

test("metrics of the workers add up, whoever is asked", async () => {
  await using gateway = await startWorkers(fixed("one"));
  await bodies(gateway.port, 60);
  const sample = 'requests_total{route="fixed",listener="public",status_class="2xx"}';
  for (let time = 0; time < 6; time += 1) assert.equal(await metric(gateway, sample), 60);
  assert.equal(await metric(gateway, 'request_duration_seconds_count{route="fixed"}'), 60);
  const [victim = 0] = gateway.workerPids();
  process.kill(victim, "SIGKILL");
  await waitUntil(() => gateway.workerPids().length === 3, { what: "another worker", timeoutMs: 30_000 });
  assert.equal(await metric(gateway, sample), 60, "what was scraped never goes back");
});

test("a killed worker is logged and replaced, and requests go on meanwhile", async () => {
  await using gateway = await startWorkers(fixed("one"));
  const [victim = 0] = gateway.workerPids();
  process.kill(victim, "SIGKILL");
  await gateway.child.waitForOutput(/"code":"worker_ended"[^\n]*SIGKILL/);
  for (let time = 0; time < 20; time += 1) assert.equal((await get(gateway.port, "/fixed")).status, 200);
  await waitUntil(() => gateway.workerPids().length === 3, { what: "another worker", timeoutMs: 30_000 });
  assert.equal((await get(gateway.port, "/fixed")).status, 200);
});

test("a worker that cannot even begin is tried again until it can, and one that is left answers meanwhile", async () => {
  await using directory = await temporaryDirectory();
  const node = directory.file("node");
  await copyFile(process.execPath, node, constants.COPYFILE_FICLONE);
  await using gateway = await startWorkers(fixed("one"), { node });
  await rename(node, directory.file("away"));
  process.kill(gateway.workerPids()[0] ?? 0, "SIGKILL");
  await gateway.child.waitForOutput(/"code":"worker_ended"[^\n]*before it began: [^\n]*ENOENT/);
  assert.equal((await get(gateway.port, "/fixed")).status, 200);
  await rename(directory.file("away"), node);
  await waitUntil(() => gateway.workerPids().length === 3, { what: "another worker", timeoutMs: 30_000 });
});

test("a listener stays open in workers that are replaced after the document named the port that the system gave", async () => {
  await using gateway = await startWorkers(fixed("one"));
  const [first = 0, second = 0] = gateway.workerPids();
  const listener = { name: "public", address: "127.0.0.1", port: gateway.port };
  await gateway.write({ ...fixed("two"), listeners: [listener] });
  const body = async (): Promise<string> => (await get(gateway.port, "/fixed")).text;
  await waitUntil(async () => (await body()) === "two");
  for (const [at, victim] of [first, second].entries()) {
    process.kill(victim, "SIGKILL");
    await waitUntil(() => gateway.workerPids().length === 3 + at, { what: "another worker", timeoutMs: 30_000 });
    for (let time = 0; time < 10; time += 1) assert.equal(await body(), "two");
  }
});

test("a worker that takes another's place runs the same generation, although a secret's file has changed", async () => {
  await using directory = await temporaryDirectory();
  const key = directory.file("key");
  await writeFile(key, "first-key");
  await using gateway = await startWorkers({
    ...fixed("one"),
    consumers: [{ name: "acme", credentials: [{ type: "api_key", key: `\${file:${key}}` }] }],
  });
  const statuses = async (value: string): Promise<number[]> => {
    const headers = { "X-API-Key": value };
    const answers = await Promise.all(
      Array.from({ length: 30 }, async () => await get(gateway.port, "/fixed", { headers })),
    );
    return [...new Set(answers.map(({ status }) => status))];
  };
  assert.deepEqual(await statuses("first-key"), [200]);
  await writeFile(key, "other-key");
  process.kill(gateway.workerPids()[0] ?? 0, "SIGKILL");
  await waitUntil(() => gateway.workerPids().length === 3, { what: "another worker", timeoutMs: 30_000 });
  assert.deepEqual([await statuses("first-key"), await statuses("other-key")], [[200], [401]]);
  process.kill(gateway.child.pid, "SIGHUP");
  await gateway.child.waitForOutput(/"generation":2[^\n]*"source":"reload"/);
  await waitUntil(async () => (await statuses("first-key")).join() === "401", { what: "the other key everywhere" });
  assert.deepEqual(await statuses("other-key"), [200]);
});

test("a worker that is stopped in its tracks holds up neither scrapes nor requests, and follows when it goes on", async () => {
  await using gateway = await startWorkers(fixed("one"));
  const sample = 'requests_total{route="fixed",listener="public",status_class="2xx"}';
  await bodies(gateway.port, 20);
  assert.equal(await metric(gateway, sample), 20);
  const [stuck = 0] = gateway.workerPids();
  process.kill(stuck, "SIGSTOP");
  try {
    for (let time = 0; time < 5; time += 1) assert.equal((await get(gateway.port, "/fixed")).text, "one");
    assert.equal(await metric(gateway, sample), 25, "with the last that the worker said");
    await gateway.write(fixed("two"));
    process.kill(gateway.child.pid, "SIGHUP");
  } finally {
    process.kill(stuck, "SIGCONT");
  }
  await waitUntil(async () => (await get(gateway.port, "/fixed")).text === "two", { what: "the second generation" });
  await waitUntil(async () => !(await bodies(gateway.port, 40)).has("one"), { what: "the second everywhere" });
});

test("workers end with the control process, however that ends", async () => {
  await using gateway = await startWorkers(fixed("one"));
  process.kill(gateway.child.pid, "SIGKILL");
  const isGone = (pid: number): boolean => {
    try {
      return process.kill(pid, 0) && false;
    } catch {
      return true;
    }
  };
  await waitUntil(() => gateway.workerPids().every(isGone), { what: "the end of the workers" });
});

test("SIGTERM under load answers every request that any worker took, and ends all processes", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => void setTimeout(() => response.end("slow"), 300),
  });
  await using gateway = await startWorkers(proxied(origin.port));
  const inFlight = Array.from({ length: 40 }, async (_, at) => await get(gateway.port, `/${at}`));
  await waitUntil(() => origin.requests.length === 40, { what: "all requests in flight" });
  process.kill(gateway.child.pid, "SIGTERM");
  const answers = await Promise.all(inFlight);
  assert.deepEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)), new Set(["200 slow"]));
  assert.equal((await gateway.child.exited).code, 0);
  for (const pid of gateway.workerPids()) assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
});

test("signals that a terminal sends to all processes end the workers only when their requests have ended", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => void setTimeout(() => response.end("slow"), 300),
  });
  await using gateway = await startWorkers(proxied(origin.port));
  using agent = new Closing();
  const last = get(gateway.port, "/", { agent });
  await waitUntil(() => origin.requests.length === 1, { what: "the request in flight" });
  process.kill(-gateway.child.pid, "SIGINT");
  assert.equal((await last).text, "slow");
  assert.equal((await gateway.child.exited).code, 0);
});

test("an operator's draining and breaker reach every worker", async () => {
  await using origin = await startOrigin({});
  const document = proxied(origin.port, serving("u", [origin.port], { breaker: {} }));
  await using gateway = await startWorkers(document);
  const admin = `${gateway.adminUrl}/upstreams/u`;
  const set = async (state: string): Promise<void> => {
    const answer = await fetch(`${admin}/breaker`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ state }),
    });
    assert.equal(((await answer.json()) as { breaker: { state: string } }).breaker.state, state);
  };
  const statuses = async (): Promise<number[]> => {
    const answers = await Promise.all(Array.from({ length: 40 }, async () => await get(gateway.port, "/")));
    return [...new Set(answers.map(({ status }) => status))];
  };
  await set("open");
  assert.deepEqual(await statuses(), [503]);
  await set("closed");
  assert.deepEqual(await statuses(), [200]);
  const { text } = await get(Number(new URL(gateway.adminUrl).port), "/events");
  const { events } = JSON.parse(text) as { events: { kind: string }[] };
  const kinds = events.map(({ kind }) => kind).filter((kind) => kind.startsWith("breaker"));
  assert.deepEqual(kinds.toSorted(), ["breaker_closed", "breaker_opened"], "once for the instance");
});

for (const workers of ["0", "-1", "x", "1.5", "257"]) {
  for (const [how, args, env] of [
    ["--workers", [`--workers=${workers}`], {}],
    ["GATEWAY_WORKERS", [], { GATEWAY_WORKERS: workers }],
  ] as const) {
    test(`${how} ${workers} is refused`, async () => {
      const asked = await runProcess(process.execPath, [MAIN, "serve", ...args], { env, timeoutMs: 30_000 });
      assert.equal(asked.code, 2, asked.stderr);
      assert.match(asked.stderr, /must be a number of processes, 1 to 256/);
    });
  }
}

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

/** An agent that keeps connections, closed at the end. */
class Closing extends Agent {
  constructor() {
    super({ keepAlive: true });
  }

  [Symbol.dispose](): void {
    this.destroy();
  }
}
