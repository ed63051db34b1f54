import { renameSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import {
  rawClient,
  readResponse,
  spawnProcess,
  startOrigin,
  temporaryDirectory,
  waitUntil,
  type SpawnedProcess,
} from "@headworks/testkit";
import { entryOptions } from "../../scripts/entry-options.ts";
import { residentMb } from "../capture/processor-time.ts";

const MAIN = fileURLToPath(new URL("../../apps/gateway/bin/sluice.js", import.meta.url));
const LIMIT_MB_PER_MINUTE = 1;
/** Memory varies with garbage collection; growth shows in the minimum of such an interval. */
const FLOOR_MINUTES = 1 / 6;
const KEY = "reload-key";

const USAGE = `Usage: node bench/gateway/reloads.ts [options]

Reloads the configuration of a gateway repeatedly under load, and prints the growth of its memory and the number of failed
requests. Every fourth document is invalid and must be refused.

  --reloads <n>      counted reloads (default 1000)
  --warm-up <n>      reloads before them, while heaps, pools and the last 1,000 events fill (default 2000)
  --every-ms <n>     interval between reloads (default 150)
  --format <f>       format of the documents, json or yaml (default json)
  --connections <n>  kept connections, each with one request in flight (default 20)
`;

const { values } = parseArgs({
  options: {
    reloads: { type: "string", default: "1000" },
    "warm-up": { type: "string", default: "2000" },
    "every-ms": { type: "string", default: "150" },
    format: { type: "string", default: "json" },
    connections: { type: "string", default: "20" },
    help: { type: "boolean", short: "h", default: false },
  },
});

/** The n-th document: routes, keys, limits and upstream settings differ each time. */
function documentOf(at: number, originPort: number, write: (document: object) => string): string {
  if (at % 4 === 3) return write({ routes: at });
  const endpoint = { address: "127.0.0.1", port: originPort };
  return write({
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, metrics: true, idle_timeout_ms: 60_000 + at }],
    upstreams: [
      {
        name: "api",
        endpoints: [endpoint],
        connection_cap: 64 + (at % 7),
        timeouts: { connect_ms: 5000 + at, read_ms: 10_000 },
        breaker: { consecutive_failures: 1000 },
        health: {},
        retries: { attempts: 1 },
      },
      { name: `api-${at}`, endpoints: [endpoint] },
    ],
    services: [
      { name: "api", upstream: "api" },
      { name: `api-${at}`, upstream: `api-${at}` },
    ],
    consumers: [
      { name: "steady", credentials: [{ type: "api_key", key: KEY }], quotas: { daily_requests: 1_000_000_000 } },
      ...Array.from({ length: 50 }, (_, number) => ({
        name: `c${number}-${at % 5}`,
        credentials: [{ type: "api_key", key: `key-${at}-${number}` }],
      })),
    ],
    policies: [
      { name: "p", rate_limits: [{ selector: ["credential"], requests_per: { s: 1_000_000 + at }, burst: 1_000_000 }] },
    ],
    routes: Array.from({ length: 200 }, (_, number) => ({
      name: `r${number}-${at % 3}`,
      service: number % 2 === 0 ? "api" : `api-${at}`,
      match: { path: { type: "prefix", value: `/r${number}` } },
      action: { type: "proxy", rewrite: { type: "strip_prefix" } },
      policies: ["p"],
      auth_required: true,
      deprecation: { since: "Thu, 01 Jan 2026 00:00:00 GMT" },
    })),
  });
}

class Load {
  requests = 0;
  readonly failures: string[] = [];
  isFinished = false;

  /** One connection with sequential requests; reopened if the gateway closes it between two requests. */
  async ask(port: number, seed: number): Promise<void> {
    let connection = await rawClient(port);
    for (let at = seed; !this.isFinished; at += 1) {
      const path = `/r${at % 200}/x`;
      try {
        await connection.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${KEY}\r\n\r\n`);
        const response = await readResponse(connection);
        this.requests += 1;
        if (response.status !== 200) this.failures.push(`${path}: ${response.status} ${response.body.toString()}`);
        if (response.header("connection") !== "close") continue;
      } catch (error) {
        this.failures.push(`${path}: ${String(error)}`);
      }
      connection.destroy();
      connection = await rawClient(port);
    }
    connection.destroy();
  }
}

interface Sample {
  readonly minute: number;
  readonly mb: number;
}

/** The minimum of each interval. */
function floorsOf(samples: readonly Sample[]): Sample[] {
  const floors = new Map<number, Sample>();
  for (const sample of samples) {
    const stretch = Math.floor(sample.minute / FLOOR_MINUTES);
    const lowest = floors.get(stretch);
    if (lowest === undefined || sample.mb < lowest.mb) floors.set(stretch, sample);
  }
  return [...floors.values()];
}

/** Megabytes per minute, by least squares. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const minute = mean((sample) => sample.minute);
  const mb = mean((sample) => sample.mb);
  const above = samples.reduce((sum, sample) => sum + (sample.minute - minute) * (sample.mb - mb), 0);
  return above / samples.reduce((sum, sample) => sum + (sample.minute - minute) ** 2, 0);
}

async function metric(port: number, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
}

/** The running generation once no reloads are pending. */
async function lastGeneration(port: number): Promise<number> {
  for (let before = -1; ;) {
    const now = await metric(port, "config_generation");
    if (now === before) return now;
    before = now;
    await sleep(1000);
  }
}

const WRITERS: Readonly<Record<string, (document: object) => string>> = { json: JSON.stringify, yaml: stringify };

interface RunOptions {
  readonly write: (document: object) => string;
  readonly reloads: number;
  readonly warmUp: number;
  readonly everyMs: number;
  readonly connections: number;
}

async function run({ write, reloads, warmUp, everyMs, connections }: RunOptions): Promise<boolean> {
  await using origin = await startOrigin({
    handler: (_request, response) => void setTimeout(() => response.end("ok"), Math.random() * 10),
  });
  // The origin would keep the heads, which are not needed here.
  const forget = setInterval(() => (origin.requests as unknown[]).splice(0), 1000);
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  writeFileSync(file, documentOf(0, origin.port, write));
  await using gateway: SpawnedProcess = await spawnProcess(
    process.execPath,
    [...entryOptions(MAIN), MAIN, "serve", "--config", file, "--json"],
    {
      env: {
        GATEWAY_STATE_DB: directory.file("state", "state.db"),
        GATEWAY_LOG: "off",
        GATEWAY_ACCESS_LOG_SAMPLE: "0",
      },
    },
  );
  const [line] = await gateway.waitForOutput(/^\{.*"listeners".*\}$/m, 30_000);
  const port = (JSON.parse(line) as { listeners: { port: number }[] }).listeners[0]?.port ?? 0;
  // Its first output comes shortly before it handles signals.
  await waitUntil(async () => (await metric(port, "config_generation")) === 1, { what: "the first generation" });
  const load = new Load();
  void gateway.exited.then((exit) => {
    if (!load.isFinished) console.error(`The gateway exited unexpectedly: ${exit.code ?? exit.signal}\n${exit.stderr}`);
  });
  const asking = Array.from({ length: connections }, async (_, at) => await load.ask(port, at * 10));
  const samples: Sample[] = [];
  const startedMs = performance.now();
  const sampling = setInterval(() => {
    samples.push({ minute: (performance.now() - startedMs) / 60_000, mb: residentMb(gateway.pid).nowMb });
  }, 500);
  /** The number of samples at the beginning of each thousand counted reloads. */
  const thousands: number[] = [];
  for (let at = 1; at <= warmUp + reloads; at += 1) {
    if (at > warmUp && (at - warmUp - 1) % 1000 === 0) thousands.push(samples.length);
    writeFileSync(`${file}.next`, documentOf(at, origin.port, write));
    renameSync(`${file}.next`, file);
    process.kill(gateway.pid, "SIGHUP");
    await sleep(everyMs);
  }
  const generation = await lastGeneration(port);
  clearInterval(sampling);
  clearInterval(forget);
  load.isFinished = true;
  await Promise.all(asking);
  const tookS = (performance.now() - startedMs) / 1000;
  const counted = samples.slice(thousands[0]);
  const slope = slopeOf(floorsOf(counted));
  const slopes = thousands.map((start, at) => slopeOf(floorsOf(samples.slice(start, thousands[at + 1]))).toFixed(2));
  const exit = await gateway.stop("SIGTERM", 15_000);
  const [first, last] = [counted[0]?.mb ?? 0, counted.at(-1)?.mb ?? 0];
  console.log(
    [
      `${warmUp} and ${reloads} reloads in ${tookS.toFixed(0)} s (${generation} generations published), ${load.requests} requests over ${connections} connections`,
      `resident memory: ${(samples[0]?.mb ?? 0).toFixed(0)} MB at the start, ${first.toFixed(0)} MB after the warm-up, ${last.toFixed(0)} MB at the end`,
      `growth of the minimum of each ten seconds: ${slope.toFixed(2)} MB per minute (target below ${LIMIT_MB_PER_MINUTE}); of all samples: ${slopeOf(counted).toFixed(2)}`,
      ...(slopes.length > 1 ? [`the same of each thousand reloads: ${slopes.join(", ")}`] : []),
      `failed requests: ${load.failures.length} (target 0)`,
      ...load.failures.slice(0, 10).map((failure) => `  ${failure}`),
      `exit code after SIGTERM: ${exit.code}`,
    ].join("\n"),
  );
  return slope < LIMIT_MB_PER_MINUTE && load.failures.length === 0 && exit.code === 0;
}

const write = WRITERS[values.format];
if (values.help) console.log(USAGE);
else if (write === undefined) {
  console.error(`--format is json or yaml, not "${values.format}"`);
  process.exitCode = 2;
} else {
  const isHeld = await run({
    write,
    reloads: Number(values.reloads),
    warmUp: Number(values["warm-up"]),
    everyMs: Number(values["every-ms"]),
    connections: Number(values.connections),
  });
  process.exitCode = isHeld ? 0 : 1;
}
