import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { startWeir } from "./cli-rig.ts";

/** A Weir that opens itself as the proxy of a run, and never answers one of its paths. */
async function serviceSilentAt(path: string): Promise<
  Disposable & {
    readonly api: string;
    /** Resolves when the path is asked for. */
    readonly asked: Promise<void>;
    readonly requests: string[];
    readonly close: () => void;
  }
> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const requests: string[] = [];
  const respond = (url: string, response: ServerResponse): void => {
    const responses: Readonly<Record<string, unknown>> = {
      "/api/health/detailed": { proxy_address: api },
      "/api/runs": { id: "run", session_id: "session", session_name: "run", proxy_url: api },
    };
    response.end(JSON.stringify(responses[url] ?? {}));
  };
  const server = createServer((request, response) => {
    const url = (request.url ?? "").replace(/\?.*/, "");
    requests.push(`${request.method ?? ""} ${url}`);
    if (url === path) resolve();
    else respond(url, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  const api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { api, asked: promise, requests, close, [Symbol.dispose]: close };
}

for (const [signal, code] of [
  ["SIGTERM", 143],
  ["SIGINT", 130],
  ["SIGHUP", 129],
] as const) {
  test(`${signal} while a proxy for the run starts ends with ${code}, without the program, and leaves nothing`, async () => {
    await using directory = await temporaryDirectory();
    await using child = await startWeir(["run", "--isolated", "--", "echo", "ran"], {
      env: { TMPDIR: directory.path },
    });
    // The directory is the first thing that is made; the proxy that uses it starts after that.
    await waitUntil(() => readdirSync(directory.path).length > 0, { what: "the run's data directory" });
    process.kill(child.pid, signal);
    assert.deepEqual(await child.exited, { code, signal: null, stdout: "", stderr: "" });
    assert.deepEqual(readdirSync(directory.path), []);
  });
}

test("SIGTERM while a running Weir is asked for its health ends at once", async () => {
  using service = await serviceSilentAt("/api/health/detailed");
  await using child = await startWeir(["run", "--api-url", service.api, "--", "echo", "ran"]);
  await service.asked;
  process.kill(child.pid, "SIGTERM");
  assert.deepEqual(await child.exited, { code: 143, signal: null, stdout: "", stderr: "" });
});

test("SIGTERM while the report is written leaves no file, and the run has ended", async () => {
  await using directory = await temporaryDirectory();
  using service = await serviceSilentAt("/api/export/har");
  const har = directory.file("run.har");
  await using child = await startWeir(["run", "--api-url", service.api, "--har", har, "--", "echo", "ran"], {
    env: { TMPDIR: directory.path },
  });
  await service.asked;
  process.kill(child.pid, "SIGTERM");
  assert.deepEqual(await child.exited, { code: 143, signal: null, stdout: "ran\n", stderr: "" });
  assert.deepEqual(readdirSync(directory.path), []);
  assert.ok(service.requests.includes("POST /api/runs/run/end"), service.requests.join(", "));
});

test("a service that goes away while the program runs does not cost the program's exit code", async () => {
  using service = await serviceSilentAt("/nowhere");
  const script = 'trap "exit 7" USR2; echo ready; while :; do sleep 0.05; done';
  await using child = await startWeir(["run", "--api-url", service.api, "--session", "x", "--", "sh", "-c", script]);
  await child.waitForOutput(/ready/, 30_000);
  service.close();
  process.kill(child.pid, "SIGUSR2");
  const exit = await child.exited;
  assert.equal(exit.code, 7);
  assert.match(exit.stderr, /^weir: No Weir is running at .*\n$/);
});
