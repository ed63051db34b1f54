import { existsSync } from "node:fs";
import type { Issue } from "@headworks/gateway-contract";
import { hostPortText } from "@headworks/host-patterns";
import { exitCodeOf, followSignals } from "@headworks/process-signals";
import type { RunningGateway } from "#gateway.ts";
import { configFileOf, EXIT, type Invocation } from "./invocation.ts";

export interface ServeOptions {
  readonly config?: string;
  /** Prints the addresses as one JSON line instead of sentences. */
  readonly json?: boolean;
  /** Number of worker processes. */
  readonly workers?: number;
}

/** `sluice serve`: runs the gateway until stopped. Resolves to the exit code. */
export async function serve(options: ServeOptions, invocation: Invocation): Promise<number> {
  const { environment, stderr } = invocation;
  const configFile = configFileOf(options.config, environment);
  if (!existsSync(configFile)) {
    stderr.write(`sluice: There is no file ${configFile}; name one with --config\n`);
    return EXIT.failure;
  }
  // Takes half a second, so it is loaded after the file was found.
  const { createGateway, RejectedDocumentError } = await import("#gateway.ts");
  const level = logLevel(environment["GATEWAY_LOG"]);
  if (level === undefined) {
    const levels = "off, error, warn, info, debug or trace, alone or as gateway=debug";
    stderr.write(`sluice: GATEWAY_LOG must be ${levels}; it is ${JSON.stringify(environment["GATEWAY_LOG"])}\n`);
    return EXIT.failure;
  }
  const log = await invocation.createLogger(level);
  let reload = (): void => void (isReloadAsked = true);
  let isReloadAsked = false;
  const stop = stopRequests(invocation, () => reload());
  let gateway: RunningGateway;
  try {
    gateway = await createGateway({ configFile, environment, log, workers: options.workers ?? 1 });
  } catch (error) {
    if (error instanceof RejectedDocumentError) {
      for (const issue of error.issues) stderr.write(`${issueLine(configFile, issue)}\n`);
    }
    stderr.write(`sluice: ${(error as Error).message}\n`);
    return EXIT.failure;
  }
  reload = () => {
    gateway.reload(true).catch((error: unknown) => {
      log.error({ err: error, code: "reload_failed" }, "The configuration could not be read again");
    });
  };
  // The document may have been read before the change that caused the signal.
  if (isReloadAsked) reload();
  const isStarted = !stop.isRequested();
  stderr.write(options.json === true ? `${JSON.stringify(factsOf(gateway))}\n` : banner(gateway));
  const signal = await stop.requested;
  reload = () => undefined;
  // No load balancer knows a gateway whose start was cancelled, and Ctrl+C is interactive: skip the delay.
  if (isStarted && signal !== "SIGINT") {
    await stop.unlessStoppedAgain(async (hastened) => await gateway.withdraw(hastened));
  }
  await gateway.stop();
  return EXIT.ok;
}

interface StopRequests {
  readonly requested: Promise<NodeJS.Signals>;
  readonly isRequested: () => boolean;
  /** Runs a step that a second stop request shortens; outside of such a step it exits immediately. */
  readonly unlessStoppedAgain: (step: (hastened: AbortSignal) => Promise<void>) => Promise<void>;
}

/** `hangup` handles SIGHUP. */
function stopRequests(invocation: Invocation, hangup: () => void): StopRequests {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isRequested = false;
  let step: AbortController | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    if (step !== undefined) step.abort();
    else if (isRequested) invocation.exitNow(exitCodeOf(signal));
    isRequested = true;
    resolve(signal);
  };
  followSignals(invocation.heldSignals, { stop, hangup });
  return {
    requested: promise,
    isRequested: () => isRequested,
    unlessStoppedAgain: async (run) => {
      step = new AbortController();
      await run(step.signal);
      step = undefined;
    },
  };
}

/** `file:line:column: sentence [code]`, which editors and terminals turn into links. */
export function issueLine(file: string, issue: Issue): string {
  const position = issue.line === undefined ? file : `${file}:${issue.line}:${issue.column ?? 1}`;
  const where = issue.path === "" ? "" : ` (${issue.path})`;
  return `${position}: ${issue.severity}: ${issue.message}${where} [${issue.code}]`;
}

function factsOf(gateway: RunningGateway): object {
  const { current } = gateway.generations;
  return {
    generation: current?.number ?? 0,
    content_hash: current?.contentHash ?? 0,
    route_count: current?.routeList.length ?? 0,
    listeners: gateway.addresses,
    admin: gateway.adminUrl ?? null,
  };
}

function banner(gateway: RunningGateway): string {
  const lines = gateway.addresses.map(
    ({ name, address, port }) => `  ${name.padEnd(12)} ${hostPortText(address, port)}`,
  );
  if (gateway.adminUrl !== undefined) lines.push(`  ${"admin".padEnd(12)} ${gateway.adminUrl}`);
  const { current } = gateway.generations;
  const count = current?.routeList.length ?? 0;
  return `Sluice serves ${count} ${count === 1 ? "route" : "routes"}, generation ${current?.number ?? 0}\n${lines.join("\n")}\n`;
}

const LEVELS = new Set(["trace", "debug", "info", "warn", "error", "silent"]);

/** The level of directives such as `info` or `gateway=debug`; undefined for an invalid one. */
export function logLevel(directives: string | undefined): string | undefined {
  let level = "info";
  for (const directive of (directives ?? "").toLowerCase().split(",")) {
    const [target = "", value] = directive.trim().split("=");
    const written = value ?? target;
    if (written === "" && value === undefined) continue;
    const known = written === "off" ? "silent" : written === "warning" ? "warn" : written;
    if (!LEVELS.has(known)) return undefined;
    if (value === undefined || target.startsWith("gateway")) level = known;
  }
  return level;
}
