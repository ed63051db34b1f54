import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Agent, createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  peer,
  rawClient,
  readResponse,
  runProcess,
  startOrigin,
  temporaryDirectory,
  waitUntil,
} from "@headworks/testkit";
import { echo, sink } from "../scripts/quickstart-origins.ts";
import { Cleanups, runSluice, servingAll, startSluice, type Sluice } from "./sluice-rig.ts";

const repository = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));
const curl = peer("curl");
const cleanups = new Cleanups();
after(() => cleanups.run());

/** A server of the quickstart on a free port. */
async function listening(listener: Parameters<typeof createServer>[1]): Promise<number> {
  const server = createServer(listener ?? (() => undefined)).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.use({
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  });
  return (server.address() as AddressInfo).port;
}

/** The commands in a text, without their comments. */
function commandsIn(text: string): string[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.filter((line) => /^(?:curl|for n in) .*quickstart-key|^curl http:\/\/127\.0\.0\.1:2019/.test(line));
}

test("the commands printed by npm start and the README work as printed", { skip: curl.skip }, async () => {
  const received: string[] = [];
  const echoPort = await listening(echo);
  const sinkPort = await listening(sink((line) => received.push(line)));
  const directory = cleanups.use(await temporaryDirectory());
  const document = readFileSync(repository("examples/gateway/quickstart.yaml"), "utf8")
    .replace("port: 8080", "port: 0")
    .replace("127.0.0.1:2019", "127.0.0.1:0")
    .replace("port: 9001", `port: ${echoPort}`)
    .replace("127.0.0.1:9002", `127.0.0.1:${sinkPort}`);
  const sluice = cleanups.use(
    await startSluice(document, { env: { GATEWAY_STATE_DB: directory.file("quickstart.db") } }),
  );
  const run = async (command: string): Promise<string> => {
    const here = command
      .replaceAll("127.0.0.1:8080", `127.0.0.1:${sluice.port("public")}`)
      .replaceAll("http://127.0.0.1:2019", sluice.adminUrl)
      .replaceAll("curl ", "curl -sS ");
    const exit = await runProcess("sh", ["-c", here]);
    assert.equal(exit.code, 0, `${command}\n${exit.stdout}\n${exit.stderr}`);
    return exit.stdout;
  };
  const printed = commandsIn(readFileSync(repository("scripts/start.ts"), "utf8"));
  assert.equal(printed.length, 4, printed.join("\n"));
  const [current = "", old = "", several = "", usage = ""] = printed;
  assert.match(await run(current), /"path": "\/hello"[^]*"x-consumer-name": "acme"/);
  const response = await run(old);
  assert.match(response, /^HTTP\/1\.1 200 /);
  assert.match(response, /^deprecation: @1767225600\r?$/im);
  assert.match(response, /^sunset: Fri, 31 Dec 2049 23:59:59 GMT\r?$/im);
  assert.match(response, /^link: <https:\/\/example\.com\/migrate-to-v2>; rel="deprecation"/im);
  const four = await run(several);
  assert.deepEqual(
    [...four.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status),
    ["200", "200", "200", "429"],
  );
  const { consumers } = JSON.parse(await run(usage)) as {
    consumers: { consumer: string; budgets: { used: number }[] }[];
  };
  const used = new Map(consumers.map(({ consumer, budgets }) => [consumer, budgets[0]?.used]));
  assert.deepEqual([used.get("acme"), used.get("trial")], [2, 3]);
  const commands = commandsIn(readFileSync(repository("README.md"), "utf8"));
  assert.ok(commands.length >= 3, commands.join("\n"));
  for (const command of commands) assert.doesNotMatch(await run(command), /"error"/);
  await waitUntil(() => received.some((line) => line.includes("config_published")), { what: "the webhook" });
});

/** Clients that send requests sequentially until stopped. */
async function underLoad(
  port: number,
  clients: number,
  during: () => Promise<void>,
): Promise<{ readonly responses: number; readonly odd: readonly string[] }> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const odd: string[] = [];
  let responses = 0;
  let isFinished = false;
  const one = async (): Promise<void> => {
    while (!isFinished) {
      try {
        const sent = request({ host: "127.0.0.1", port, path: "/load", agent }).end();
        const [response] = (await once(sent, "response")) as [IncomingMessage];
        let text = "";
        for await (const piece of response.setEncoding("utf8")) text += String(piece);
        if (response.statusCode === 200 && text.length > 0) responses += 1;
        else odd.push(`${response.statusCode} ${text}`);
      } catch (error) {
        odd.push(String(error));
      }
    }
  };
  const running = Array.from({ length: clients }, one);
  try {
    await during();
  } finally {
    isFinished = true;
    await Promise.all(running);
    agent.destroy();
  }
  return { responses, odd };
}

for (const workers of [1, 2]) {
  test(`SIGHUP under load with ${workers} workers: every request gets a response of the old or the new document`, async () => {
    const origin = cleanups.use(await startOrigin());
    const versions = (version: number) =>
      servingAll(origin.port, {
        routes: [
          {
            name: `all-${version}`,
            service: "origin",
            match: { path: { type: "prefix", value: "/" } },
            action: { type: "proxy" },
            transforms: { response: { headers: { set: { "x-version": String(version) } } } },
          },
        ],
      });
    await using sluice = await startSluice(versions(0), { args: ["--workers", String(workers)] });
    const port = sluice.port("plain");
    const version = async (): Promise<string> => {
      const sent = request({ host: "127.0.0.1", port, path: "/version", agent: false }).end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      response.resume();
      return String(response.headers["x-version"]);
    };
    const { responses, odd } = await underLoad(port, 8, async () => {
      for (let next = 1; next <= 10; next += 1) {
        await sluice.write(versions(next));
        process.kill(sluice.pid, "SIGHUP");
        await waitUntil(async () => (await version()) === String(next), { what: `version ${next}` });
      }
    });
    assert.deepEqual(odd, []);
    assert.ok(responses > 100, `only ${responses} requests`);
  });
}

test("SIGTERM: a request in progress completes, new connections are refused, and the exit code is 0", async () => {
  const held: (() => void)[] = [];
  const slow = await listening((_request, response) => {
    response.write("begun ");
    held.push(() => response.end("and ended"));
  });
  await using sluice = await startSluice(servingAll(slow));
  const client = cleanups.use(await rawClient(sluice.port("plain")));
  await client.write("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n");
  await waitUntil(() => held.length === 1, { what: "the request at the origin" });
  const response = readResponse(client);
  process.kill(sluice.pid, "SIGTERM");
  await waitUntil(
    async () => {
      try {
        await using late = await rawClient(sluice.port("plain"));
        return late === undefined;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
      }
    },
    { what: "the end of the listener" },
  );
  held[0]?.();
  const { status, body } = await response;
  assert.deepEqual([status, body.toString()], [200, "begun and ended"]);
  await client[Symbol.asyncDispose]();
  assert.deepEqual((await sluice.process.exited).code, 0);
});

test("a second SIGTERM ends the process at once, with the exit status of a signal", async () => {
  const held: unknown[] = [];
  const silent = await listening((_request, response) => held.push(response));
  await using sluice: Sluice = await startSluice(servingAll(silent));
  await using client = await rawClient(sluice.port("plain"));
  await client.write("GET /never HTTP/1.1\r\nHost: a.test\r\n\r\n");
  await waitUntil(() => held.length === 1, { what: "the request at the origin" });
  process.kill(sluice.pid, "SIGTERM");
  // Pending signals of one kind arrive as one.
  await waitUntil(
    async () => {
      try {
        await using late = await rawClient(sluice.port("plain"));
        return late === undefined;
      } catch {
        return true;
      }
    },
    { what: "the first to be taken" },
  );
  // A signal within 400 ms counts as the same, because processes in between forward signals.
  const again = setInterval(() => process.kill(sluice.pid, "SIGTERM"), 100);
  const { code } = await sluice.process.exited;
  clearInterval(again);
  assert.equal(code, 128 + 15);
});

const GOOD = servingAll(9001);
const UNUSED = { name: "unused", endpoints: [{ address: "127.0.0.1", port: 9001 }] };
const WARNED = { ...GOOD, upstreams: [...(GOOD.upstreams ?? []), UNUSED] };
const BAD = { ...GOOD, routes: GOOD.routes?.map((route) => ({ ...route, service: "nowhere" })) };
const CHANGED = servingAll(9002);

const COMMANDS: readonly {
  readonly args: readonly string[];
  readonly code: number;
  readonly out?: RegExp;
  readonly err?: RegExp;
}[] = [
  { args: ["validate", "good"], code: 0, out: /^ok: 1 routes?$/m },
  { args: ["validate", "bad"], code: 1, err: /nowhere/ },
  { args: ["validate", "--json", "bad"], code: 1, out: /^\{|^\[/ },
  { args: ["validate", "missing"], code: 1, err: /missing/ },
  { args: ["lint", "good"], code: 0 },
  { args: ["lint", "warned"], code: 2, err: /unused/ },
  { args: ["lint", "bad"], code: 1, err: /nowhere/ },
  { args: ["diff", "good", "good"], code: 0, out: /no differences/ },
  { args: ["diff", "good", "changed"], code: 0, out: /~ upstream origin/ },
  { args: ["diff", "good", "missing"], code: 1, err: /missing/ },
  { args: ["plan", "good", "changed"], code: 0, out: /affected routes: all/ },
  { args: ["plan", "good", "bad"], code: 1, err: /nowhere/ },
  { args: ["fmt", "good"], code: 0 },
  { args: ["explain", "--config", "good", "--path", "/x"], code: 0, out: /route: all/ },
  { args: ["schema"], code: 0, out: /"\$schema"/ },
  { args: ["--version"], code: 0, out: /^\d+\.\d+\.\d+/ },
  { args: ["--help"], code: 0, out: /sluice serve/ },
  { args: [], code: 2 },
  { args: ["no-such-command"], code: 2, err: /unknown command/ },
  { args: ["serve", "--no-such-option"], code: 2, err: /unknown option/ },
  { args: ["serve", "--config", "bad"], code: 1, err: /nowhere/ },
  { args: ["serve", "--config", "missing"], code: 1, err: /no file/ },
  { args: ["serve", "--workers", "none"], code: 2 },
  { args: ["status"], code: 1, err: /./ },
];

for (const { args, code, out, err } of COMMANDS) {
  test(`sluice ${args.join(" ")} exits with ${code}`, async () => {
    await using directory = await temporaryDirectory();
    const documents = { good: GOOD, warned: WARNED, bad: BAD, changed: CHANGED };
    for (const [name, document] of Object.entries(documents)) {
      await writeFile(directory.file(name), JSON.stringify(document));
    }
    const inPlace = args.map((word) =>
      /^(?:good|warned|bad|changed|missing)$/.test(word) ? directory.file(word) : word,
    );
    // The discard port of this machine is closed.
    const exit = await runSluice(inPlace, { GATEWAY_ADMIN: "http://127.0.0.1:9", GATEWAY_ADMIN_DEV: "1" });
    assert.equal(exit.code, code, `${exit.stdout}\n${exit.stderr}`);
    if (out !== undefined) assert.match(exit.stdout, out);
    if (err !== undefined) assert.match(exit.stderr, err);
  });
}
