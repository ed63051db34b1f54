import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { Agent, request, type IncomingMessage } from "node:http";
import { fileURLToPath } from "node:url";
import { spawnProcess, temporaryDirectory, waitUntil, type SpawnedProcess } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";

const MAIN = fileURLToPath(new URL("../bin/sluice.js", import.meta.url));
const LISTENER = { name: "public", address: "127.0.0.1", port: 0, metrics: true };

/** A gateway with several worker processes. */
export interface WorkerGateway extends AsyncDisposable {
  readonly child: SpawnedProcess;
  readonly port: number;
  readonly adminUrl: string;
  /** Lines of the log so far, parsed. */
  lines(): readonly Record<string, unknown>[];
  /** Process ids of workers in the order in which they began to take requests. */
  workerPids(): readonly number[];
  /** Those of them that have not ended. */
  runningPids(): readonly number[];
  /** Waits until each worker that ended has been replaced. */
  whole(): Promise<void>;
  /** The number of the generation that was published last. */
  generation(): number;
  write(document: DocumentInput | string): Promise<void>;
}

/** What a client got, with the connection it got it on. */
export interface Got {
  readonly status: number;
  readonly text: string;
  readonly connection: string | undefined;
}

interface StartOptions {
  readonly workers?: number;
  readonly state?: boolean;
  /** The program that runs it and its workers. */
  readonly node?: string;
}

/** Starts `sluice serve` with workers as its users do. */
export async function startWorkers(
  document: DocumentInput,
  { workers = 2, state = false, node = process.execPath }: StartOptions = {},
): Promise<WorkerGateway> {
  const directory = await temporaryDirectory();
  const file = directory.file("gateway.json");
  const write = async (next: DocumentInput | string): Promise<void> => await writeFile(file, textOf(next));
  await write(document);
  const child = await spawnProcess(node, [MAIN, "serve", "--config", file, "--workers", String(workers), "--json"], {
    env: { GATEWAY_ADMIN_DEV: "1", ...(state ? { GATEWAY_STATE_DB: directory.file("state.db") } : {}) },
  });
  const lines = (): Record<string, unknown>[] =>
    child
      .stdout()
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  try {
    const [line] = await child.waitForOutput(/^\{.*"listeners".*\}$/m, 60_000);
    const facts = JSON.parse(line) as { listeners: { port: number }[]; admin: string };
    const pidsIn = (wanted: string): number[] =>
      lines()
        .filter(({ code, worker_pid: pid }) => code === wanted && pid !== undefined)
        .map(({ worker_pid: pid }) => Number(pid));
    const workerPids = (): number[] => pidsIn("worker_started");
    const runningPids = (): number[] => {
      const ended = new Set(pidsIn("worker_ended"));
      return workerPids().filter((pid) => !ended.has(pid));
    };
    await waitUntil(() => workerPids().length === workers, { what: "the lines of the workers" });
    return {
      child,
      port: facts.listeners[0]?.port ?? 0,
      adminUrl: facts.admin,
      lines,
      workerPids,
      runningPids,
      whole: async () => {
        const isWhole = (): boolean => runningPids().length === workers;
        await waitUntil(isWhole, { what: "another worker", timeoutMs: 30_000 });
      },
      generation: () => {
        const own = lines().filter(({ code, worker }) => code === "config_published" && worker === undefined);
        return Number(own.at(-1)?.["generation"]);
      },
      write,
      [Symbol.asyncDispose]: async () => {
        await child.stop();
        await directory.remove();
      },
    };
  } catch (error) {
    await child.stop();
    await directory.remove();
    throw error;
  }
}

function textOf(document: DocumentInput | string): string {
  if (typeof document === "string") return document;
  const admin = { bind: "127.0.0.1:0" };
  const gateway = { shutdown_timeout_ms: 8000, ...document.gateway };
  return JSON.stringify({ listeners: [LISTENER], admin, ...document, gateway }, (_key, value: unknown) =>
    typeof value === "bigint" ? Number(value) : value,
  );
}

/** One request; rejects when the connection fails before the whole answer is there. */
export async function get(
  port: number,
  path: string,
  options: { readonly agent?: Agent; readonly headers?: Record<string, string>; readonly method?: string } = {},
): Promise<Got> {
  const sent = request({ host: "127.0.0.1", port, path, agent: false, ...options }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of response.setEncoding("utf8")) text += String(piece);
  return { status: response.statusCode ?? 0, text, connection: response.headers.connection };
}

/** How many connections {@link agentsOfWorkers} opens to each worker. */
const PINNED_CONNECTIONS = 8;

/**
 * For each worker an agent whose connections that worker took: while they were opened, all others stood still. Close
 * them at the end.
 */
export async function agentsOfWorkers(gateway: WorkerGateway): Promise<readonly Agent[]> {
  const pids = gateway.runningPids();
  const agents: Agent[] = [];
  for (const pid of pids) {
    const others = pids.filter((other) => other !== pid);
    const agent = new Agent({ keepAlive: true, maxSockets: PINNED_CONNECTIONS });
    for (const other of others) process.kill(other, "SIGSTOP");
    try {
      const opening = Array.from(
        { length: PINNED_CONNECTIONS },
        async () => await get(gateway.port, "/healthz", { agent }),
      );
      await Promise.all(opening);
    } finally {
      for (const other of others) process.kill(other, "SIGCONT");
    }
    agents.push(agent);
  }
  return agents;
}
