import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { spawnProcess, waitUntil } from "@headworks/testkit";
import { entryOptions } from "../../scripts/entry-options.ts";
import type { BodyEdit } from "./load-job.ts";
import { CORES, pinned } from "./pinning.ts";

/** Optional protocols of proxies. */
export type Protocol = "socks5" | "http2" | "websocket";

/** The environment of a proxy. */
export interface Site {
  /** An empty directory of its own. */
  readonly directory: string;
  /** PEM file of the origin's CA, which the proxy must trust. */
  readonly originCaFile: string;
  /** Options for Node, for proxies that run on it. */
  readonly nodeOptions?: readonly string[];
  /** The protocol beyond HTTP/1.1; with SOCKS5, `port` is that of its listener. */
  readonly protocol?: Protocol | undefined;
}

/** A started proxy. */
export interface RunningProxy {
  readonly pid: number;
  readonly port: number;
  /** The CA that clients have to trust. */
  readonly caPem: string;
  /** Describes what it has stored; throws if that is less than `exchanges`. */
  readonly stored: (exchanges: number) => Promise<string>;
  readonly stop: () => Promise<void>;
}

/** One of the compared programs. */
export interface Contender {
  readonly name: string;
  /** What it stores of an exchange during the measurement. */
  readonly stores: string;
  /** Supported protocols beyond HTTP/1.1. */
  readonly protocols?: readonly Protocol[];
  /** Its change of bodies, if any. */
  readonly edit?: BodyEdit;
  /** Undefined if it is not installed. */
  readonly version: () => string | undefined;
  readonly start: (site: Site) => Promise<RunningProxy>;
}

const repository = join(import.meta.dirname, "../..");
const WEIR = join(repository, "apps/capture-proxy/bin/weir.js");
const peersDirectory = join(repository, "bench/peers");

/** A port that was free a moment ago, for programs that cannot use a port chosen by the system. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Output of `weir serve --json`. */
interface WeirFacts {
  readonly proxy: string;
  readonly socks?: string;
  readonly api: string;
  readonly certificate: string;
}

/** Node arguments that start Weir with default settings except for the limit on entries. */
export function weirArguments(
  directory: string,
  originCaFile: string,
  ports: { proxy: number; api: number },
): string[] {
  return [
    ...entryOptions(WEIR),
    WEIR,
    "serve",
    `--proxy-port=${ports.proxy}`,
    `--api-port=${ports.api}`,
    `--data-dir=${directory}`,
    "--max-requests=1000000",
    `--upstream-ca=${originCaFile}`,
    "--json",
  ];
}

export interface RunningWeir extends RunningProxy {
  readonly api: string;
}

/** Starts Weir and waits for its listeners. */
export async function startWeir(site: Site): Promise<RunningWeir> {
  const args = weirArguments(join(site.directory, "data"), site.originCaFile, { proxy: 0, api: 0 });
  if (site.protocol === "socks5") args.push("--enable-socks", `--socks-port=${await freePort()}`);
  if (site.protocol === "http2") args.push("--enable-h2-downstream");
  const { command, args: all } = pinned(CORES.proxy, {
    command: process.execPath,
    args: [...(site.nodeOptions ?? []), ...args],
  });
  const child = await spawnProcess(command, all);
  const [line] = await child.waitForOutput(/^\{"proxy".*\}$/m, 20_000);
  const facts = JSON.parse(line) as WeirFacts;
  return {
    pid: child.pid,
    port: Number(new URL((site.protocol === "socks5" ? facts.socks : undefined) ?? facts.proxy).port),
    api: facts.api,
    caPem: readFileSync(facts.certificate, "utf8"),
    stored: async (exchanges) =>
      site.protocol === "websocket"
        ? await weirStoredMessages(facts.api, exchanges)
        : await weirStored(facts.api, exchanges),
    stop: async () => {
      const exit = await child.stop("SIGTERM", 15_000);
      if (exit.code !== 0) {
        throw new Error(`Weir exited with ${exit.code ?? exit.signal}: ${exit.stderr.slice(0, 2000)}`);
      }
    },
  };
}

async function weirStored(api: string, exchanges: number): Promise<string> {
  const response = await fetch(`${api}/api/capture/stats`);
  if (!response.ok) throw new Error(`GET /api/capture/stats: ${response.status} ${await response.text()}`);
  const stats = (await response.json()) as Record<
    "entry_count" | "total_size_bytes" | "bodies_not_stored" | "entries_lost",
    number
  >;
  if (stats.entry_count < exchanges || stats.entries_lost > 0) {
    throw new Error(`Weir stored ${stats.entry_count} of ${exchanges} exchanges, ${stats.entries_lost} lost`);
  }
  const shed = stats.bodies_not_stored === 0 ? "" : `, ${stats.bodies_not_stored} bodies shed`;
  return `${stats.entry_count} entries, ${megabytes(stats.total_size_bytes)} of bodies${shed}`;
}

/** A message and its echo count as one exchange. */
async function weirStoredMessages(api: string, exchanges: number): Promise<string> {
  const response = await fetch(`${api}/api/ws-traffic/stats`);
  if (!response.ok) throw new Error(`GET /api/ws-traffic/stats: ${response.status} ${await response.text()}`);
  const { messages_stored: messages, messages_not_stored: lost } = (await response.json()) as Record<
    "messages_stored" | "messages_not_stored",
    number
  >;
  if (messages < 2 * exchanges || lost > 0) {
    throw new Error(`Weir stored ${messages} messages of ${exchanges} exchanges, ${lost} lost`);
  }
  return `${messages} messages`;
}

const EVERYTHING: readonly Protocol[] = ["socks5", "http2", "websocket"];

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

const weir: Contender = {
  name: "weir",
  protocols: EVERYTHING,
  stores: "every exchange, heads and bodies, in SQLite",
  version: () => {
    const { version } = JSON.parse(readFileSync(join(repository, "apps/capture-proxy/package.json"), "utf8")) as {
      version: string;
    };
    const commit = spawnSync("git", ["-C", repository, "rev-parse", "--short", "HEAD"], { encoding: "utf8" });
    return commit.status === 0 ? `${version} (${commit.stdout.trim()})` : version;
  },
  start: startWeir,
};

/** mitmdump with additional options. */
export function mitmdumpWith(name: string, options: readonly string[], edit?: BodyEdit): Contender {
  return {
    name,
    stores: "every exchange in a flow file (-w); quiet (-q), since its line per request costs it more",
    ...(edit === undefined ? {} : { edit }),
    version: () => {
      const run = spawnSync("mitmdump", ["--version"], { encoding: "utf8" });
      return run.status === 0 ? /Mitmproxy: (\S+)/.exec(run.stdout)?.[1] : undefined;
    },
    protocols: EVERYTHING,
    start: (site) => startMitmdump(site, site.protocol === "socks5" ? [...options, "--mode", "socks5"] : options),
  };
}

async function startMitmdump({ directory, originCaFile }: Site, options: readonly string[]): Promise<RunningProxy> {
  const port = await freePort();
  const flows = join(directory, "flows");
  const settings = [`confdir=${directory}`, `ssl_verify_upstream_trusted_ca=${originCaFile}`];
  const { command, args } = pinned(CORES.proxy, {
    command: "mitmdump",
    args: [
      "-q",
      "-w",
      flows,
      "--listen-host",
      "127.0.0.1",
      "-p",
      String(port),
      ...settings.flatMap((s) => ["--set", s]),
      ...options,
    ],
  });
  const child = await spawnProcess(command, args);
  const caFile = join(directory, "mitmproxy-ca-cert.pem");
  await waitUntil(async () => existsSync(caFile) && (await accepts(port)), { timeoutMs: 20_000 });
  return {
    pid: child.pid,
    port,
    caPem: readFileSync(caFile, "utf8"),
    stored: async () => `${megabytes(statSync(flows).size)} of flows`,
    stop: async () => void (await child.stop("SIGTERM", 10_000)),
  };
}

/** True if a server listens on the port of 127.0.0.1. */
export async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  return await promise.finally(() => socket.destroy());
}

const MOCKTTP_STORES = "requests in memory (recordTraffic, its default), nothing on disk";

/** mockttp with a change that its driver in bench/peers supports. */
export function mockttpWith(name: string, change: object, edit?: BodyEdit): Contender {
  const contender = registryPeer("mockttp", MOCKTTP_STORES, [JSON.stringify(change)]);
  return { ...contender, name, ...(edit === undefined ? {} : { edit }) };
}

/** A proxy from the npm registry, started by its driver in bench/peers. */
function registryPeer(name: string, stores: string, more: readonly string[] = []): Contender {
  return {
    name,
    stores,
    protocols: name === "mockttp" ? EVERYTHING : [],
    version: () => {
      const file = join(peersDirectory, "node_modules", name, "package.json");
      return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version : undefined;
    },
    start: async (site) =>
      await startDriver(site, join(peersDirectory, `${name}.mjs`), [
        String(await freePort()),
        site.directory,
        ...more,
        ...(site.protocol === undefined ? [] : [JSON.stringify({ [site.protocol]: true })]),
      ]),
  };
}

/** A script that prints its port and the file of its CA. */
async function startDriver(
  { directory, originCaFile, nodeOptions = [] }: Site,
  driver: string,
  more: readonly string[],
): Promise<RunningProxy> {
  const { command, args } = pinned(CORES.proxy, {
    command: process.execPath,
    args: [...nodeOptions, driver, ...more],
  });
  const env = { HOME: directory, TMPDIR: directory, NODE_EXTRA_CA_CERTS: originCaFile, NODE_ENV: "production" };
  const child = await spawnProcess(command, args, { cwd: directory, env });
  const [line] = await child.waitForOutput(/^\{.*\}$/m, 20_000);
  const { port, ca } = JSON.parse(line) as { port: number; ca: string };
  return {
    pid: child.pid,
    port,
    caPem: readFileSync(ca, "utf8"),
    stored: async () => "not checked",
    stop: async () => void (await child.stop("SIGTERM", 3000)),
  };
}

/** Not a proxy: the minimum cost of the runtime's sockets and TLS. */
const bareRelay: Contender = {
  name: "bare-relay",
  protocols: ["websocket"],
  stores: "nothing; passes bytes on unread",
  version: () => process.version,
  start: async (site) =>
    await startDriver(site, join(import.meta.dirname, "bare-relay.ts"), [site.directory, site.originCaFile]),
};

/** Weir first, as the baseline. */
export const CONTENDERS: readonly [Contender, ...Contender[]] = [
  weir,
  mitmdumpWith("mitmdump", []),
  registryPeer("mockttp", MOCKTTP_STORES),
  registryPeer("http-mitm-proxy", "nothing"),
  registryPeer("anyproxy", "heads in an in-memory database, bodies of responses in files"),
  bareRelay,
];

/** Facts about the machine for readers of the results. */
export function machineFacts(): readonly string[] {
  const cpu = /^model name\s*:\s*(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1] ?? "unknown processor";
  const load = readFileSync("/proc/loadavg", "utf8").split(" ").slice(0, 3).join(" ");
  const kernel = execFileSync("uname", ["-sr"], { encoding: "utf8" }).trim();
  return [cpu, kernel, `Node ${process.versions.node}`, `OpenSSL ${process.versions.openssl}`, `load before ${load}`];
}
