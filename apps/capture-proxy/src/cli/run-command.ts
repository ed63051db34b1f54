import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants as fileConstants, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { constants, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import {
  captureOperations,
  type CaptureSession,
  type CaptureStatus,
  certOperations,
  type DetailedHealth,
  exportOperations,
  type Metrics,
  metricsOperations,
  type Run,
  runsOperations,
  sessionsOperations,
  type TrafficEntry,
  trafficOperations,
  type TrafficSummary,
} from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { verbosity } from "#logging/log-level.ts";
import type { Flags } from "#settings/setting-sources.ts";
import { apiAddress, type ApiAddress, callApi, callJson, readText, serviceHealth, shownUrl } from "./api-connection.ts";
import { clientEnvironment, writeTrustFiles } from "./client-environment.ts";
import type { GlobalFlags } from "./global-options.ts";
import { CommandFailure, EXIT, type Invocation } from "./invocation.ts";
import { sizeText } from "./table.ts";
import { present } from "./present.ts";
import { addSettingOptions, settingFlags, type StartedProxy, startProxy } from "./serve.ts";
import { visibleText } from "./terminal.ts";
import { saveResponse } from "./transfer.ts";

/** Rows of the table of `--summary`. */
const SHOWN_ROWS = 1000;

/** The options of `weir run`. */
interface RunOptions extends Omit<GlobalFlags, "json"> {
  readonly dataDir?: string;
  readonly isolated?: boolean;
  readonly session?: string;
  readonly har?: string;
  readonly summary?: boolean;
  readonly direct?: string;
}

/** Shown below the options of `weir run --help`. */
const RUN_HELP = `
Environment variables make curl, wget, git, Node, Python, Ruby, Go, Rust, Java, Deno and others use the proxy and trust
its CA, in addition to the CAs that they already trust. Standard streams and exit code are those of the program.
With any setting of "weir serve" as a flag, the run gets its own proxy with that setting.

Examples:
  weir run -- curl https://example.com
  weir run --summary -- npm test
  weir run --har calls.har -- python3 script.py
  weir run --session "login flow" -- ./app

Exit codes: the program's; 128 + n if signal n ended it or the run; 127 not found, 126 cannot be run; 1 the capture or
the HAR file failed, 2 wrong usage, 3 address in use, 4 the capture cannot start.
`;

/** Adds the flags of `weir run`. */
export function addRunOptions(command: Command): void {
  command
    .argument("<command>", "The program to run")
    .argument("[arguments...]", "Its arguments")
    .passThroughOptions()
    .option(
      "--api-url <url>",
      "URL of the service to capture with, if it is running (default http://127.0.0.1:3001; env WEIR_API_URL)",
    )
    .option("--timeout <seconds>", "Seconds to wait for a response of that service (default 30; env WEIR_TIMEOUT)")
    .option("--isolated", "Start a separate proxy for this run, even if a service is running")
    .option("--data-dir <path>", "Directory for the captured traffic; implies --isolated")
    .option("--session <name>", "Name of the session for the captured traffic")
    .option("--har <file>", "Write the captured traffic as HAR")
    .option("--summary", "Print a table of the exchanges on standard error at the end")
    .option("--direct <hosts>", "Comma list of hosts that bypass the proxy")
    .addHelpText("after", RUN_HELP);
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

/** Checked before the program runs, not after an hour of it. */
function refuseUnwritable(path: string): void {
  try {
    accessSync(dirname(resolve(path)), fileConstants.W_OK);
  } catch (error) {
    throw new CommandFailure(EXIT.failure, `Cannot write ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** Also reported early: with capture off nothing is recorded. */
async function sayWhatIsNotRecorded({ address }: Capture, { stderr }: Invocation, signal: AbortSignal): Promise<void> {
  const { value } = await callJson(address, captureOperations.getCapture, { signal });
  if ((value as CaptureStatus).mode !== "passthrough") return;
  stderr.write(
    `weir: Capture is off, so the program's traffic is not recorded; switch it on with \`weir capture enable --api-url ${shownUrl(address)}\`\n`,
  );
}

/** A failed report does not change the program's exit code; the error goes to standard error. */
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
    // Ending the run calls the same service, and reports that it is unreachable.
    if (!(error instanceof ApiFailure && error.code === "UNREACHABLE")) reportError(invocation, error);
  }
}

/** Ends the capture; as in {@link report}, an error does not change the exit code. */
async function end(capture: Capture, invocation: Invocation): Promise<void> {
  try {
    await capture.end();
  } catch (error) {
    reportError(invocation, error);
  }
}

function reportError({ stderr }: Invocation, error: unknown): void {
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
    resolve(code ?? EXIT.signalBase + (signal === null ? 0 : constants.signals[signal]));
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

/** Writes the requested reports of a run; on a terminal, also a line with totals and location. */
async function reportRun(
  capture: Capture,
  options: RunOptions,
  invocation: Invocation,
  signal: AbortSignal,
): Promise<void> {
  const { stderr } = invocation;
  const isAsked = options.har !== undefined || options.summary === true;
  if (!isAsked && !stderr.isTty) return;
  if (!capture.hasOwnSession) {
    stderr.write(`${stderr.style("dim", `weir: captured${locationText(capture, options)}`)}\n`);
    return;
  }
  await capture.settle(signal);
  const query = { session_id: capture.sessionId };
  if (options.har !== undefined) {
    await saveResponse(
      await callApi(capture.address, exportOperations.exportHar, { query, signal }),
      options.har,
      invocation,
    );
  }
  const summary = (await callJson(capture.address, trafficOperations.summarizeTraffic, { query, signal }))
    .value as TrafficSummary;
  if (options.summary === true) {
    const { value } = await callJson(capture.address, trafficOperations.listTraffic, {
      query: { ...query, limit: SHOWN_ROWS },
      signal,
    });
    stderr.write(present((value as TrafficEntry[]).toReversed(), "TrafficEntry", stderr));
  }
  stderr.write(stderr.style("dim", `${totals(summary)}${locationText(capture, options)}`) + "\n");
}

function totals({ total, errors, request_bytes: sent, response_bytes: received }: TrafficSummary): string {
  const count = total === 1 ? "1 exchange" : `${total} exchanges`;
  const failures = errors === 0 ? "" : `, ${errors} with errors`;
  return `weir: ${count}${failures}, ${sizeText(sent)} sent, ${sizeText(received)} received`;
}

function locationText(capture: Capture, options: RunOptions): string {
  if (!capture.isOwn) {
    return `; session ${visibleText(capture.sessionName ?? capture.sessionId)} at ${shownUrl(capture.address)}`;
  }
  if (options.har !== undefined) return `; written to ${visibleText(options.har)}`;
  if (capture.isKept) return `; kept in ${visibleText(options.dataDir ?? "")}`;
  return options.summary === true ? "" : "; not kept (see --har, --summary, --data-dir, or start `weir serve`)";
}

/** The service forgets a run that is silent for 15 minutes. */
const RENEW_MS = 60_000;
const CONNECT_MS = 3000;

/** A proxy to send a program's traffic through, and the session that holds what it captures. */
interface Capture {
  readonly address: ApiAddress;
  readonly proxyUrl: string;
  /** The CA that signs for origins; undefined when interception is off, so that nothing needs to be trusted. */
  readonly caPem: string | undefined;
  readonly sessionId: string;
  readonly sessionName: string | null;
  /** The session holds this run and nothing else. */
  readonly hasOwnSession: boolean;
  /** A proxy for this run alone; nothing else goes through it. */
  readonly isOwn: boolean;
  /** Captured traffic is kept after the run. */
  readonly isKept: boolean;
  /** Resolves when the traffic of the run is stored, as far as is known. */
  settle(signal: AbortSignal): Promise<void>;
  /** Stops an own proxy, or ends the run in a shared one. */
  end(): Promise<void>;
}

/** How long to wait for a service that may not be running. */
const PROBE_MS = 2000;

/** Connections of a program that has ended need no more than a moment. */
const STOP_MS = 1000;

/**
 * The running service with a session of its own for this run, or a proxy started for it. `signal` cuts short what only
 * asks; a change that was begun is brought to its end, so that `end` can take it back.
 */
async function findCapture(
  invocation: Invocation,
  options: RunOptions,
  flags: Flags,
  program: string,
  signal: AbortSignal,
): Promise<Capture> {
  const isAlone = options.isolated === true || options.dataDir !== undefined || Object.keys(flags).length > 0;
  if (!isAlone) {
    const address = apiAddress(options, invocation.environment);
    const health = await serviceHealth(address, PROBE_MS, signal);
    if (health !== undefined) return await sharedCapture(address, health, sessionName(options, program), signal);
  }
  return await ownCapture(invocation, options, flags);
}

/**
 * The name of a separate session, if requested or needed for a report of this run only. Otherwise the traffic goes into
 * the active session, where people look.
 */
function sessionName(options: RunOptions, program: string): string | undefined {
  if (options.session !== undefined) return options.session;
  if (options.har === undefined && options.summary !== true) return undefined;
  return `weir run ${basename(program)} ${new Date().toISOString().slice(0, 19).replace("T", " ")}`;
}

async function sharedCapture(
  address: ApiAddress,
  health: DetailedHealth,
  name: string | undefined,
  signal: AbortSignal,
): Promise<Capture> {
  try {
    const caPem = await authorityInUse(address, signal);
    const shared = { address, caPem, isOwn: false, isKept: true };
    if (name !== undefined) {
      signal.throwIfAborted();
      const { end, ...own } = await beginRunSession(address, name);
      return { ...shared, ...own, hasOwnSession: true, settle: end, end };
    }
    const session = await currentSession(address, signal);
    return {
      ...shared,
      proxyUrl: reachable(health.proxy_address, address.baseUrl),
      sessionId: session?.id ?? "",
      sessionName: session?.name ?? null,
      hasOwnSession: false,
      settle: async () => await Promise.resolve(),
      end: async () => await Promise.resolve(),
    };
  } catch (error) {
    if (error instanceof ApiFailure) {
      throw new CommandFailure(EXIT.failure, `The Weir at ${shownUrl(address)} cannot be used: ${error.message}`, {
        cause: error,
      });
    }
    throw error;
  }
}

async function authorityInUse(address: ApiAddress, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await readText(
      await callApi(address, certOperations.getCaCertificate, { query: { format: "pem" }, signal }),
    );
  } catch (error) {
    if (error instanceof ApiFailure && error.code === "NOT_FOUND") return undefined;
    throw error;
  }
}

async function ownCapture(invocation: Invocation, options: RunOptions, flags: Flags): Promise<Capture> {
  const isTemporary = options.dataDir === undefined;
  const dataDir =
    options.dataDir === undefined ? mkdtempSync(join(tmpdir(), "weir-run-data-")) : resolve(options.dataDir);
  let proxy: StartedProxy | undefined;
  const end = async (): Promise<void> => {
    try {
      await proxy?.stop(STOP_MS);
    } finally {
      if (isTemporary) rmSync(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    }
  };
  try {
    proxy = await startProxy(invocation, {
      dataDir,
      // Standard error belongs to the program, unless a log was requested.
      logTarget: isTemporary ? "stderr-only" : "stderr",
      verbosity: verbosity(invocation.environment, flags["verbose"] === true ? "debug" : "silent"),
      flags: { host: "127.0.0.1", "api-host": "127.0.0.1", "proxy-port": "0", "api-port": "0", ...flags },
    });
    const address = { baseUrl: proxy.addresses.api, timeoutMs: 30_000 };
    // A directory that is kept may hold former runs; this one gets a session of its own.
    const name = options.session ?? `weir run ${new Date().toISOString().slice(0, 19)}`;
    const session = isTemporary ? await currentSession(address) : await newSession(address, name);
    return {
      address,
      proxyUrl: proxy.addresses.proxy,
      caPem: readFileSync(proxy.certificatePath, "utf8"),
      sessionId: session?.id ?? "",
      sessionName: session?.name ?? null,
      hasOwnSession: true,
      isOwn: true,
      isKept: !isTemporary,
      settle: async (signal) => await settled(address, signal),
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Connections that a program left open may never end. */
const SETTLE_MS = 3000;
const POLL_MS = 20;

/** Waits until nothing is open in a proxy for one run alone, and nothing waits to be written. */
async function settled(address: ApiAddress, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + SETTLE_MS;
  while (performance.now() < deadlineMs) {
    const { value } = await callJson(address, metricsOperations.getPerformance, { signal });
    const { metrics, storage } = value as { metrics: Metrics; storage: { backlog_entries: number } };
    if (metrics.active_exchanges === 0 && metrics.active_tunnels === 0 && storage.backlog_entries === 0) return;
    await delay(POLL_MS, undefined, { signal });
  }
}

/** A run in a shared service: its own proxy port separates its traffic from all other. */
interface RunSession {
  readonly sessionId: string;
  readonly sessionName: string | null;
  readonly proxyUrl: string;
  /** Resolves when the traffic of the run is stored. */
  readonly end: (signal?: AbortSignal) => Promise<void>;
}

/** Opens a proxy and a session for one run. Throws {@link CommandFailure} when that proxy cannot be reached from here. */
async function beginRunSession(address: ApiAddress, name: string): Promise<RunSession> {
  const run = (await callJson(address, runsOperations.beginRun, { body: { name } })).value as Run;
  const params = { id: run.id };
  // What a stopped service misses, `end` finds out.
  const renewal = setInterval(
    () => void callJson(address, runsOperations.renewRun, { params }).catch(() => {}),
    RENEW_MS,
  );
  renewal.unref();
  let isEnded = false;
  const end = async (signal?: AbortSignal): Promise<void> => {
    if (isEnded) return;
    clearInterval(renewal);
    await callJson(address, runsOperations.endRun, signal === undefined ? { params } : { params, signal });
    isEnded = true;
  };
  const proxyUrl = reachable(run.proxy_url, address.baseUrl);
  const problem = await connectProblem(proxyUrl);
  if (problem !== undefined) {
    await end();
    throw new CommandFailure(
      EXIT.failure,
      `The Weir at ${shownUrl(address)} opened ${proxyUrl} for this run, which cannot be reached from here (${problem}): start this run with --isolated, or without --session, --har and --summary`,
    );
  }
  return { sessionId: run.session_id, sessionName: run.session_name, proxyUrl, end };
}

/** A listener on every address is reached where its API was reached. */
export function reachable(proxyAddress: string, apiUrl: string): string {
  const url = new URL(proxyAddress);
  if (url.hostname === "0.0.0.0" || url.hostname === "[::]") url.hostname = new URL(apiUrl).hostname;
  return url.origin;
}

/** Why no connection can be made; undefined when one can. */
async function connectProblem(proxyUrl: string): Promise<string | undefined> {
  const { hostname, port } = new URL(proxyUrl);
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
  socket.setTimeout(CONNECT_MS, () => resolve("it does not respond"));
  socket.once("connect", () => resolve(undefined));
  socket.once("error", (error) => resolve(error.message));
  const problem = await promise;
  socket.destroy();
  return problem;
}

/** Makes a session, and makes it active. */
async function newSession(address: ApiAddress, name: string): Promise<CaptureSession> {
  const { value } = await callJson(address, sessionsOperations.createSession, { body: { name } });
  const session = value as CaptureSession;
  await callJson(address, sessionsOperations.switchSession, { params: { id: session.id } });
  return session;
}

/** The active session. */
async function currentSession(address: ApiAddress, signal?: AbortSignal): Promise<CaptureSession | undefined> {
  return (await listSessions(address, signal)).find((session) => session.is_current);
}

async function listSessions(address: ApiAddress, signal?: AbortSignal): Promise<readonly CaptureSession[]> {
  const { value } = await callJson(address, sessionsOperations.listSessions, signal === undefined ? {} : { signal });
  return value as CaptureSession[];
}

const CAUGHT = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT"] as const;

/**
 * Catches signals from the first step of a run to its last. While the program runs they are the program's; before and
 * after it they end the run, which then takes away what it has made.
 */
class RunSignals {
  readonly #cut = new AbortController();
  /** A terminal sends its key presses to the program as well, which would get them twice. */
  readonly #byTerminal = new Set<NodeJS.Signals>(process.stdin.isTTY ? ["SIGINT", "SIGQUIT"] : []);
  #program: ChildProcess | undefined;
  #received: NodeJS.Signals | undefined;

  /** `held` returns signals received earlier, which end the run, and restores the default effect of signals. */
  constructor(held: () => readonly NodeJS.Signals[]) {
    for (const signal of CAUGHT) process.on(signal, this.#listener);
    for (const signal of held()) this.#listener(signal);
  }

  /** Aborted by the signal that ended the run. */
  get cut(): AbortSignal {
    return this.#cut.signal;
  }

  /** 128 + n when signal n ended the run, undefined when none did. */
  get exitCode(): number | undefined {
    return this.#received === undefined ? undefined : EXIT.signalBase + constants.signals[this.#received];
  }

  /** From now on signals are this program's, or, without one, the run's again. */
  passTo(program: ChildProcess | undefined): void {
    this.#program = program;
  }

  /** Signals have their usual effect again. */
  release(): void {
    for (const signal of CAUGHT) process.off(signal, this.#listener);
  }

  readonly #listener = (signal: NodeJS.Signals): void => {
    if (this.#program !== undefined) {
      if (!this.#byTerminal.has(signal)) this.#program.kill(signal);
    } else if (signal !== "SIGCONT") {
      this.#received ??= signal;
      this.#cut.abort();
    }
  };
}
