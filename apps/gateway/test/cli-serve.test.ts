import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { runProcess, spawnProcess, startOrigin, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { AdminClient } from "#cli/admin-client.ts";
import { issueLine, logLevel } from "#cli/serve.ts";

const MAIN = fileURLToPath(new URL("../bin/sluice.js", import.meta.url));
const FULL_DEVICE = "/dev/full";

const document = (upstreamPort: number, body: string): string => `
listeners: [{name: public, address: 127.0.0.1, port: 0}]
upstreams: [{name: u, endpoints: [{address: 127.0.0.1, port: ${upstreamPort}}]}]
services: [{name: s, upstream: u}]
routes:
  - {name: proxied, service: s, match: {path: {type: prefix, value: /api}}, action: {type: proxy}}
  - {name: fixed, match: {path: {type: exact, value: /fixed}}, action: {type: respond, status: 200, body: ${body}}}
`;

test("sluice serve runs a document, reads it again on SIGHUP, and drains on SIGTERM", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => void setTimeout(() => response.end("slow"), 200),
  });
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, document(origin.port, "one"));
  await using child = await spawnProcess(process.execPath, [MAIN, "serve", "--config", file, "--json"]);
  const [line] = await child.waitForOutput(/^\{.*"listeners".*\}$/m, 30_000);
  const { listeners } = JSON.parse(line) as { listeners: { port: number }[] };
  const base = `http://127.0.0.1:${listeners[0]?.port}`;
  const body = async (path: string): Promise<string> => await (await fetch(base + path)).text();
  assert.equal(await body("/fixed"), "one");
  await writeFile(file, document(origin.port, "two"));
  process.kill(child.pid, "SIGHUP");
  await waitUntil(async () => (await body("/fixed")) === "two", { what: "the second generation" });
  await writeFile(file, document(origin.port, "three"));
  await waitUntil(async () => (await body("/fixed")) === "three", { what: "the generation of the changed file" });
  await writeFile(file, "routes: 7");
  process.kill(child.pid, "SIGHUP");
  await child.waitForOutput(/"code":"config_rejected"/);
  assert.equal(await body("/fixed"), "three");
  const last = body("/api/x");
  await waitUntil(() => origin.requests.length === 1, { what: "the request in flight" });
  process.kill(child.pid, "SIGTERM");
  assert.equal(await last, "slow");
  assert.equal((await child.exited).code, 0);
});

test("an unread log keeps neither the gateway nor its workers from ending", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, "listeners: [{name: public, address: 127.0.0.1, port: 0}]\nroutes: []\n");
  const ends = ["1", "2"].map(async (workers) => {
    const child = spawn(process.execPath, [MAIN, "serve", "--config", file, "--json", "--workers", workers], {
      env: { ...process.env, GATEWAY_STATE_DB: directory.file(`state-${workers}.db`) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    try {
      const [line] = (await once(child.stderr, "data")) as [Buffer];
      const { listeners } = JSON.parse(line.toString()) as { listeners: { port: number }[] };
      const url = `http://127.0.0.1:${listeners[0]?.port}/${"p".repeat(4000)}`;
      // More than a pipe and what the other side reads ahead hold.
      for (let at = 0; at < 200; at += 1) assert.equal((await fetch(url)).status, 404);
      child.kill("SIGTERM");
      const [code] = (await once(child, "exit", { signal: AbortSignal.timeout(20_000) })) as [number | null];
      assert.equal(code, 0, `${workers} workers`);
    } finally {
      child.kill("SIGKILL");
      child.stdout.destroy();
    }
  });
  await Promise.all(ends);
});

test(
  "a log on a full disk keeps neither requests from their answers nor the gateway from ending",
  { skip: !existsSync(FULL_DEVICE) },
  async () => {
    await using directory = await temporaryDirectory();
    const file = directory.file("gateway.yaml");
    await writeFile(file, "listeners: [{name: public, address: 127.0.0.1, port: 0}]\nroutes: []\n");
    const full = openSync(FULL_DEVICE, "w");
    const ends = ["1", "2"].map(async (workers) => {
      const child = spawn(process.execPath, [MAIN, "serve", "--config", file, "--json", "--workers", workers], {
        env: { ...process.env, GATEWAY_STATE_DB: directory.file(`state-${workers}.db`) },
        stdio: ["ignore", full, "pipe"],
      });
      try {
        let said = "";
        const isSaid = Promise.withResolvers<void>();
        child.stderr?.on("data", (bytes: Buffer) => {
          said += bytes.toString();
          if (said.includes('"listeners"') && said.includes("disk is full")) isSaid.resolve();
        });
        await isSaid.promise;
        const listeners = /^\{.*"listeners".*\}$/m.exec(said)?.[0] ?? "";
        const { port } = (JSON.parse(listeners) as { listeners: [{ port: number }] }).listeners[0];
        for (let at = 0; at < 20; at += 1) assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404);
        child.kill("SIGTERM");
        const [code] = (await once(child, "exit", { signal: AbortSignal.timeout(20_000) })) as [number | null];
        assert.equal(code, 0, `${workers} workers`);
        assert.match(said, /sluice: The log cannot be written: the disk is full/);
      } finally {
        child.kill("SIGKILL");
      }
    });
    await Promise.all(ends);
    closeSync(full);
  },
);

test("a document with errors ends serve with 1, every issue with its place on standard error", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, "listeners: []\nroutes:\n  - {name: a, match: {path: {type: prefix, value: x}}}\nunknown: 1\n");
  const exit = await runProcess(process.execPath, [MAIN, "serve", "-c", file], { timeoutMs: 30_000 });
  assert.equal(exit.code, 1);
  assert.match(exit.stderr, /gateway\.yaml:4:1: error: .*unknown.* \[unknown_field\]/);
  assert.match(exit.stderr, /gateway\.yaml:3:\d+: error: .*action/);
  assert.match(exit.stderr, /sluice: The configuration has errors\n$/);
});

for (const workers of ["1", "2"]) {
  test(`a listener that cannot be opened ends serve with 1, and with it all that was opened before: --workers ${workers}`, async () => {
    await using other = await startOrigin({});
    await using directory = await temporaryDirectory();
    const file = directory.file("gateway.yaml");
    const place = `address: 127.0.0.1, port: ${other.port}`;
    const text = `
listeners: [{name: taken, ${place}}]
admin: {bind: "127.0.0.1:0"}
upstreams: [{name: u, endpoints: [{${place}}], health: {}, active_health: {path: /}}]
webhooks: [{url: "http://127.0.0.1:${other.port}/", events: [config_published]}]
routes: []
`;
    await writeFile(file, text);
    const env = { GATEWAY_ADMIN_DEV: "1", GATEWAY_STATE_DB: directory.file("state.db") };
    const args = [MAIN, "serve", "--config", file, "--workers", workers];
    const exit = await runProcess(process.execPath, args, { env, timeoutMs: 10_000 });
    assert.equal(exit.code, 1);
    assert.match(
      exit.stderr,
      /^(?:.*: warning: .*\n)*.*gateway\.yaml:2:\d+: error: The listener "taken" cannot listen on 127\.0\.0\.1 port \d+: the port is in use there \(EADDRINUSE\); another gateway .* \(\/listeners\/0\) \[compile_failed\]\nsluice: The configuration cannot run here\n$/,
    );
    const codes = [...exit.stdout.matchAll(/"code":"(config_\w+)"/g)].map(([, code]) => code);
    assert.deepEqual(codes, ["config_rejected"]);
  });
}

test("a file that is not there is named", async () => {
  const exit = await runProcess(process.execPath, [MAIN, "serve", "-c", "/no/such.yaml"], { timeoutMs: 30_000 });
  assert.deepEqual([exit.code, exit.stderr], [1, "sluice: There is no file /no/such.yaml; name one with --config\n"]);
});

for (const args of [["serve"], ["explain", "--path", "/"]]) {
  test(`an empty GATEWAY_CONFIG names a document as little as none does: sluice ${args[0]}`, async () => {
    await using directory = await temporaryDirectory();
    const env = { GATEWAY_CONFIG: "" };
    const exit = await runProcess(process.execPath, [MAIN, ...args], { env, cwd: directory.path });
    assert.equal(exit.code, 1);
    assert.match(exit.stderr, / file \.\/gateway\.yaml/);
  });
}

for (const [words, option] of [
  [["serve", "--config", ""], "-c, --config <file>"],
  [["validate", ""], "file"],
  [["fmt", ""], "file"],
  [["diff", MAIN, ""], "new"],
  [["config", "apply", ""], "file"],
  [["status", "--cert", ""], "--cert <file>"],
] as const) {
  test(`an empty path is an error that names the argument or option: sluice ${words.slice(0, -1).join(" ")} ""`, async () => {
    const { code, stderr } = await runProcess(process.execPath, [MAIN, ...words], { timeoutMs: 30_000 });
    assert.ok(stderr.includes(`'${option}'`) && stderr.includes("'' is invalid"), stderr);
    assert.ok(stderr.includes("It must name a file."), stderr);
    assert.equal(code, 2);
  });
}

test("empty GATEWAY_ADMIN and GATEWAY_ADMIN_CERT name an admin API as little as none do", () => {
  const client = new AdminClient({}, { GATEWAY_ADMIN: "", GATEWAY_ADMIN_CERT: "" });
  assert.equal(client.shown, "http://127.0.0.1:2019");
});

test("numbers of the environment that are out of range end serve with 1, all of them with name, value and range", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, "routes: []\n");
  const args = [MAIN, "serve", "--config", file];
  const env = {
    GATEWAY_SHUTDOWN_DELAY_MS: "soon",
    GATEWAY_SHUTDOWN_TIMEOUT_SECS: "10s",
    GATEWAY_HTTP1_MAX_HEADERS: "0",
    GATEWAY_HTTP1_MAX_HEADER_BYTES: "64k",
    GATEWAY_HTTP1_HEADER_TIMEOUT_MS: "-1",
    GATEWAY_REQUEST_BODY_TIMEOUT_MS: "1e3",
    GATEWAY_H2_MAX_CONCURRENT_STREAMS: "1000001",
    GATEWAY_H2_STREAM_WINDOW_KIB: "63",
    GATEWAY_H2_CONNECTION_WINDOW_KIB: "0x80",
    GATEWAY_H2_MAX_SEND_BUF_KIB: " 1 6 ",
    GATEWAY_ACCESS_LOG_SAMPLE: "1.5",
    GATEWAY_ADMIN_DEV: "true",
  };
  const exit = await runProcess(process.execPath, args, { env, timeoutMs: 30_000 });
  assert.equal(exit.code, 1);
  const lines = exit.stderr.trimEnd().split("\n");
  for (const [name, value] of Object.entries(env)) {
    const pattern = new RegExp(
      `^sluice: ${name} must be a (whole )?number from [0-9]+ to [0-9]+; it is ${JSON.stringify(value)}$`,
    );
    assert.ok(
      lines.some((line) => pattern.test(line)),
      `${name}: ${exit.stderr}`,
    );
  }
  assert.equal(lines.length, Object.keys(env).length);
  const loud = await runProcess(process.execPath, args, { env: { GATEWAY_LOG: "loud" }, timeoutMs: 30_000 });
  assert.deepEqual([loud.code, /^sluice: GATEWAY_LOG must be .*; it is "loud"\n$/.test(loud.stderr)], [1, true]);
});

test("an unknown command or option ends with 2", async () => {
  assert.equal((await runProcess(process.execPath, [MAIN, "sevre"], { timeoutMs: 30_000 })).code, 2);
  assert.equal((await runProcess(process.execPath, [MAIN, "serve", "--nope"], { timeoutMs: 30_000 })).code, 2);
  assert.equal((await runProcess(process.execPath, [MAIN, "--help"], { timeoutMs: 30_000 })).code, 0);
});

test("an issue is one line with file, line, column, sentence and code", () => {
  const issue = { code: "type", path: "/a", message: "It is wrong", severity: "error", line: 3, column: 7 } as const;
  assert.equal(issueLine("g.yaml", issue), "g.yaml:3:7: error: It is wrong (/a) [type]");
});

for (const [text, level] of [
  [undefined, "info"],
  ["debug", "debug"],
  ["warn,gateway=trace", "trace"],
  ["other=trace", "info"],
  ["nonsense", undefined],
  ["gateway=nonsense", undefined],
  ["", "info"],
  ["off", "silent"],
] as const) {
  test(`GATEWAY_LOG=${text ?? "(unset)"} logs from ${level ?? "nothing, an error,"} on`, () =>
    assert.equal(logLevel(text), level));
}

for (const workers of ["1", "2"]) {
  test(`SIGTERM has /readyz say 503 for shutdown_delay_ms while new connections are served, then drains: --workers ${workers}`, async () => {
    const released = Promise.withResolvers<void>();
    await using origin = await startOrigin({
      handler: (_request, response) => void released.promise.then(() => response.end("whole")),
    });
    await using directory = await temporaryDirectory();
    const file = directory.file("gateway.yaml");
    const admin = '\ngateway: {shutdown_delay_ms: 60000}\nadmin: {bind: "127.0.0.1:0"}\n';
    await writeFile(file, document(origin.port, "served") + admin);
    await using child = await spawnProcess(process.execPath, [MAIN, "serve", "-c", file, "--json", "-w", workers], {
      env: { GATEWAY_ADMIN_DEV: "1" },
    });
    const [line] = await child.waitForOutput(/^\{.*"listeners".*\}$/m, 30_000);
    const facts = JSON.parse(line) as { listeners: { port: number }[]; admin: string };
    const url = `http://127.0.0.1:${facts.listeners[0]?.port}`;
    const ask = async (path: string): Promise<Response> =>
      await fetch(url + path, { headers: { connection: "close" } });
    assert.equal((await ask("/readyz")).status, 200);
    process.kill(child.pid, "SIGTERM");
    await waitUntil(async () => (await ask("/readyz")).status === 503, { what: "503 at /readyz" });
    assert.deepEqual([(await ask("/healthz")).status, await (await ask("/fixed")).text()], [200, "served"]);
    const health = (await (await fetch(`${facts.admin}/health`)).json()) as { ready: boolean };
    assert.equal(health.ready, false);
    const last = fetch(`${url}/api/x`);
    await waitUntil(() => origin.requests.length === 1, { what: "the request under way" });
    // Another request to stop ends the delay, and not the requests.
    await waitUntil(
      async () => {
        process.kill(child.pid, "SIGTERM");
        return await ask("/fixed").then(
          () => false,
          () => true,
        );
      },
      { what: "the end of the delay" },
    );
    released.resolve();
    const response = await last;
    assert.deepEqual([response.headers.get("connection"), await response.text()], ["close", "whole"]);
    assert.equal((await child.exited).code, 0);
  });
}

test("the delay ends by itself, and Ctrl+C has none", async () => {
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(file, document(1, "one"));
  const tookMs = async (signal: NodeJS.Signals, delayMs: string): Promise<number> => {
    await using child = await spawnProcess(process.execPath, [MAIN, "serve", "-c", file, "--json"], {
      env: { GATEWAY_SHUTDOWN_DELAY_MS: delayMs },
    });
    await child.waitForOutput(/^\{.*"listeners".*\}$/m, 30_000);
    const startedMs = performance.now();
    process.kill(child.pid, signal);
    assert.equal((await child.exited).code, 0);
    return performance.now() - startedMs;
  };
  const [waited, interrupted] = await Promise.all([tookMs("SIGTERM", "700"), tookMs("SIGINT", "60000")]);
  assert.ok(waited >= 700, `${waited} ms`);
  assert.ok(interrupted < 30_000, `${interrupted} ms`);
});
