import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import type { LogStatus } from "@headworks/capture-contract";
import {
  peer,
  proxyClient,
  runProcess,
  spawnProcess,
  startOrigin,
  temporaryDirectory,
  waitUntil,
} from "@headworks/testkit";
import { MAIN, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";

const curl = peer("curl");

/** Logs as text; its file grows from test to test, and it is killed at the end. */
let shared: Weir;
before(async () => (shared = await startWeir()));
after(async () => await shared.stop());

const logFile = (weir: Pick<Weir, "dataDir">): string => join(weir.dataDir, "logs", "weir.log");
const read = (weir: Pick<Weir, "dataDir">): string => readFileSync(logFile(weir), "utf8");

async function change(weir: Weir, body: object): Promise<LogStatus> {
  const response = await fetch(`${weir.apiUrl}/api/logs`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as LogStatus;
}

/** Waits until all expected lines are in the file. */
async function settled(weir: Weir): Promise<LogStatus> {
  return await waitUntil(async () => {
    const status = await weir.get<LogStatus>("/logs");
    return status.traffic_events.waiting + status.async.buffer_depth === 0 ? status : undefined;
  });
}

test("the log has curl's exchanges as text, decoded, in order, without credentials", async () => {
  const reply = JSON.stringify({ greeting: "grüße" });
  await using origin = await startOrigin({
    handler: (_request, response) => {
      response.writeHead(200, {
        "content-type": "application/json",
        "content-encoding": "br",
        "set-cookie": "sid=s3cret",
      });
      response.end(brotliCompressSync(reply));
    },
  });
  const weir = shared;
  await change(weir, { debug_logging: { enabled: true, level: "full" } });
  const headers = ["-H", "Authorization: Bearer s3cret", "-H", "X-API-Key: s3cret"];
  const sent = ["--json", '{"ask":1}', `${origin.url}/path?token=s3cret`];
  const args = ["-sS", "-x", weir.proxyUrl, "--compressed", ...headers, ...sent];
  const { code, stdout } = await runProcess(curl.path, args);
  assert.deepEqual([code, stdout], [0, reply]);
  await settled(weir);
  const text = await waitUntil(() => (read(weir).includes("grüße") ? read(weir) : undefined));
  assert.match(
    text,
    /INFO {2}> POST http:\/\/\S+\/path\?token=\[REDACTED\] HTTP\/1\.1 target=traffic [^]*\n {4}Authorization: \[REDACTED\]\n[^]*\n {4}\| \{"ask":1\}\n[^]*INFO {2}< 200 OK POST [^]*\n {4}set-cookie: \[REDACTED\]\n[^]*\n {4}\| \{"greeting":"grüße"\}\n/,
  );
  assert.doesNotMatch(text, /s3cret/);
  assert.equal(statSync(logFile(weir)).mode & 0o777, 0o600);
});

/** A response with non-ASCII bytes in its head, and a body that imitates log lines. */
async function startForger(): Promise<{ readonly port: number } & AsyncDisposable> {
  const head = `HTTP/1.1 200 O${HIDDEN}K\r\nX-Evil: a${HIDDEN}b\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n`;
  const body = `first\n2026-01-01T00:00:00.000Z ERROR forged\n\u001b]0;title\u0007${HIDDEN}\r\n{"level":50,"msg":"forged"}\n`;
  const server = createServer((socket) => {
    socket.on("error", () => undefined).once("data", () => socket.end(head + body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void server.close() };
}

const HIDDEN = "\u0085\u202e\u2028x";

/** Checks that origins and clients cannot forge lines or control a terminal. */
async function forgeNothing(weir: Weir, form: "text" | "JSON"): Promise<void> {
  await using origin = await startForger();
  const already = read(weir).length;
  await change(weir, { debug_logging: { enabled: true, level: "full" } });
  const url = `http://127.0.0.1:${origin.port}/%0a%1b`;
  const headers = ["-H", `X-Evil: a${HIDDEN}b`, "-A", `agent${HIDDEN}`];
  const { code } = await runProcess(curl.path, ["-s", "-x", weir.proxyUrl, ...headers, url]);
  assert.equal(code, 0);
  await settled(weir);
  const text = await waitUntil(() => {
    const since = read(weir).slice(already);
    return since.includes("forged") ? since : undefined;
  });
  const lines = text.split("\n").slice(0, -1);
  for (const line of lines) {
    assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    if (form === "JSON") assert.notEqual((JSON.parse(line) as { msg: string }).msg, "forged");
    else assert.match(line, /^(?:\d{4}-\d\d-\d\dT\S+Z (?:INFO |WARN |ERROR) |    )/);
    assert.equal(line.startsWith("2026-01-01"), false);
  }
  assert.match(text, form === "JSON" ? /agent[^"]*\\u0085/ : /^ {4}User-Agent: agent.*\\u0085/m);
  assert.match(text, form === "JSON" ? /"body":"first\\n2026/ : /^ {4}\| 2026-01-01T00:00:00\.000Z ERROR forged$/m);
}

test("origins and clients cannot forge lines or control a terminal in the text format", async () => {
  await forgeNothing(shared, "text");
});

test("moving, deleting or rotating the file under load loses no other line", async () => {
  await using origin = await startOrigin();
  const weir = shared;
  await change(weir, { max_files: 100, debug_logging: { enabled: true, level: "summary" } });
  const client = proxyClient(weir.proxyPort);
  const get = async (name: string): Promise<void> => {
    await Promise.all(Array.from({ length: 20 }, (_, at) => client.fetch(`${origin.url}/${name}/${at}`)));
  };
  await get("a");
  await settled(weir);
  renameSync(logFile(weir), `${logFile(weir)}.moved`);
  // Detected at most a quarter of a second later, with the next line.
  await waitUntil(async () => {
    await client.fetch(`${origin.url}/between`);
    await settled(weir);
    return readdirSync(join(weir.dataDir, "logs")).includes("weir.log");
  });
  const rotations = Array.from({ length: 5 }, () => fetch(`${weir.apiUrl}/api/logs/rotate`, { method: "POST" }));
  await get("b");
  for (const response of await Promise.all(rotations)) assert.equal(response.status, 200);
  await get("c");
  await settled(weir);
  const names = readdirSync(join(weir.dataDir, "logs"));
  const all = names.map((name) => readFileSync(join(weir.dataDir, "logs", name), "utf8")).join("");
  for (const name of ["a", "b", "c"]) {
    for (let at = 0; at < 20; at += 1) {
      assert.equal(all.split(`< 200 OK GET ${origin.url}/${name}/${at} `).length, 2, `${name}/${at}`);
    }
  }
  assert.equal(names.filter((name) => /^weir\.log\.\d{4}-/.test(name)).length, 5);
  rmSync(join(weir.dataDir, "logs"), { recursive: true });
  await waitUntil(async () => {
    await client.fetch(`${origin.url}/after`);
    await settled(weir);
    return (await weir.get<LogStatus>("/logs")).problem === null && statSync(logFile(weir), { throwIfNoEntry: false });
  });
});

test("logged lines survive kill -9", async () => {
  await using origin = await startOrigin();
  const weir = shared;
  await change(weir, { debug_logging: { enabled: true, level: "summary" } });
  const client = proxyClient(weir.proxyPort);
  for (let at = 0; at < 100; at += 1) await client.fetch(`${origin.url}/n/${at}`);
  await settled(weir);
  process.kill(weir.pid, "SIGKILL");
  await weir.process.exited;
  assert.equal(read(weir).match(/ < 200 OK GET \S+\/n\/\d+ /g)?.length, 100);
});

test("a full log disk affects nothing else, is reported once, and logging resumes once there is space", async (context) => {
  await using directory = await temporaryDirectory();
  const logs = directory.file("data/logs");
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", logs]);
  if (mounted.status !== 0) {
    process.stdout.write("# skipping: no small file system can be mounted here\n");
    context.skip("needs the right to mount a file system");
    return;
  }
  try {
    await using origin = await startOrigin({
      handler: (_request, response) => response.end(Buffer.alloc(100_000, "x")),
    });
    await using weir = await startWeir({ dataDir: directory.file("data") });
    await change(weir, { async_buffer_size: 10, debug_logging: { enabled: true, level: "full" } });
    const client = proxyClient(weir.proxyPort);
    const get = async (): Promise<void> => assert.equal((await client.fetch(origin.url)).body.length, 100_000);
    for (let at = 0; at < 40; at += 1) await get();
    const full = await waitUntil(async () => {
      const status = await weir.get<LogStatus>("/logs");
      return status.problem !== null && status.traffic_events.waiting === 0 ? status : undefined;
    });
    assert.match(full.problem ?? "", /the disk is full$/);
    assert.ok(full.async.dropped_events > 0);
    assert.equal((await weir.waitForEntries(40)).length, 40);
    assert.equal(weir.process.stderr().split("cannot be written").length, 2, "reported once");
    writeFileSync(join(logs, "weir.log"), "");
    const done = await waitUntil(async () => {
      const status = await weir.get<LogStatus>("/logs");
      return status.problem === null ? status : undefined;
    });
    assert.equal(done.problem, null);
    await waitUntil(() => /WARN {2}The log file is written again; lines are missing missing=\d+\n/.test(read(weir)));
  } finally {
    spawnSync("umount", ["-l", logs]);
  }
});

test("rotation and format apply after a restart, and a service without a log file writes to standard output only", async (context) => {
  await using directory = await temporaryDirectory();
  const dataDir = directory.file("data");
  {
    await using weir = await startWeir({ dataDir });
    const status = await change(weir, { json_format: true, rotation: { mode: "size", size_mb: 1 } });
    assert.deepEqual(status.restart_pending, ["rotation", "json_format"]);
  }
  assert.doesNotMatch(read({ dataDir }), /^\{/m);
  {
    await using weir = await startWeir({ dataDir });
    assert.deepEqual((await weir.get<LogStatus>("/logs")).restart_pending, []);
    await context.test("origins and clients cannot forge lines or control a terminal in the JSON format", async () => {
      await forgeNothing(weir, "JSON");
    });
  }
  const last = read({ dataDir }).trimEnd().split("\n").at(-1) ?? "";
  assert.equal((JSON.parse(last) as { msg: string }).msg, "Weir has stopped");
  rmSync(join(dataDir, "logs"), { recursive: true });
  const child = await spawnProcess(process.execPath, [
    MAIN,
    "serve",
    `--data-dir=${dataDir}`,
    "-p",
    "0",
    "-a",
    "0",
    "--no-log-file",
  ]);
  await child.waitForOutput(/"msg":"Weir has started"/, 30_000);
  const { stdout, stderr } = await child.stop();
  assert.match(stdout, /"msg":"Weir has stopped"/);
  assert.equal(stderr, "");
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name === "logs"),
    [],
  );
});
