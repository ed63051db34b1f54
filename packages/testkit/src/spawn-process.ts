import { spawn, type ChildProcess } from "node:child_process";
import { defaultTimeoutMs, withTimeout } from "./timeout.ts";

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
