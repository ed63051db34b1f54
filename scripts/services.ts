import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { exitCodeOf, STOP_SIGNALS } from "@headworks/process-signals";

/** A process to run: a script under the Node of this process. */
export interface Service {
  readonly name: string;
  readonly nodeOptions?: readonly string[];
  /** Path of the entry file. */
  readonly entry: string;
  readonly args: readonly string[];
  /** Added to this process's environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Standard output is discarded; standard error is shown. */
  readonly isQuiet?: boolean;
  /** Printed on standard error once, after the service's first matching output there. */
  readonly announcement?: { readonly after: RegExp; readonly text: string };
}

/** The source of signals: the process, or a test double. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

/** One key press may arrive several times: from the terminal, and again from npm. */
const SAME_KEY_PRESS_MS = 500;

/**
 * Runs services side by side until all have ended, and resolves to the exit code of the first that ended. When one
 * ends, the others are terminated. An interrupt is forwarded once per key press; every other terminating signal, SIGHUP
 * included, is forwarded as SIGTERM.
 */
export async function runServices(services: readonly Service[], signals: SignalSource = process): Promise<number> {
  const children = services.map(startService);
  const stopForwarding = forwardSignals(signals, children);
  let first: number | undefined;
  try {
    await Promise.all(
      children.map(async (child) => {
        const code = await exitCode(child);
        first ??= code;
        for (const other of children) if (other !== child) send(other, "SIGTERM");
      }),
    );
  } finally {
    stopForwarding();
    for (const child of children) send(child, "SIGTERM");
  }
  return first ?? 0;
}

function startService({ nodeOptions = [], entry, args, environment, isQuiet, announcement }: Service): ChildProcess {
  // A process group of its own: Ctrl+C reaches this process only, which forwards it exactly once.
  const child = spawn(process.execPath, ["--disable-sigusr1", ...nodeOptions, entry, ...args], {
    stdio: ["ignore", isQuiet === true ? "ignore" : "inherit", announcement === undefined ? "inherit" : "pipe"],
    env: { ...process.env, ...environment },
    detached: true,
  });
  let awaited = announcement;
  child.stderr?.on("data", (said: Buffer) => {
    process.stderr.write(said);
    if (awaited?.after.test(said.toString()) !== true) return;
    process.stderr.write(awaited.text);
    awaited = undefined;
  });
  return child;
}

function forwardSignals(signals: SignalSource, children: readonly ChildProcess[]): () => void {
  let lastMs = Number.NEGATIVE_INFINITY;
  const listeners = ([...STOP_SIGNALS, "SIGHUP"] as const).map((signal) => {
    const listener = (): void => {
      const nowMs = performance.now();
      if (nowMs - lastMs < SAME_KEY_PRESS_MS) return;
      lastMs = nowMs;
      for (const child of children) send(child, signal === "SIGINT" ? signal : "SIGTERM");
    };
    signals.on(signal, listener);
    return { signal, listener };
  });
  return () => {
    for (const { signal, listener } of listeners) signals.off(signal, listener);
  };
}

function send(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
}

/** The exit code as a shell reports it. */
function exitCode(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    // Not "exit": output may follow it.
    child.once("close", (code, signal) => resolve(code ?? (signal === null ? 128 : exitCodeOf(signal))));
  });
}
