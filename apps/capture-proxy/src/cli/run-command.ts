import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { constants as systemConstants } from "node:os";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import { addSettingOptions, settingFlags } from "./serve-options.ts";
import { clientEnvironment } from "./client-environment.ts";
import type { Invocation } from "./invocation.ts";
import { findCapture } from "./run-capture.ts";
import type { Capture } from "./run-capture.ts";
import { reportRun } from "./run-report.ts";
import { writeTrustFiles } from "./trust-files.ts";

// Tested by ../../test/cli-run.test.ts

/** What `weir run` was asked for. */
export interface RunOptions {
  readonly apiUrl?: string;
  readonly timeout?: string;
  readonly dataDir?: string;
  readonly isolated?: boolean;
  readonly session?: string;
  readonly har?: string;
  readonly summary?: boolean;
  readonly direct?: string;
}

/** Adds the flags of `weir run`. */
export function addRunOptions(command: Command): void {
  command
    .argument("<command>", "The program to run")
    .argument("[arguments...]", "Its arguments")
    .passThroughOptions()
    .option(
      "--api-url <url>",
      "The service to capture with, if it runs (default http://127.0.0.1:3001; env WEIR_API_URL)",
    )
    .option("--timeout <seconds>", "How long to wait for that service (default 30; env WEIR_TIMEOUT)")
    .option("--isolated", "Start a proxy for this run alone even if one is running")
    .option("--data-dir <path>", "Keep what the proxy of this run captures in this directory; implies --isolated")
    .option("--session <name>", "Name of the session that holds what this run captured")
    .option("--har <file>", "Write what this run captured as HAR")
    .option("--summary", "Print a table of the exchanges on standard error at the end")
    .option("--direct <hosts>", "Comma list of hosts that are reached without the proxy");
  addSettingOptions(command);
  for (const option of command.options) if (!SHOWN.has(option.long ?? "")) option.hidden = true;
}

const SHOWN = new Set([
  "--api-url",
  "--timeout",
  "--isolated",
  "--data-dir",
  "--session",
  "--har",
  "--summary",
  "--direct",
  "--upstream-ca",
  "--upstream-insecure",
]);

/** `weir run`: captures what one program sends; resolves to the program's exit code. */
export async function run(invocation: Invocation, command: Command): Promise<number> {
  const options = command.opts<RunOptions>();
  const [program = "", ...programArguments] = command.args;
  if (options.har !== undefined) refuseUnwritable(options.har);
  const capture = await findCapture(invocation, options, settingFlags(command), program);
  const trust = writeTrustFiles(capture.caPem, invocation.environment);
  try {
    const environment = clientEnvironment(invocation.environment, {
      ...trust,
      proxyUrl: capture.proxyUrl,
      apiUrl: capture.address.baseUrl,
      noProxy: options.direct ?? "",
    });
    const code = await runProgram(program, programArguments, environment);
    await finish(capture, options, invocation);
    return code;
  } finally {
    trust.remove();
    await capture.end();
  }
}

/** Said before the program runs, not after an hour of it. */
function refuseUnwritable(path: string): void {
  try {
    accessSync(dirname(resolve(path)), constants.W_OK);
  } catch (error) {
    throw new CommandFailure(EXIT.failure, `Cannot write ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** The program's own result is not lost because its record could not be written: the sentence goes to standard error. */
async function finish(capture: Capture, options: RunOptions, invocation: Invocation): Promise<void> {
  try {
    await reportRun(capture, options, invocation);
  } catch (error) {
    if (options.har !== undefined) throw error;
    invocation.stderr.write(`weir: ${(error as Error).message}\n`);
  }
}

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT"] as const;

/** Runs the program on our own standard streams; resolves to its exit code, 128 + n when signal n ended it. */
async function runProgram(
  program: string,
  programArguments: readonly string[],
  environment: Record<string, string | undefined>,
): Promise<number> {
  // Before the start: a signal that came right after it would end us and leave the program running.
  const signals = forwardSignals();
  try {
    const child = spawn(program, programArguments, { stdio: "inherit", env: environment, windowsHide: true });
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    child.once("error", (error: NodeJS.ErrnoException) => reject(startProblem(program, error)));
    child.once("exit", (code, signal) =>
      resolve(code ?? EXIT.signalBase + (signal === null ? 0 : systemConstants.signals[signal])),
    );
    signals.to(child);
    return await promise;
  } finally {
    signals.stop();
  }
}

function startProblem(program: string, error: NodeJS.ErrnoException): CommandFailure {
  if (error.code === "ENOENT") {
    return new CommandFailure(EXIT.commandNotFound, `There is no program ${JSON.stringify(program)}`, { cause: error });
  }
  return new CommandFailure(EXIT.notExecutable, `${JSON.stringify(program)} cannot be run: ${error.message}`, {
    cause: error,
  });
}

/** Catches signals from now on; those go to the child once there is one (handlers run only between our own steps). */
function forwardSignals(): { to: (child: ChildProcess) => void; stop: () => void } {
  // A terminal sends its key presses to the program as well, which would get them twice.
  const byTerminal = new Set<NodeJS.Signals>(process.stdin.isTTY ? ["SIGINT", "SIGQUIT"] : []);
  let target: ChildProcess | undefined;
  const listener = (signal: NodeJS.Signals): void => {
    if (!byTerminal.has(signal)) target?.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, listener);
  return {
    to: (child) => {
      target = child;
    },
    stop: () => {
      for (const signal of FORWARDED) process.off(signal, listener);
    },
  };
}
