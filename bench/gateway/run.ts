import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { runProcess, spawnProcess, temporaryDirectory, waitUntil, type SpawnedProcess } from "@headworks/testkit";
import { freePort } from "../capture/proxies.ts";
import { canPin, CORES, pinned } from "../capture/pinning.ts";
import { processorTime, residentMb, untilQuiet } from "../capture/processor-time.ts";
import { median } from "../capture/report.ts";
import { idleConnections, RELOADS, type Beside } from "./beside.ts";
import { CONTENDERS, WITHOUT_QUOTA, type Contender, type Demand } from "./contenders.ts";
import { hasHttp2Load, playHttp1, playHttp2, type Played } from "./loads.ts";
import { originConfiguration, prepareSite, type Site } from "./site.ts";

interface Row extends Demand {
  readonly name: string;
  readonly title: string;
  readonly path: string;
  /** Bytes of a request body; 0 for GET. */
  readonly bodyBytes: number;
  /** Each gateway takes part a second time with this activity. */
  readonly beside?: () => Beside;
  /** The other gateway's CPU divided by Sluice's: the required minimum and the aim. */
  readonly targets: Readonly<Record<string, { readonly floor: number; readonly aim: number }>>;
}

const PLAIN = {
  isSecure: false,
  isHttp2: false,
  routes: 1,
  hasConsumer: false,
  hasQuota: false,
  bodyBytes: 0,
  targets: {},
};
const PEERS = {
  nginx: { floor: 0.6, aim: 0.8 },
  caddy: { floor: 2.3, aim: 3.2 },
  "fast-gateway": { floor: 1.8, aim: 2.3 },
  "fast-proxy": { floor: 1.8, aim: 2.3 },
  "@fastify/http-proxy": { floor: 1.8, aim: 2.3 },
};

const ROWS: readonly Row[] = [
  { ...PLAIN, name: "200b", title: "responses of 200 bytes", path: "/200", targets: PEERS },
  {
    ...PLAIN,
    name: "16k",
    title: "responses of 16 KB",
    path: "/16k",
    targets: { ...PEERS, nginx: { floor: 0.65, aim: 0.85 } },
  },
  { ...PLAIN, name: "1m", title: "responses of 1 MB", path: "/1m" },
  { ...PLAIN, name: "post-10k", title: "requests with 10 KB, short responses", path: "/post", bodyBytes: 10_240 },
  { ...PLAIN, name: "tls", title: "TLS towards clients, responses of 200 bytes", path: "/200", isSecure: true },
  {
    ...PLAIN,
    name: "http2",
    title: "HTTP/2 over TLS towards clients, responses of 200 bytes",
    path: "/200",
    isSecure: true,
    isHttp2: true,
  },
  { ...PLAIN, name: "routes-100", title: "100 routes, responses of 200 bytes", path: "/200", routes: 100 },
  { ...PLAIN, name: "routes-5000", title: "5,000 routes, responses of 200 bytes", path: "/200", routes: 5000 },
  {
    ...PLAIN,
    name: "quota",
    title: "two durable budgets charged for each request",
    path: "/200",
    hasConsumer: true,
    hasQuota: true,
  },
  {
    ...PLAIN,
    name: "reload",
    title: "four reloads per second under load, without a failed request",
    path: "/200",
    beside: () => RELOADS,
  },
  { ...PLAIN, name: "idle", title: "10,000 idle connections during the load", path: "/200", beside: idleConnections },
];

/** The compilers of JavaScript gateways run for this long after the first request. */
const WARM_UP_SECONDS = 8;

const USAGE = `Usage: node bench/gateway/run.ts [options]

Compares Sluice with other gateways and reverse proxies, CPU per request first. Needs wrk and nginx (as the origin), and h2load for HTTP/2.

  --rows <names>     comma separated: ${ROWS.map(({ name }) => name).join(", ")} (default: all)
  --peers <names>    comma separated, or none: ${CONTENDERS.slice(1)
    .map(({ name }) => name)
    .join(", ")}
  --seconds <n>      length of a round (default 3)
  --rounds <n>       counted rounds, after one uncounted round (default 3)
  --connections <n>  concurrent connections (default 64)
`;

const { values } = parseArgs({
  options: {
    rows: { type: "string" },
    peers: { type: "string" },
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
    connections: { type: "string", default: "64" },
    help: { type: "boolean", short: "h", default: false },
  },
});

function chosen<T extends { readonly name: string }>(all: readonly T[], names: string | undefined): T[] {
  if (names === undefined) return [...all];
  const wanted = new Set(names.split(","));
  return all.filter(({ name }) => wanted.has(name));
}

interface Round extends Played {
  readonly cpuUs: number;
}

interface Participant {
  readonly contender: Contender;
  readonly beside: Beside | undefined;
  readonly process: SpawnedProcess;
  readonly port: number;
  readonly rounds: Round[];
  /** The note of the activity's first start. */
  note: string | undefined;
}

async function enter(contender: Contender, row: Row, site: Site, beside?: Beside): Promise<Participant> {
  const port = await freePort();
  const { command, args } = pinned(CORES.proxy, contender.command(site, port, row));
  const child = await spawnProcess(command, args);
  const url = `${row.isSecure ? "https" : "http"}://127.0.0.1:${port}/200`;
  const ended = child.exited.then(({ stderr }) => {
    throw new Error(`${contender.name} exited before it responded: ${stderr.trim()}`);
  });
  await Promise.race([
    ended,
    waitUntil(
      async () => (await runProcess("curl", ["-sk", "-o", "/dev/null", "-w", "%{http_code}", url])).stdout === "200",
      { what: `${contender.name} on port ${port}`, timeoutMs: 30_000 },
    ),
  ]);
  return { contender, beside, process: child, port, rounds: [], note: undefined };
}

/** Runs the load on the other core, with the origin. */
async function play(row: Row, participant: Participant, site: Site, seconds: number): Promise<Round> {
  const { contender, port, process: child } = participant;
  const beside = await participant.beside?.start({ contender, pid: child.pid, port, site, demand: row });
  if (beside !== undefined) await untilQuiet(child.pid, 1000);
  const before = processorTime(child.pid).totalUs;
  const url = `${row.isSecure ? "https" : "http"}://127.0.0.1:${port}${row.path}`;
  const load = { url, seconds, connections: Number(values.connections) };
  const script = row.bodyBytes > 0 ? join(site.directory, "post.lua") : undefined;
  const played = await (row.isHttp2 ? playHttp2(load) : playHttp1(load, script));
  participant.note ??= beside?.note;
  if (participant.beside?.isLoad === true) await beside?.stop();
  await untilQuiet(child.pid);
  const cpuUs = processorTime(child.pid).totalUs - before;
  if (participant.beside?.isLoad === false) await beside?.stop();
  return { ...played, cpuUs: cpuUs / Math.max(1, played.requests) };
}

interface Cost {
  readonly cpuUs: number;
  /** Ratio to Sluice, of single rounds. */
  readonly ratio: number;
}

async function measure(row: Row, contenders: readonly Contender[], site: Site): Promise<Map<string, Cost>> {
  const seconds = Number(values.seconds);
  const participants: Participant[] = [];
  const costs = new Map<string, Cost>();
  try {
    const beside = row.beside?.();
    for (const contender of contenders) {
      if (!contender.can(row)) continue;
      participants.push(await enter(contender, row, site));
      if (beside?.can(contender) === true) participants.push(await enter(contender, row, site, beside));
    }
    for (let round = 0; round <= Number(values.rounds); round += 1) {
      for (const participant of round % 2 === 0 ? participants : participants.toReversed()) {
        const played = await play(row, participant, site, round === 0 ? Math.max(WARM_UP_SECONDS, seconds) : seconds);
        if (round > 0) participant.rounds.push(played);
      }
    }
    print(row, participants);
    for (const { contender, beside: another, rounds } of participants) {
      if (another !== undefined) continue;
      const cpuUs = median(rounds.map((round) => round.cpuUs));
      costs.set(contender.name, { cpuUs, ratio: median(ratiosTo(participants[0], rounds)) });
    }
  } finally {
    for (const { process: child } of participants) await child.stop();
  }
  return costs;
}

/** The ratio of each round to Sluice's, because the speed of the machine varies from minute to minute. */
function ratiosTo(own: Participant | undefined, rounds: readonly Round[]): number[] {
  return rounds.map(({ cpuUs }, at) => cpuUs / (own?.rounds[at]?.cpuUs ?? Number.NaN));
}

function print(row: Row, participants: readonly Participant[]): void {
  console.log(`\n${row.name}: ${row.title}`);
  console.log("                       x Sluice   floor     aim   CPU us/req    req/s   p99 ms   RSS MB");
  const [own] = participants;
  for (const { contender, beside, rounds, note, process: child } of participants) {
    const target = beside === undefined ? row.targets[contender.name] : undefined;
    const ratio = median(ratiosTo(own, rounds));
    const cells = [
      (beside === undefined ? contender.name : `${contender.name}, ${beside.title}`).padEnd(22),
      ratio.toFixed(2).padStart(9),
      String(target?.floor ?? "").padStart(8),
      String(target?.aim ?? "").padStart(8),
      median(rounds.map(({ cpuUs }) => cpuUs))
        .toFixed(1)
        .padStart(13),
      median(rounds.map(({ perSecond }) => perSecond))
        .toFixed(0)
        .padStart(9),
      (rounds.some(({ p99Ms }) => p99Ms === undefined)
        ? ""
        : median(rounds.map(({ p99Ms = 0 }) => p99Ms)).toFixed(2)
      ).padStart(9),
      residentMb(child.pid).nowMb.toFixed(0).padStart(9),
      target === undefined ? "" : ratio >= target.aim ? "  pass, aim" : ratio >= target.floor ? "  pass" : "  FAIL",
    ];
    console.log(cells.join(""));
    if (note !== undefined) console.log(`    ${note}`);
    for (const problem of new Set(rounds.flatMap((round) => round.problem ?? []))) console.log(`    ${problem}`);
  }
}

/** Compares Sluice with itself: the cost of features. */
function compareOwn(costs: ReadonlyMap<string, ReadonlyMap<string, Cost>>): void {
  const of = (row: string): number => costs.get(row)?.get("sluice")?.cpuUs ?? Number.NaN;
  const tell = (sentence: (ratio: string) => string, ratio: number): void => {
    if (!Number.isNaN(ratio)) console.log(sentence(ratio.toFixed(2)));
  };
  const base = of("200b");
  const withoutQuota = costs.get("quota")?.get(WITHOUT_QUOTA.name)?.ratio ?? Number.NaN;
  tell((ratio) => `\nquota on: ${ratio} of quota off (floor 0.70, aim 0.85)`, withoutQuota);
  tell((ratio) => `quota on: ${ratio} of requests without a consumer`, base / of("quota"));
  tell((ratio) => `5,000 routes: ${ratio} times the cost of one (at most 1.5)`, of("routes-5000") / base);
}

async function main(): Promise<void> {
  if (values.help) return console.log(USAGE);
  const [own, ...others] = CONTENDERS;
  const peers = chosen(others, values.peers).filter((peer) => {
    const isThere = peer.version() !== undefined;
    if (!isThere) console.log(`${peer.name} is skipped because it is not installed`);
    return isThere;
  });
  await using directory = await temporaryDirectory();
  const site = prepareSite(directory.path, await freePort());
  const originFile = directory.file("origin.conf");
  writeFileSync(originFile, originConfiguration(site));
  writeFileSync(
    directory.file("post.lua"),
    `wrk.method = "POST"\nwrk.body = string.rep("a", ${ROWS.find(({ bodyBytes }) => bodyBytes > 0)?.bodyBytes ?? 0})\n`,
  );
  const { command, args } = pinned(CORES.rest, { command: "nginx", args: ["-c", originFile] });
  await using origin = await spawnProcess(command, args);
  await sleep(300);
  console.log(
    canPin ? "One core for the gateway, the other for load and origin." : "Gateway, load and origin share the CPU.",
  );
  for (const { name, version } of [own, ...peers].filter((one) => one !== undefined)) {
    console.log(`${name} ${version() ?? ""}`);
  }
  console.log(
    `load average before: ${loadavg()
      .map((load) => load.toFixed(2))
      .join(" ")}; origin ${origin.pid}`,
  );
  const costs = new Map<string, ReadonlyMap<string, Cost>>();
  for (const row of chosen(ROWS, values.rows)) {
    if (row.isHttp2 && !hasHttp2Load()) {
      console.log(`\n${row.name}: skipped because h2load is not installed`);
      continue;
    }
    costs.set(
      row.name,
      await measure(
        row,
        [own, ...(row.hasQuota ? [WITHOUT_QUOTA] : []), ...peers].filter((one) => one !== undefined),
        site,
      ),
    );
  }
  compareOwn(costs);
  console.log(
    `load average after: ${loadavg()
      .map((load) => load.toFixed(2))
      .join(" ")}`,
  );
}

await main();
