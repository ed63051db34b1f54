import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { CaptureStats, TrafficEntry } from "@headworks/capture-contract";
import { spawnProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { Exit, SpawnedProcess, TemporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";

// Proxies and certificates in the developer's environment must not affect clients under test.
for (const name of Object.keys(process.env)) {
  const isAboutTrust =
    /^(?:https?|all|no|ftp)_proxy$|^WEIR_|CA_?CERTS|CA_BUNDLE|^SSL_CERT|^GIT_(?:SSL|PROXY)|^PIP_CERT$|^NODE_OPTIONS$/i;
  if (isAboutTrust.test(name)) delete process.env[name];
}

/** The program under test. */
export const MAIN = fileURLToPath(new URL("../apps/capture-proxy/bin/weir.js", import.meta.url));

/**
 * Node options of the program's first line, so that tests run it as users do. Options about optimization are omitted: they change no
 * result, and early optimization takes a quarter of a start's CPU time.
 */
const SHIPPED_NODE_OPTIONS = (readFileSync(MAIN, "utf8").split("\n", 1)[0] ?? "")
  .split(" ")
  .filter((word) => word.startsWith("--") && !word.startsWith("--invocation-count-for-turbofan"));

/** The CA of all HTTPS origins in a test file; Weir trusts it, clients need not. */
export const originAuthority = CertificateAuthority.create({ commonName: "Origins of the end-to-end tests" });

/** For {@link startWeir}. */
export interface WeirOptions {
  /** Kept when the process ends; by default, a new directory is created and removed with the process. */
  readonly dataDir?: string;
  readonly args?: readonly string[];
  /** A command that starts Weir, such as `prlimit --nofile=128`. */
  readonly through?: readonly string[];
}

/** An API entry; {@link Weir.body} returns its bodies as bytes. */
export type Entry = TrafficEntry;

/** Weir in a process of its own, accessed only from outside. */
export interface Weir {
  readonly pid: number;
  readonly process: SpawnedProcess;
  readonly proxyUrl: string;
  readonly proxyPort: number;
  readonly apiUrl: string;
  readonly apiPort: number;
  readonly dataDir: string;
  /** PEM of the CA that clients have to trust. */
  readonly caFile: string;
  readonly caPem: string;
  /** GET of an API path below `/api`, parsed; throws unless the status is 2xx. */
  get<T>(path: string): Promise<T>;
  /** Entries whose URL contains `urlPart`, oldest first. */
  entries(urlPart?: string): Promise<Entry[]>;
  /** Waits until at least `count` completed or failed entries have `urlPart` in their URL. */
  waitForEntries(count: number, urlPart?: string, timeoutMs?: number): Promise<Entry[]>;
  body(entry: Entry, side: "request" | "response"): Promise<Buffer>;
  stats(): Promise<CaptureStats>;
  openFiles(): number;
  /** Current resident memory. */
  residentBytes(): number;
  stop(): Promise<Exit>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Started {
  readonly proxy: string;
  readonly api: string;
  readonly pid: number;
  readonly certificate: string;
}

/** Starts `weir serve` on free ports and resolves when it listens. */
export async function startWeir(options: WeirOptions = {}): Promise<Weir> {
  const own = options.dataDir === undefined ? await temporaryDirectory() : undefined;
  const trust = await temporaryDirectory();
  const rootsFile = trust.file("origins.pem");
  await writeFile(rootsFile, originAuthority.certificatePem);
  const dataDir = options.dataDir ?? own?.file("data") ?? "";
  const command = [
    ...(options.through ?? []),
    process.execPath,
    ...SHIPPED_NODE_OPTIONS,
    MAIN,
    "serve",
    "--json",
    `--data-dir=${dataDir}`,
    "--proxy-port=0",
    "--api-port=0",
    `--upstream-ca=${rootsFile}`,
    ...(options.args ?? []),
  ];
  const child = await spawnProcess(command[0] ?? "", command.slice(1));
  const removeFolders = async (): Promise<void> => {
    await trust.remove();
    await own?.remove();
  };
  let line: RegExpExecArray;
  try {
    line = await child.waitForOutput(/^\{"proxy".*\}$/m, 30_000);
  } catch (error) {
    await child.stop("SIGKILL");
    await removeFolders();
    throw error;
  }
  return new RunningWeir(child, JSON.parse(line[0]) as Started, dataDir, removeFolders);
}

class RunningWeir implements Weir {
  readonly process: SpawnedProcess;
  readonly pid: number;
  readonly proxyUrl: string;
  readonly proxyPort: number;
  readonly apiUrl: string;
  readonly apiPort: number;
  readonly dataDir: string;
  readonly caFile: string;
  readonly caPem: string;
  readonly #removeFolders: () => Promise<void>;

  constructor(child: SpawnedProcess, started: Started, dataDir: string, removeFolders: () => Promise<void>) {
    this.process = child;
    this.pid = started.pid;
    this.proxyUrl = started.proxy;
    this.proxyPort = Number(new URL(started.proxy).port);
    this.apiUrl = started.api;
    this.apiPort = Number(new URL(started.api).port);
    this.dataDir = dataDir;
    this.caFile = started.certificate;
    this.caPem = readFileSync(started.certificate, "utf8");
    this.#removeFolders = removeFolders;
  }

  async get<T>(path: string): Promise<T> {
    const response = await fetch(`${this.apiUrl}/api${path}`);
    const text = await response.text();
    if (!response.ok) throw new Error(`GET ${path} got ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  }

  async entries(urlPart?: string): Promise<Entry[]> {
    const filter = urlPart === undefined ? "" : `&url=${encodeURIComponent(urlPart)}`;
    return (await this.get<Entry[]>(`/traffic?limit=1000${filter}`)).toReversed();
  }

  async waitForEntries(count: number, urlPart?: string, timeoutMs = 10_000): Promise<Entry[]> {
    let seen: Entry[] = [];
    const enough = async (): Promise<boolean> => {
      seen = (await this.entries(urlPart)).filter(({ state }) => state !== "pending");
      return seen.length >= count;
    };
    await waitUntil(enough, { timeoutMs, what: `${count} entries with ${urlPart ?? "any URL"}` });
    return seen;
  }

  async body(entry: Entry, side: "request" | "response"): Promise<Buffer> {
    const response = await fetch(`${this.apiUrl}/api/traffic/${entry.id}/body/${side}`);
    if (response.status === 404) return Buffer.alloc(0);
    return Buffer.from(await response.arrayBuffer());
  }

  async stats(): Promise<CaptureStats> {
    return await this.get<CaptureStats>("/capture/stats");
  }

  openFiles(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  residentBytes(): number {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"))?.[1];
    return Number(kilobytes) * 1024;
  }

  async stop(): Promise<Exit> {
    const exit = await this.process.stop();
    await this.#removeFolders();
    return exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Subject names for certificates of origins on this machine. */
export const LOCAL_NAMES = { dns: ["localhost"], ip: ["127.0.0.1", "::1"] };

/** Resources to dispose after the tests of a file, in reverse order. */
export class Cleanups {
  readonly #steps: (() => unknown)[] = [];

  /** Adds a resource and returns it. */
  use<T extends AsyncDisposable>(thing: T): T {
    this.#steps.push(() => thing[Symbol.asyncDispose]());
    return thing;
  }

  async run(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) await step();
  }
}

/** A temporary directory for the duration of the test file. */
export async function workDirectory(cleanups: Cleanups): Promise<TemporaryDirectory> {
  return cleanups.use(await temporaryDirectory());
}
