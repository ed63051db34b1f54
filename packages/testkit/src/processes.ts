import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defaultTimeoutMs, withTimeout } from "./waiting.ts";

/** For {@link spawnProcess}; `env` is added to this process's. */
export interface SpawnOptions {
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  /** Written to standard input, which is then closed; without it standard input is empty. */
  input?: string | Uint8Array;
}

/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A running child. `await using` stops it. */
export interface SpawnedProcess {
  readonly pid: number;
  /** Resolves when it has ended and its output is complete. */
  readonly exited: Promise<Exit>;
  stdout(): string;
  stderr(): string;
  /** Waits until either output matches; rejects when the process ends first, or after `timeoutMs`. */
  waitForOutput(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  /**
   * Sends `signal` (SIGTERM); when it, or a program it left behind, is still there after `graceMs` (5 s), all of them
   * get SIGKILL.
   */
  stop(signal?: NodeJS.Signals, graceMs?: number): Promise<Exit>;
  [Symbol.asyncDispose](): Promise<void>;
}

const running = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of running) killWithDescendants(child);
});

// Signals are not passed on to the groups of the children, and one that ends us would leave them running.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

/** Every child leads a process group, so that a program which outlived the child that started it is ended too. */
const LEADS_GROUP = process.platform !== "win32";

function killWithDescendants(child: ChildProcess): void {
  if (!LEADS_GROUP || child.pid === undefined) {
    child.kill("SIGKILL");
    return;
  }
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Starts a program without a shell. Rejects when it cannot be started. It never outlives this process. */
export async function spawnProcess(
  command: string,
  args: readonly string[] = [],
  options: SpawnOptions = {},
): Promise<SpawnedProcess> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
    detached: LEADS_GROUP,
    windowsHide: true,
  });
  const output = { stdout: "", stderr: "" };
  const watchers = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
      for (const watcher of watchers) watcher();
    });
  }
  const exited = exitOf(child, output);
  const pid = await startOf(child);
  // A child that ends without reading makes the pipe fail; that is its right.
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.input);
  const waitForOutput: SpawnedProcess["waitForOutput"] = async (pattern, timeoutMs = defaultTimeoutMs) => {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const watcher = (): void => {
      const match = search(pattern, output.stdout) ?? search(pattern, output.stderr);
      if (match !== null) resolve(match);
    };
    const describe = (): string => `no output matching ${pattern}:\n${output.stdout}${output.stderr}\n`;
    watchers.add(watcher);
    watcher();
    void exited.then(({ code, signal }) =>
      reject(new Error(`${command} ended (${code ?? signal}) with ${describe()}`)),
    );
    return await withTimeout(promise, timeoutMs, describe).finally(() => watchers.delete(watcher));
  };
  const stop: SpawnedProcess["stop"] = async (signal = "SIGTERM", graceMs = 5000) => {
    child.kill(signal);
    const timer = setTimeout(() => killWithDescendants(child), graceMs);
    return await exited.finally(() => clearTimeout(timer));
  };
  return {
    pid,
    exited,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    waitForOutput,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

/** Ignores `lastIndex`, which a pattern with the flag g or y would carry from one look to the next. */
function search(pattern: RegExp, text: string): RegExpExecArray | null {
  pattern.lastIndex = 0;
  return pattern.exec(text);
}

async function startOf(child: ChildProcess): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  child.once("error", reject);
  child.once("spawn", () => resolve(child.pid ?? 0));
  const pid = await promise;
  child.off("error", reject);
  child.on("error", () => undefined);
  return pid;
}

async function exitOf(child: ChildProcess, output: { stdout: string; stderr: string }): Promise<Exit> {
  running.add(child);
  const { promise, resolve } = Promise.withResolvers<Exit>();
  child.once("close", (code, signal) => {
    running.delete(child);
    resolve({ code, signal, ...output });
  });
  return await promise;
}

/** Runs a program to its end; kills it and rejects after `timeoutMs` (10 s). */
export async function runProcess(
  command: string,
  args: readonly string[] = [],
  options: SpawnOptions & { timeoutMs?: number } = {},
): Promise<Exit> {
  await using child = await spawnProcess(command, args, options);
  const describe = (): string => `${command} did not end (${child.stdout()}${child.stderr()})`;
  return await withTimeout(child.exited, options.timeoutMs ?? defaultTimeoutMs, describe);
}

/** A program that tests compare against. Give `skip` to node:test and `path` to {@link spawnProcess}. */
export interface Peer {
  path: string;
  skip: string | false;
}

/**
 * Looks for a program on the PATH: the first of these names that is there. When none is, one line is printed and `skip`
 * says why; with `CI=true` it throws instead, so that no check silently disappears there.
 */
export function peer(...names: readonly [string, ...string[]]): Peer {
  for (const name of names) {
    const path = findOnPath(name);
    if (path !== undefined) return { path, skip: false };
  }
  const skip = names.length === 1 ? `${names[0]} is not installed` : `none of ${names.join(", ")} is installed`;
  if (process.env["CI"] === "true") throw new Error(`${skip}, and with CI=true nothing may be skipped`);
  process.stdout.write(`# skipping: ${skip}\n`);
  return { path: "", skip };
}

function findOnPath(name: string): string | undefined {
  const endings = process.platform === "win32" ? (process.env["PATHEXT"] ?? ".EXE").split(";") : [""];
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const ending of endings) {
      const path = join(folder, name + ending);
      if (folder !== "" && isProgram(path)) return path;
    }
  }
  return undefined;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** A directory that `remove` (or `await using`) deletes with everything in it. */
export interface TemporaryDirectory {
  readonly path: string;
  /** A path inside it; nothing is created. */
  file(...segments: string[]): string;
  remove(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Makes an empty directory of its own below the system's place for such. */
export async function temporaryDirectory(): Promise<TemporaryDirectory> {
  const path = await mkdtemp(join(tmpdir(), "headworks-"));
  // Windows refuses to delete files whose last handle was closed only a moment ago.
  const remove = async (): Promise<void> =>
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  return { path, file: (...segments) => join(path, ...segments), remove, [Symbol.asyncDispose]: remove };
}

/** Systems count processor time in steps of some milliseconds. */
const MIN_MEASURED_MS = 60;

/**
 * Milliseconds of processor time that this thread needs for `work`, averaged over as many runs as it takes to tell.
 * Unlike time by the clock it does not grow when other processes have the processor, so that a test may compare how
 * costs grow.
 */
export function processorMs(work: () => void): number {
  const before = process.threadCpuUsage();
  for (let runs = 1; ; runs += 1) {
    work();
    const { user, system } = process.threadCpuUsage(before);
    const soFarMs = (user + system) / 1000;
    if (soFarMs >= MIN_MEASURED_MS) return soFarMs / runs;
  }
}

const MAX_ROUNDS = 10;

const NEXT_TO_NOTHING_BYTES = 10_000;

/**
 * Bytes by which the old objects of this thread grew through `rounds` of work, with a collection of the young ones after
 * each. What is used for a moment only must not get there: it would stay until a full collection.
 */
export function oldSpaceGrowthBytes(rounds: number, work: () => void): number {
  const collect = collector();
  // What lasts gets old now.
  work();
  collect();
  const before = oldSpaceBytes();
  for (let round = 0; round < rounds; round += 1) {
    work();
    collect({ type: "minor" });
  }
  return oldSpaceBytes() - before;
}

/**
 * Bytes by which all objects of this thread grew through `work`, without what is not needed any more. What ended just
 * before may be held until its turns are over, and would count against what grows.
 */
export async function heapGrowthBytes(work: () => void | Promise<void>): Promise<number> {
  const collect = collector();
  await settled(collect);
  const before = process.memoryUsage().heapUsed;
  await work();
  await settled(collect);
  return process.memoryUsage().heapUsed - before;
}

/** Collects until that frees next to nothing; with turns between, in which closed sockets and finished timers are let go. */
async function settled(collect: () => void): Promise<void> {
  for (let round = 0, used = Infinity; round < MAX_ROUNDS; round += 1) {
    collect();
    const left = process.memoryUsage().heapUsed;
    if (used - left < NEXT_TO_NOTHING_BYTES) return;
    used = left;
    await setImmediate();
  }
}

function collector(): (options?: { readonly type: "minor" }) => void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;
  setFlagsFromString("--no-expose-gc");
  return collect;
}

function oldSpaceBytes(): number {
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === "old_space");
  if (space === undefined) throw new Error("This V8 has no old space");
  return space.space_used_size;
}
