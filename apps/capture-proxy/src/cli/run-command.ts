import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { constants as systemConstants } from "node:os";
import { dirname, resolve } from "node:path";
import { captureOperations } from "@headworks/capture-contract";
import type { CaptureStatus } from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import type { Command } from "commander";
import { callJson, shownUrl } from "./api-connection.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import { addSettingOptions, settingFlags } from "./serve-options.ts";
import { clientEnvironment } from "./client-environment.ts";
import type { Invocation } from "./invocation.ts";
import { findCapture } from "./run-capture.ts";
import type { Capture } from "./run-capture.ts";
import { reportRun } from "./run-report.ts";
import { RunSignals } from "./run-signals.ts";
import { visibleText } from "./terminal.ts";
import { writeTrustFiles } from "./trust-files.ts";

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

/** `weir run`: captures what one program sends; resolves to the program's exit code, or 128 + n when signal n cut it short. */
export async function run(invocation: Invocation, command: Command): Promise<number> {
  const signals = new RunSignals(invocation.heldSignals);
  try {
    const code = await captured(invocation, command, signals);
    return signals.exitCode ?? code;
  } catch (error) {
    // What fails after such a signal fails because of it.
    if (signals.exitCode !== undefined) return signals.exitCode;
    throw error;
  } finally {
    signals.release();
  }
}

async function captured(invocation: Invocation, command: Command, signals: RunSignals): Promise<number> {
  const options = command.optsWithGlobals<RunOptions>();
  const [program = "", ...programArguments] = command.args;
  if (options.har !== undefined) refuseUnwritable(options.har);
  const capture = await findCapture(invocation, options, settingFlags(command), program, signals.cut);
  try {
    await sayWhatIsNotRecorded(capture, invocation, signals.cut);
    signals.cut.throwIfAborted();
    const trust = capture.caPem === undefined ? undefined : writeTrustFiles(capture.caPem, invocation.environment);
    try {
      const environment = clientEnvironment(invocation.environment, {
        trust,
        proxyUrl: capture.proxyUrl,
        apiUrl: capture.address.baseUrl,
        noProxy: options.direct ?? "",
      });
      const code = await runProgram(program, programArguments, environment, signals);
      await report(capture, options, invocation, signals.cut);
      return code;
    } finally {
      trust?.remove();
    }
  } finally {
    await end(capture, invocation);
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

/** As early: with capture off there will be nothing to report. */
async function sayWhatIsNotRecorded({ address }: Capture, { stderr }: Invocation, signal: AbortSignal): Promise<void> {
  const { value } = await callJson(address, captureOperations.getCapture, { signal });
  if ((value as CaptureStatus).mode !== "passthrough") return;
  stderr.write(
    `weir: Capture is off, so what the program sends is not recorded: \`weir capture enable --api-url ${shownUrl(address)}\` switches it on\n`,
  );
}

/** The program's own result is not lost because its record could not be written: the sentence goes to standard error. */
async function report(
  capture: Capture,
  options: RunOptions,
  invocation: Invocation,
  signal: AbortSignal,
): Promise<void> {
  try {
    await reportRun(capture, options, invocation, signal);
  } catch (error) {
    if (options.har !== undefined || signal.aborted) throw error;
    // What there is to take back is asked of the same service, which says it then.
    if (!(error instanceof ApiFailure && error.code === "UNREACHABLE")) complain(invocation, error);
  }
}

/** As {@link report}: a service that has gone meanwhile takes no exit code with it. */
async function end(capture: Capture, invocation: Invocation): Promise<void> {
  try {
    await capture.end();
  } catch (error) {
    complain(invocation, error);
  }
}

function complain({ stderr }: Invocation, error: unknown): void {
  stderr.write(`weir: ${visibleText((error as Error).message)}\n`);
}

/** Runs the program on our own standard streams; resolves to its exit code, 128 + n when signal n ended it. */
async function runProgram(
  program: string,
  programArguments: readonly string[],
  environment: Record<string, string | undefined>,
  signals: RunSignals,
): Promise<number> {
  const child = spawn(program, programArguments, { stdio: "inherit", env: environment, windowsHide: true });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  signals.passTo(child);
  child.once("error", (error: NodeJS.ErrnoException) => {
    signals.passTo(undefined);
    reject(startProblem(program, error));
  });
  child.once("exit", (code, signal) => {
    signals.passTo(undefined);
    resolve(code ?? EXIT.signalBase + (signal === null ? 0 : systemConstants.signals[signal]));
  });
  return await promise;
}

function startProblem(program: string, error: NodeJS.ErrnoException): CommandFailure {
  if (error.code === "ENOENT") {
    return new CommandFailure(EXIT.commandNotFound, `There is no program ${JSON.stringify(program)}`, { cause: error });
  }
  return new CommandFailure(EXIT.notExecutable, `${JSON.stringify(program)} cannot be run: ${error.message}`, {
    cause: error,
  });
}
