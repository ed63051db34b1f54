import { createServer } from "node:net";
import { homedir } from "node:os";
import type { Command } from "commander";
import {
  certOperations,
  configOperations,
  type DetailedHealth,
  type ProxyConfig,
  type Settings,
} from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { hostPortText } from "@headworks/host-patterns";
import { resolveDataDir } from "#settings/data-dir.ts";
import { type DataPlaces, resolveCertificateDirectory, resolveTrafficFile } from "#settings/data-places.ts";
import { loadSettings } from "#settings/load-settings.ts";
import { StartupError } from "#settings/startup-error.ts";
import { apiAddress, type ApiAddress, callJson, shownUrl } from "./api-connection.ts";
import { checkAuthority, checkAuthorityInUse, checkAuthorityTrust, checkServiceFiles } from "./doctor-authority.ts";
import { checkClock, checkDatabases, checkDataDirectory, checkNode, checkProxyVariables } from "./doctor-machine.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import { globalOptions } from "./global-options.ts";
import type { Invocation, Outcome } from "./invocation.ts";
import { serviceHealth } from "./service-health.ts";
import { type Terminal, visibleText } from "./terminal.ts";

/** The result of one check. Only `fail` makes the command fail; `warn` may be intended; `skip` means not checked. */
export interface Finding {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  readonly detail: string;
  /** What to do about it. */
  readonly advice?: string;
}

/** The files to check that may be outside the data directory. */
type ExaminedPlaces = Pick<DataPlaces, "trafficFile" | "certificateDirectory">;

/** The input of the checks. */
export interface CheckContext {
  readonly invocation: Invocation;
  readonly dataDir: string;
  readonly places: ExaminedPlaces;
  readonly settings: Settings | undefined;
  readonly address: ApiAddress;
  /** The service was specified; otherwise it is the one used by default. */
  readonly isServiceNamed: boolean;
  /** Health of the service at `address`; undefined when none responds. */
  readonly health: DetailedHealth | undefined;
  readonly nowMs: number;
}

type Check = (context: CheckContext) => Finding | readonly Finding[] | Promise<Finding | readonly Finding[]>;

const CHECKS: readonly (readonly [name: string, check: Check])[] = [
  ["Node.js", checkNode],
  ["Data directory", checkDataDirectory],
  ["Proxy port", (context) => checkPort(context, "proxy")],
  ["API port", (context) => checkPort(context, "api")],
  ["Service", checkService],
  ["CA", checkAuthority],
  ["Service", checkServiceFiles],
  ["CA", checkAuthorityInUse],
  ["System trust", checkAuthorityTrust],
  ["Clock", checkClock],
  ["Database", checkDatabases],
  ["Proxy variables", checkProxyVariables],
  ["Interception", checkInterception],
];

/** Adds the flags and the action of `weir doctor`. */
export function fillDoctor(command: Command, invocation: Invocation, outcome: Outcome): void {
  command
    .option("--data-dir <path>", "The data directory to check (env WEIR_DATA_DIR)")
    .option("-d, --db-path <file>", "Database of the traffic, if not in the data directory (env WEIR_DB_PATH)")
    .option("-c, --cert-path <directory>", "Directory of the CA, if not in the data directory (env WEIR_CERT_PATH)");
  for (const option of globalOptions("Print the findings as one line of JSON")) command.addOption(option);
  command.action(async () => {
    outcome.exitCode = await doctor(invocation, command.optsWithGlobals());
  });
}

interface DoctorOptions {
  readonly dataDir?: string;
  readonly dbPath?: string;
  readonly certPath?: string;
  readonly json?: boolean;
  readonly apiUrl?: string;
  readonly timeout?: string;
}

async function doctor(invocation: Invocation, options: DoctorOptions): Promise<number> {
  const { environment, stdout } = invocation;
  const address = apiAddress(options, environment);
  const dataDir = resolveDataDir({
    flag: options.dataDir,
    environment,
    platform: process.platform,
    homeDir: homedir(),
  });
  const { settings, finding } = readSettings(dataDir, environment);
  const context: CheckContext = {
    invocation,
    dataDir,
    places: placesOf(options, environment, dataDir),
    settings,
    address,
    isServiceNamed: (options.apiUrl ?? environment["WEIR_API_URL"] ?? environment["SERVICE_API_URL"] ?? "") !== "",
    health: await serviceHealth(address, PROBE_MS),
    nowMs: Date.now(),
  };
  const findings: Finding[] = [];
  const report = (found: Finding): void => {
    findings.push(found);
    if (options.json !== true) stdout.write(findingLine(found, stdout));
  };
  report(finding);
  for (const [name, check] of CHECKS) {
    for (const found of await examined(name, check, context)) report(found);
  }
  const isWell = findings.every(({ status }) => status !== "fail");
  if (options.json === true) {
    stdout.write(
      `${JSON.stringify({ ok: isWell, data_dir: dataDir, api_url: shownUrl(address), checks: findings })}\n`,
    );
  }
  return isWell ? EXIT.ok : EXIT.failure;
}

/** Throws {@link CommandFailure} for an invalid location. */
function placesOf(flags: DoctorOptions, environment: Invocation["environment"], dataDir: string): ExaminedPlaces {
  const sources = { flags, environment, dataDir };
  try {
    return {
      trafficFile: resolveTrafficFile(sources),
      certificateDirectory: resolveCertificateDirectory(sources),
    };
  } catch (error) {
    throw new CommandFailure(EXIT.usage, (error as Error).message, { cause: error });
  }
}

/** A check that throws is a finding too; the others still run. */
async function examined(name: string, check: Check, context: CheckContext): Promise<readonly Finding[]> {
  try {
    const found = await check(context);
    return Array.isArray(found) ? (found as readonly Finding[]) : [found as Finding];
  } catch (error) {
    return [{ name, status: "fail", detail: `could not be checked: ${(error as Error).message}` }];
  }
}

function readSettings(
  dataDir: string,
  environment: Invocation["environment"],
): { settings: Settings | undefined; finding: Finding } {
  const warnings: string[] = [];
  const log = {
    warn: (facts: object, message: string) => void warnings.push(`${message}: ${JSON.stringify(facts)}`),
    error: () => undefined,
  };
  try {
    const settings = loadSettings({ dataDir, environment, flags: {}, log }).configured;
    const [warning] = warnings;
    if (warning !== undefined) return { settings, finding: { name: "Settings", status: "warn", detail: warning } };
    return { settings, finding: { name: "Settings", status: "ok", detail: "all values are valid" } };
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    return {
      settings: undefined,
      finding: {
        name: "Settings",
        status: "fail",
        detail: error.message,
        advice: "correct the value; the service does not start with it",
      },
    };
  }
}

/** Short: a healthy local service responds at once. */
const PROBE_MS = 3000;

function checkService({ health, address }: CheckContext): Finding {
  const name = "Service";
  if (!health) {
    return {
      name,
      status: "skip",
      detail: `no Weir is running at ${shownUrl(address)}`,
      advice: "start it with `weir serve`, or specify another address with --api-url",
    };
  }
  const sick = Object.entries(health.dependencies).filter(
    ([, state]) => !["ok", "healthy", "up"].includes(state.toLowerCase()),
  );
  if (!health.healthy) {
    return {
      name,
      status: "fail",
      detail: `reports problems: ${sick.map(([part, state]) => `${part} ${state}`).join(", ")}`,
    };
  }
  return {
    name,
    status: "ok",
    detail: `${health.version} is running at ${shownUrl(address)}, up for ${health.uptime_secs} s`,
  };
}

const MARKS = { ok: ["✓", "green"], warn: ["!", "yellow"], fail: ["✗", "red"], skip: ["–", "dim"] } as const;

function findingLine({ name, status, detail, advice }: Finding, terminal: Terminal): string {
  const [mark, style] = MARKS[status];
  const text = `${terminal.style(style, mark)} ${terminal.style("bold", name)}: ${visibleText(detail)}\n`;
  return advice === undefined ? text : `${text}    ${visibleText(advice)}\n`;
}

/** Whether a port is free or used by the service itself. For a specified service, its own ports are reported. */
async function checkPort(
  { settings, health, address, isServiceNamed }: CheckContext,
  which: "proxy" | "api",
): Promise<Finding> {
  const name = which === "proxy" ? "Proxy port" : "API port";
  if (health !== undefined && isServiceNamed) {
    const { host } = new URL(which === "proxy" ? health.proxy_address : health.api_address);
    return { name, status: "ok", detail: `${host} is used by the Weir at ${shownUrl(address)}` };
  }
  if (!settings) return { name, status: "skip", detail: "the settings cannot be read" };
  const [port, host] =
    which === "proxy" ? [settings.proxy_port, settings.host] : [settings.api_port, settings.api_host];
  if (port === 0) return { name, status: "ok", detail: "a free port is selected" };
  const code = await listenProblem(port, host);
  if (code === undefined) return { name, status: "ok", detail: `${port} is free` };
  const own = health && new URL(which === "proxy" ? health.proxy_address : health.api_address);
  if (code === "EADDRINUSE" && own && Number(own.port || 80) === port) {
    return { name, status: "ok", detail: `${port} is used by the running Weir` };
  }
  const flag = which === "proxy" ? "--proxy-port" : "--api-port";
  if (code === "EADDRINUSE") {
    return {
      name,
      status: "fail",
      detail: `${port} on ${host} is used by another program`,
      advice: `stop it, or choose another port with ${flag}`,
    };
  }
  return {
    name,
    status: "fail",
    detail: `${hostPortText(host, port)} cannot be used (${code})`,
    advice: `choose another address with ${flag} or --host`,
  };
}

async function listenProblem(port: number, host: string): Promise<string | undefined> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  server.listen(port, host, () => server.close(() => resolve(undefined)));
  return await promise;
}

/** Tests one HTTPS request through the running proxy. Interception may be off on purpose. */
async function checkInterception({ health, address }: CheckContext): Promise<Finding> {
  const name = "Interception";
  if (!health) return { name, status: "skip", detail: "the service is not running" };
  try {
    const config = (await callJson(address, configOperations.getConfig, {})).value as ProxyConfig;
    if (!config.intercept_https) {
      return {
        name,
        status: "warn",
        detail: "is off: HTTPS is tunnelled",
        advice: "run `weir config update --intercept-https` to switch it on",
      };
    }
    const { value } = await callJson(address, certOperations.testInterception, {});
    const { ok, steps } = value as { ok: boolean; steps: { name: string; ok: boolean; detail: string }[] };
    if (ok) return { name, status: "ok", detail: "an HTTPS request through the proxy was intercepted and completed" };
    const broken = steps.find((step) => !step.ok);
    return {
      name,
      status: "fail",
      detail: broken ? `${broken.name}: ${broken.detail}` : "the test request failed",
      advice: "see the service's log for details (WEIR_LOG=debug)",
    };
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return { name, status: "fail", detail: `the test could not be run: ${error.message}` };
  }
}
