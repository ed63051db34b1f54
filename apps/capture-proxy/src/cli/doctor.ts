import { homedir } from "node:os";
import type { Command } from "commander";
import type { DetailedHealth, Settings } from "@headworks/capture-contract";
import { resolveDataDir } from "#settings/data-dir.ts";
import { resolveCertificateDirectory, resolveTrafficFile } from "#settings/data-places.ts";
import type { DataPlaces } from "#settings/data-places.ts";
import { loadSettings } from "#settings/load-settings.ts";
import { StartupError } from "#settings/startup-error.ts";
import { apiAddress, shownUrl } from "./api-connection.ts";
import type { ApiAddress } from "./api-connection.ts";
import { checkAuthority, checkAuthorityInUse, checkAuthorityTrust, checkServiceFiles } from "./doctor-authority.ts";
import { checkClock, checkDataDirectory, checkDatabases, checkNode, checkProxyVariables } from "./doctor-machine.ts";
import { checkInterception, checkPort } from "./doctor-service.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import { globalOptions } from "./global-options.ts";
import type { Invocation, Outcome } from "./invocation.ts";
import { serviceHealth } from "./service-health.ts";
import { visibleText } from "./terminal.ts";
import type { Terminal } from "./terminal.ts";

/** What one check found. Only `fail` makes the whole an error; `warn` may be intended; `skip` could not be looked at. */
export interface Finding {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  readonly detail: string;
  /** What to do about it. */
  readonly advice?: string;
}

/** What is examined of what may lie elsewhere. */
type ExaminedPlaces = Pick<DataPlaces, "trafficFile" | "certificateDirectory">;

/** What the checks look at. */
export interface CheckContext {
  readonly invocation: Invocation;
  readonly dataDir: string;
  readonly places: ExaminedPlaces;
  readonly settings: Settings | undefined;
  readonly address: ApiAddress;
  /** The service was named; without that it is the one that would be used by itself. */
  readonly isServiceNamed: boolean;
  /** Health of the service at `address`; undefined when none answers. */
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
    .option("--data-dir <path>", "The data directory to look at (env WEIR_DATA_DIR)")
    .option("-d, --db-path <file>", "The traffic's database, if it is elsewhere (env WEIR_DB_PATH)")
    .option("-c, --cert-path <directory>", "The CA's directory, if it is elsewhere (env WEIR_CERT_PATH)");
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

/** Throws {@link CommandFailure} for what can be no such place. */
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

/** A check that breaks is a finding too; the others still run. */
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
    return { settings, finding: { name: "Settings", status: "ok", detail: "every value can be used" } };
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    return {
      settings: undefined,
      finding: {
        name: "Settings",
        status: "fail",
        detail: error.message,
        advice: "mend the value; the service does not start with it",
      },
    };
  }
}

/** Short: a service on this machine answers at once or is in trouble. */
const PROBE_MS = 3000;

function checkService({ health, address }: CheckContext): Finding {
  const name = "Service";
  if (!health) {
    return {
      name,
      status: "skip",
      detail: `no Weir answers at ${shownUrl(address)}`,
      advice: "start it with `weir serve`, or name another address with --api-url",
    };
  }
  const sick = Object.entries(health.dependencies).filter(
    ([, state]) => !["ok", "healthy", "up"].includes(state.toLowerCase()),
  );
  if (!health.healthy) {
    return {
      name,
      status: "fail",
      detail: `says it is not well: ${sick.map(([part, state]) => `${part} ${state}`).join(", ")}`,
    };
  }
  return {
    name,
    status: "ok",
    detail: `${health.version} answers at ${shownUrl(address)}, up for ${health.uptime_secs} s`,
  };
}

const MARKS = { ok: ["✓", "green"], warn: ["!", "yellow"], fail: ["✗", "red"], skip: ["–", "dim"] } as const;

function findingLine({ name, status, detail, advice }: Finding, terminal: Terminal): string {
  const [mark, style] = MARKS[status];
  const text = `${terminal.style(style, mark)} ${terminal.style("bold", name)}: ${visibleText(detail)}\n`;
  return advice === undefined ? text : `${text}    ${visibleText(advice)}\n`;
}
