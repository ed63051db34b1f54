import assert from "node:assert/strict";
import { Agent } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runProcess, startOrigin, waitUntil } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving } from "./gateway-rig.ts";
import { get, startWorkers } from "./workers-rig.ts";

const MAIN = fileURLToPath(new URL("../bin/sluice.js", import.meta.url));

const proxied = (port: number): DocumentInput => ({
  ...serving("u", [port]),
  routes: [{ name: "all", service: "u", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } }],
});

test("SIGTERM under load answers every request that any worker took, and ends all processes", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => void setTimeout(() => response.end("slow"), 300),
  });
  await using gateway = await startWorkers(proxied(origin.port));
  const inFlight = Array.from({ length: 40 }, async (_, at) => await get(gateway.port, `/${at}`));
  await waitUntil(() => origin.requests.length === 40, { what: "all requests in flight" });
  process.kill(gateway.child.pid, "SIGTERM");
  const responses = await Promise.all(inFlight);
  assert.deepEqual(new Set(responses.map(({ status, text }) => `${status} ${text}`)), new Set(["200 slow"]));
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

/** An agent that keeps connections, closed at the end. */
class Closing extends Agent {
  constructor() {
    super({ keepAlive: true });
  }

  [Symbol.dispose](): void {
    this.destroy();
  }
}
