import { PassThrough, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { runProcess, spawnProcess, temporaryDirectory } from "@headworks/testkit";
import type { Exit, SpawnedProcess, SpawnOptions } from "@headworks/testkit";
import type { Invocation, Parts } from "#cli/invocation.ts";
import { runCommandLine } from "#cli/program.ts";
import { terminalOf } from "#cli/terminal.ts";
import type { Terminal } from "#cli/terminal.ts";

/** The entry of the command line. */
export const MAIN = fileURLToPath(new URL("../bin/weir.js", import.meta.url));
const CACHE = fileURLToPath(new URL("../../../node_modules/.cache/weir-tests", import.meta.url));

/** The environment of the test run must not reach the commands. */
const CLEAN: Record<string, string> = {
  ...Object.fromEntries(
    Object.keys(process.env)
      .filter((name) => /^(?:WEIR|SERVICE)_|_proxy$|^(?:RUST_LOG|NO_COLOR|FORCE_COLOR)$/i.test(name))
      .map((name) => [name, ""]),
  ),
  NODE_COMPILE_CACHE: CACHE,
};

/** Runs `weir …` as a process to its end. */
export async function weir(
  args: readonly string[],
  options: SpawnOptions & { timeoutMs?: number } = {},
): Promise<Exit> {
  return await runProcess(process.execPath, [MAIN, ...args], {
    timeoutMs: 30_000,
    ...options,
    env: cleanEnvironment(options.env),
  });
}

/** Starts `weir …` as a process. */
export async function startWeir(args: readonly string[], options: SpawnOptions = {}): Promise<SpawnedProcess> {
  return await spawnProcess(process.execPath, [MAIN, ...args], { ...options, env: cleanEnvironment(options.env) });
}

function cleanEnvironment(env: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return { ...CLEAN, ...env };
}

/** A running `weir serve` on ports of the system's choice with a directory of its own. */
export interface ServingWeir extends AsyncDisposable {
  readonly process: SpawnedProcess;
  readonly proxy: string;
  readonly api: string;
  readonly dataDir: string;
  readonly certificate: string;
}

/** Starts `weir serve --json` and waits for its addresses. */
export async function serveWeir(
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<ServingWeir> {
  const directory = await temporaryDirectory();
  const child = await startWeir(["serve", "--json", "-p", "0", "-a", "0", "--data-dir", directory.path, ...args], {
    env,
  });
  const [line] = await child.waitForOutput(/^\{"proxy".*\}$/m, 30_000);
  const facts = JSON.parse(line) as { proxy: string; api: string; certificate: string };
  return {
    process: child,
    ...facts,
    dataDir: directory.path,
    [Symbol.asyncDispose]: async () => {
      await child.stop();
      await directory.remove();
    },
  };
}

/** What a command wrote and how it ended. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandSetting {
  readonly environment?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly parts?: Partial<Parts>;
  /** Pretends that a person looks, in a window of this width. */
  readonly columns?: number;
}

/** Runs a command line in this process; `parts` that are not given must not be used. */
export async function runInside(args: readonly string[], setting: CommandSetting = {}): Promise<CommandResult> {
  const { invocation, out, err } = recordedInvocation(setting);
  const code = await runCommandLine(args, invocation);
  return { code, stdout: out.take(), stderr: err.take() };
}

/** An invocation in this process, and what is written by it. */
export function recordedInvocation(setting: CommandSetting = {}): {
  readonly invocation: Invocation;
  readonly out: Recorder;
  readonly err: Recorder;
} {
  const environment = setting.environment ?? {};
  const out = recorder();
  const err = recorder();
  const unused = (): never => {
    throw new Error("this part is not expected to be used");
  };
  const stdin = new PassThrough();
  stdin.end(setting.input ?? "");
  const invocation: Invocation = {
    version: "0.0.0",
    environment,
    stdin: stdin as unknown as NodeJS.ReadStream,
    stdout: out.terminal(environment, setting.columns),
    stderr: err.terminal(environment, setting.columns),
    parts: {
      createLogger: unused,
      checkDatabase: unused,
      openAuthority: unused,
      openSocket: unused,
      startWriter: unused,
      ...setting.parts,
    },
    outputGone: new AbortController().signal,
    heldSignals: () => [],
    exitNow: unused,
  };
  return { invocation, out, err };
}

/** A stream that keeps what is written to it. */
interface Recorder {
  /** What was written since it was last asked for. */
  readonly take: () => string;
  readonly terminal: (environment: Readonly<Record<string, string>>, columns: number | undefined) => Terminal;
}

function recorder(): Recorder {
  let text = "";
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString("utf8");
      done();
    },
  });
  const facts = (columns: number | undefined): object => (columns === undefined ? {} : { isTTY: true, columns });
  return {
    take: () => {
      const taken = text;
      text = "";
      return taken;
    },
    terminal: (environment, columns) => terminalOf(Object.assign(stream, facts(columns)), environment),
  };
}

/** A terminal of a width that records, for what renders without a command. */
export function window(columns: number): Terminal {
  return terminalOf(Object.assign(new Writable(), { isTTY: true, columns }), { NO_COLOR: "1" });
}
