import { spawnSync, spawn, type ChildProcess } from "node:child_process";
import { availableParallelism } from "node:os";

/** A program with its arguments. */
export interface CommandLine {
  readonly command: string;
  readonly args: readonly string[];
}

/** Core 1 is for the proxy under test; everything else of the benchmark runs on core 0. */
export const CORES = { proxy: 1, rest: 0 } as const;

export const canPin =
  process.platform === "linux" &&
  availableParallelism() >= 2 &&
  spawnSync("taskset", ["-c", "0", "true"], { stdio: "ignore" }).status === 0;

/** The command pinned to one core, if the system supports it. */
export function pinned(core: number, { command, args }: CommandLine): CommandLine {
  return canPin ? { command: "taskset", args: ["-c", String(core), command, ...args] } : { command, args };
}

/** Pins this process. */
export function pinOwnProcess(core: number): void {
  if (canPin) spawnSync("taskset", ["-cp", String(core), String(process.pid)], { stdio: "ignore" });
}

/** A part of the benchmark in a process of its own, with an IPC channel. It ends when the channel closes. */
export class Companion {
  readonly #child: ChildProcess;

  constructor(script: string, args: readonly string[] = []) {
    const { command, args: all } = pinned(CORES.rest, { command: process.execPath, args: [script, ...args] });
    this.#child = spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  }

  /** The next message; rejects if the process ends first. */
  message<T>(): Promise<T> {
    const child = this.#child;
    return new Promise<T>((resolve, reject) => {
      const onExit = (): void => {
        child.off("message", onMessage);
        reject(new Error(`${child.spawnfile} ${child.spawnargs.join(" ")} ended`));
      };
      const onMessage = (message: unknown): void => {
        child.off("exit", onExit);
        resolve(message as T);
      };
      child.once("exit", onExit);
      child.once("message", onMessage);
    });
  }

  send(message: object): void {
    this.#child.send(message);
  }

  stop(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}
