import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { runProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import { pino } from "pino";
import { createProxy } from "#proxy.ts";
import type { RunningProxy } from "#proxy.ts";
import { defaultDataPaths } from "#settings/data-paths.ts";
import type { DataPaths } from "#settings/data-paths.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const SILENT = pino({ level: "silent" });

async function started(
  dataDir: string,
  flags: Record<string, string> = {},
  log = SILENT,
  dataPaths = defaultDataPaths(dataDir),
): Promise<RunningProxy> {
  const proxy = await createProxy({
    dataDir,
    dataPaths,
    environment: {},
    flags: { "proxy-port": "0", "api-port": "0", ...flags },
    log,
  });
  return proxy;
}

async function dataDirectory(): Promise<string> {
  const directory = await temporaryDirectory();
  cleanups.push(() => directory.remove());
  return directory.path;
}

async function origin(): Promise<number> {
  const server = createServer((incoming, response) => response.end(`answer to ${incoming.url}`));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

async function get(proxy: RunningProxy, url: string): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(proxy.addresses.proxy);
  const outgoing = request({ host: hostname, port, path: url, headers: { host: new URL(url).host }, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of response) text += String(piece);
  return { status: response.statusCode ?? 0, text };
}

async function api(proxy: RunningProxy, path: string, init?: RequestInit): Promise<unknown> {
  const response = await fetch(`${proxy.addresses.api}/api${path}`, init);
  const text = await response.text();
  return text === "" ? undefined : JSON.parse(text);
}

const patch = (body: object): RequestInit => ({
  method: "PATCH",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

const count = async (proxy: RunningProxy): Promise<number> =>
  ((await api(proxy, "/traffic/count")) as { count: number }).count;

test("what passes through is stored, listed and there again after a restart", async () => {
  const dataDir = await dataDirectory();
  const port = await origin();
  const first = await started(dataDir);
  assert.equal((await get(first, `http://127.0.0.1:${port}/kept?x=1`)).text, "answer to /kept?x=1");
  await waitUntil(async () => (await count(first)) === 1);
  const fingerprint = first.fingerprint;
  await first.stop();

  const second = await started(dataDir);
  cleanups.push(() => second.stop(0));
  const entries = (await api(second, "/traffic?include_bodies=true")) as {
    request: { url: string };
    response: { body: string };
  }[];
  assert.deepEqual(
    entries.map((entry) => [entry.request.url, entry.response.body]),
    [[`http://127.0.0.1:${port}/kept?x=1`, "answer to /kept?x=1"]],
  );
  assert.equal(second.fingerprint, fingerprint);
});

test("in Passthrough mode and for ignored domains requests flow and nothing is stored", async () => {
  const port = await origin();
  const proxy = await started(await dataDirectory());
  cleanups.push(() => proxy.stop(0));
  await api(proxy, "/capture/toggle", { method: "POST" });
  assert.equal((await get(proxy, `http://127.0.0.1:${port}/a`)).status, 200);
  await api(proxy, "/capture/toggle", { method: "POST" });
  await api(proxy, "/config", patch({ ignored_domains: ["localhost"] }));
  assert.equal((await get(proxy, `http://localhost:${port}/b`)).status, 200);
  assert.equal((await get(proxy, `http://127.0.0.1:${port}/c`)).status, 200);
  await waitUntil(async () => (await count(proxy)) > 0);
  const rows = (await api(proxy, "/traffic/rows")) as { rows: { path: string }[] };
  assert.deepEqual(
    rows.rows.map((row) => row.path),
    ["/c"],
  );
});

test("a blocked host is answered by rule, and its entry says who answered", async () => {
  const port = await origin();
  const proxy = await started(await dataDirectory());
  cleanups.push(() => proxy.stop(0));
  await api(proxy, "/blocklist", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ pattern: "127.0.0.1", status_code: 451, response_body: "not here" }),
  });
  assert.deepEqual(await get(proxy, `http://127.0.0.1:${port}/`), { status: 451, text: "not here" });
  await waitUntil(async () => (await count(proxy)) === 1);
  const { rows } = (await api(proxy, "/traffic/rows")) as { rows: { source: string; status_code: number }[] };
  assert.deepEqual(
    rows.map((row) => [row.source, row.status_code]),
    [["slice", 451]],
  );
});

test("the API behind the proxy cannot be reached through the proxy, by any spelling of its address", async () => {
  const proxy = await started(await dataDirectory());
  cleanups.push(() => proxy.stop(0));
  const port = new URL(proxy.addresses.api).port;
  for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]) {
    const { status, text } = await get(proxy, `http://${host}:${port}/api/traffic`);
    assert.notEqual(status, 200, host);
    assert.doesNotMatch(text, /^\[/, host);
  }
});

test("the proxy answers its own set-up page by name and by address", async () => {
  const proxy = await started(await dataDirectory());
  cleanups.push(() => proxy.stop(0));
  assert.match((await get(proxy, "http://weir/")).text, /Weir/);
  const { hostname, port } = new URL(proxy.addresses.proxy);
  const socket = connect(Number(port), hostname);
  socket.end(`GET /cert.pem HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: close\r\n\r\n`);
  let text = "";
  for await (const piece of socket) text += String(piece);
  assert.match(text, /-----BEGIN CERTIFICATE-----/);
});

test("a port in use is the system's error, and nothing is left running", async () => {
  const dataDir = await dataDirectory();
  const proxy = await started(dataDir);
  cleanups.push(() => proxy.stop(0));
  const port = Number(new URL(proxy.addresses.proxy).port);
  await assert.rejects(started(await dataDirectory(), { "proxy-port": String(port) }), {
    code: "EADDRINUSE",
    flag: "--proxy-port",
  });
});

test("an API for everybody on the network needs an explicit word", async () => {
  await assert.rejects(started(await dataDirectory(), { "api-host": "0.0.0.0" }), /--insecure-api/);
});

test("a second Weir on the same data directory is refused with a sentence", async () => {
  const dataDir = await dataDirectory();
  const proxy = await started(dataDir);
  cleanups.push(() => proxy.stop(0));
  await assert.rejects(started(dataDir), { name: "StartupError", message: new RegExp(dataDir) });
});

test("a database that cannot be used is refused with a sentence that names its directory", async () => {
  const dataDir = await dataDirectory();
  writeFileSync(join(dataDir, "weir.db"), "no database of SQLite, and longer than its mark");
  const message = `Cannot use ${dataDir}: the database is damaged (file is not a database)`;
  await assert.rejects(started(dataDir), { name: "StartupError", message });
});

test("a start on a full disk is refused with a sentence that names the directory", async (context) => {
  const disk = await dataDirectory();
  const mounted =
    process.platform === "linux"
      ? await runProcess("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk])
      : undefined;
  if (mounted?.code !== 0) return context.skip("needs the right to mount a tmpfs");
  cleanups.push(async () => await runProcess("umount", ["-l", disk]));
  assert.throws(() => writeFileSync(join(disk, "filler"), Buffer.alloc(2_000_000)), { code: "ENOSPC" });
  const here = (dataPaths: Partial<DataPaths>) => async (dataDir: string) =>
    await started(dataDir, {}, SILENT, { ...defaultDataPaths(dataDir), ...dataPaths });
  const reason = "(?:the disk is full|files cannot be opened or written) \\(";
  for (const [start, refused] of [
    [here({ certificateDirectory: join(disk, "certs") }), join(disk, "certs")],
    [here({ trafficFile: join(disk, "traffic.db") }), disk],
  ] as const) {
    const message = new RegExp(`^Cannot use ${refused}: ${reason}`);
    await assert.rejects(start(await dataDirectory()), { name: "StartupError", message });
  }
});

test("verbose logs a line for each exchange, and stops when it is switched off", async () => {
  const port = await origin();
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const proxy = await started(await dataDirectory(), {}, log);
  cleanups.push(() => proxy.stop(0));
  for (const [path, verbose] of [
    ["/quiet", false],
    ["/told", true],
    ["/told-again", true],
    ["/silent", false],
  ] as const) {
    await api(proxy, "/config", patch({ verbose }));
    await get(proxy, `http://127.0.0.1:${port}${path}`);
  }
  const told = lines.map((line) => (JSON.parse(line) as { msg: string }).msg).filter((text) => text.startsWith("GET "));
  assert.deepEqual(told, [`GET http://127.0.0.1:${port}/told`, `GET http://127.0.0.1:${port}/told-again`]);
});
