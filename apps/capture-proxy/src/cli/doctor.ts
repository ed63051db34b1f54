import { randomBytes, X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { getCACertificates } from "node:tls";
import type { Command } from "commander";
import {
  type CertificateInfo,
  certOperations,
  configOperations,
  type DetailedHealth,
  type ProxyConfig,
  type Settings,
  type TrafficEntry,
  trafficOperations,
} from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { hostPortText, isLoopback } from "@headworks/host-patterns";
import { AuthorityError, CertificateAuthority } from "@headworks/tls-authority";
import {
  type DataPaths,
  resolveCertificateDirectory,
  resolveDataDir,
  resolveTrafficFile,
} from "#settings/data-paths.ts";
import { loadSettings } from "#settings/load-settings.ts";
import { StartupError } from "#settings/settings.ts";
import { apiAddress, type ApiAddress, callJson, serviceHealth, shownUrl } from "./api-connection.ts";
import { authorityPaths } from "./ca.ts";
import { PROXY_VARIABLES } from "./client-environment.ts";
import { globalOptions } from "./global-options.ts";
import { CommandFailure, type DatabaseContent, EXIT, type Invocation, type Outcome, type Parts } from "./invocation.ts";
import { sizeText } from "./table.ts";
import { type Terminal, visibleText } from "./terminal.ts";

/** The result of one check. Only `fail` makes the command fail; `warn` may be intended; `skip` means not checked. */
export interface Finding {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail" | "skip";
  readonly detail: string;
  /** Advice. */
  readonly advice?: string;
}

/** The files to check that may be outside the data directory. */
type ExaminedPaths = Pick<DataPaths, "trafficFile" | "certificateDirectory">;

/** The input of the checks. */
interface CheckContext {
  readonly invocation: Invocation;
  readonly dataDir: string;
  readonly paths: ExaminedPaths;
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
    paths: pathsOf(options, environment, dataDir),
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
function pathsOf(flags: DoctorOptions, environment: Invocation["environment"], dataDir: string): ExaminedPaths {
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

const SOON_MS = 30 * 86_400_000;

/** Whether the CA's files are there, belong together, are private and valid. */
function checkAuthority({ paths, nowMs }: CheckContext): readonly Finding[] {
  const name = "CA";
  const { certificate, key } = authorityPaths(paths.certificateDirectory);
  if (!existsSync(certificate)) {
    return [{ name, status: "skip", detail: "there is none yet; it is created at the first start" }];
  }
  if (!existsSync(key)) {
    return [
      {
        name,
        status: "fail",
        detail: `the private key ${key} is missing`,
        advice: `restore it, or remove ${certificate} to create a new CA`,
      },
    ];
  }
  const findings = [validity(certificate, key, nowMs)];
  if (process.platform !== "win32" && (statSync(key).mode & 0o077) !== 0) {
    findings.push({
      name,
      status: "fail",
      detail: `other users can read the private key ${key}`,
      advice: `chmod 600 ${key}`,
    });
  }
  return findings;
}

function validity(certificate: string, key: string, nowMs: number): Finding {
  const name = "CA";
  let authority: CertificateAuthority;
  try {
    const files = { certificatePem: readFileSync(certificate, "utf8"), keyPem: readFileSync(key, "utf8") };
    authority = CertificateAuthority.load(files, new Date(nowMs));
  } catch (error) {
    const advice =
      error instanceof AuthorityError && error.code === "expired"
        ? "run `weir ca renew`"
        : "run `weir ca import`, or remove both files and start again";
    return { name, status: "fail", detail: `${certificate} cannot be used: ${(error as Error).message}`, advice };
  }
  const detail = `${authority.subject}, valid until ${authority.notAfter.toISOString().slice(0, 10)}`;
  if (authority.notBefore.getTime() > nowMs) {
    return { name, status: "fail", detail: `${detail}, but not yet`, advice: "correct the clock" };
  }
  if (authority.notAfter.getTime() - nowMs < SOON_MS) {
    return { name, status: "warn", detail, advice: "run `weir ca renew`, then trust the new CA" };
  }
  return { name, status: "ok", detail };
}

/**
 * Whether the running service signs with the CA of these files: a CA imported meanwhile is used from the next start on,
 * and clients that already trust it refuse the old one. No finding for a service with other files.
 */
async function checkAuthorityInUse({ paths, health, address }: CheckContext): Promise<readonly Finding[]> {
  const { certificate } = authorityPaths(paths.certificateDirectory);
  const found = certificateIn(certificate);
  if (!health || !found || !isThisMachine(new URL(address.baseUrl).hostname)) return [];
  const { value } = await callJson(address, certOperations.getCertificateInfo, {});
  const used = value as CertificateInfo;
  if (used.path !== certificate || used.fingerprint_sha256 === found.fingerprint256) return [];
  return [
    {
      name: "CA",
      status: "fail",
      detail: `the running Weir signs with a CA other than ${certificate}: ${used.subject}, fingerprint ${used.fingerprint_sha256}`,
      advice: "restart it to use the current file",
    },
  ];
}

/** Whether the running service uses the files that these checks examine; no finding if it does. */
async function checkServiceFiles({ paths, health, address }: CheckContext): Promise<readonly Finding[]> {
  if (!health || !isThisMachine(new URL(address.baseUrl).hostname)) return [];
  const { value } = await callJson(address, certOperations.getCertificateInfo, {});
  const { path } = value as CertificateInfo;
  const { certificate } = authorityPaths(paths.certificateDirectory);
  if (path === certificate) return [];
  return [
    {
      name: "Service",
      status: "warn",
      detail: `the Weir at ${shownUrl(address)} uses another data directory than these checks: its CA is ${path}, not ${certificate}`,
      advice: "specify its data directory with --data-dir, or another address with --api-url",
    },
  ];
}

/** Paths of another machine cannot be compared. */
function isThisMachine(host: string): boolean {
  return host === "localhost" || isLoopback(host.replace(/^\[|\]$/g, ""));
}

function certificateIn(path: string): X509Certificate | undefined {
  try {
    return new X509Certificate(readFileSync(path));
  } catch {
    return undefined;
  }
}

/** Whether the system trusts the CA. Only a warning: `weir run` needs no system-wide trust. */
function checkAuthorityTrust({ paths }: CheckContext): Finding {
  const name = "System trust";
  const { certificate } = authorityPaths(paths.certificateDirectory);
  if (!existsSync(certificate)) return { name, status: "skip", detail: "there is no CA yet" };
  const authority = certificateIn(certificate);
  if (authority === undefined) return { name, status: "skip", detail: "the CA cannot be read" };
  if (isTrusted(authority)) return { name, status: "ok", detail: "the system trusts the CA" };
  return {
    name,
    status: "warn",
    detail: "the system does not trust the CA",
    advice: "`weir ca install-help` shows how; `weir run -- PROGRAM` does not need it",
  };
}

function isTrusted(authority: X509Certificate): boolean {
  return getCACertificates("system").some((pem) => {
    const root = new X509Certificate(pem);
    return (
      root.fingerprint256 === authority.fingerprint256 ||
      (authority.checkIssued(root) && authority.verify(root.publicKey))
    );
  });
}

const MIN_NODE = [24, 15] as const;

/** TypeScript runs as source and the store is Node's own SQLite; older versions lack one or the other. */
function checkNode(): Finding {
  const name = "Node.js";
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isNew = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  if (isNew) return { name, status: "ok", detail: process.versions.node };
  return {
    name,
    status: "fail",
    detail: `${process.versions.node} is too old`,
    advice: `install ${MIN_NODE.join(".")} or newer`,
  };
}

const LITTLE_SPACE = 1_073_741_824;
const NO_SPACE = 104_857_600;

/** Whether the data directory can be written, is private and has room. */
function checkDataDirectory({ dataDir }: CheckContext): readonly Finding[] {
  const name = "Data directory";
  const exists = existsSync(dataDir);
  const directory = exists ? dataDir : nearestExisting(dataDir);
  const problem = writeProblem(directory);
  if (problem !== undefined) {
    return [
      {
        name,
        status: "fail",
        detail: `${directory} cannot be written: ${problem}`,
        advice: "correct its permissions, or choose another directory with --data-dir",
      },
    ];
  }
  const findings: Finding[] = [
    { name, status: "ok", detail: exists ? dataDir : `${dataDir} will be created at the first start` },
  ];
  if (exists && process.platform !== "win32" && (statSync(dataDir).mode & 0o077) !== 0) {
    findings.push({
      name,
      status: "warn",
      detail: `other users can read ${dataDir}`,
      advice: `captured traffic holds passwords: chmod 700 ${dataDir}`,
    });
  }
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  const status = free < NO_SPACE ? "fail" : free < LITTLE_SPACE ? "warn" : "ok";
  findings.push({
    name: "Disk",
    status,
    detail: `${sizeText(free)} free`,
    ...(status === "ok" ? {} : { advice: "free some space, or set max_total_size_mb" }),
  });
  return findings;
}

function nearestExisting(path: string): string {
  for (let found = path; ; found = dirname(found)) if (existsSync(found) || dirname(found) === found) return found;
}

/** Checking permissions is not enough: a read-only file system, a quota or a container may still refuse writes. */
function writeProblem(directory: string): string | undefined {
  const path = join(directory, `.weir-doctor-${randomBytes(6).toString("hex")}`);
  try {
    if (!statSync(directory).isDirectory()) return "it is not a directory";
    writeFileSync(path, "x", { flag: "wx", mode: 0o600, flush: true });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    rmSync(path, { force: true });
  }
}

const LAST_BUILD_YEAR = 2025;
const FUTURE_MS = 5 * 60_000;

/** A clock set back makes certificates invalid and puts entries out of order. */
async function checkClock({ dataDir, nowMs, health, address }: CheckContext): Promise<Finding> {
  const name = "Clock";
  const advice = "correct the clock (timedatectl, or the system settings)";
  if (new Date(nowMs).getUTCFullYear() < LAST_BUILD_YEAR) {
    return { name, status: "fail", detail: `is at ${new Date(nowMs).toISOString()}`, advice };
  }
  const newest = newestFile(dataDir);
  if (newest !== undefined && newest.timeMs > nowMs + FUTURE_MS) {
    return {
      name,
      status: "fail",
      detail: `is behind: ${newest.path} was written at ${new Date(newest.timeMs).toISOString()}`,
      advice,
    };
  }
  if (health) {
    const { value } = await callJson(address, trafficOperations.listTraffic, { query: { limit: 1 } });
    const [entry] = value as TrafficEntry[];
    if (entry && Date.parse(entry.timestamp) > nowMs + FUTURE_MS) {
      return { name, status: "fail", detail: `is behind the newest entry, of ${entry.timestamp}`, advice };
    }
  }
  return { name, status: "ok", detail: new Date(nowMs).toISOString() };
}

function newestFile(directory: string): { readonly path: string; readonly timeMs: number } | undefined {
  if (!existsSync(directory)) return undefined;
  const files = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isFile());
  const times = files.map(({ name }) => ({
    path: join(directory, name),
    timeMs: statSync(join(directory, name)).mtimeMs,
  }));
  return times.toSorted((left, right) => right.timeMs - left.timeMs)[0];
}

/** Above this the check takes minutes. */
const MAX_CHECKED_BYTES = 4_294_967_296;

/** SQLite's own check of every database in the data directory, and of the traffic's elsewhere; ours must not be too new. */
async function checkDatabases({ dataDir, paths, invocation }: CheckContext): Promise<readonly Finding[]> {
  const name = "Database";
  const files = existsSync(dataDir) ? readdirSync(dataDir).filter((file) => file.endsWith(".db")) : [];
  const contents = new Map<string, DatabaseContent>(files.map((file) => [join(dataDir, file), "other"]));
  const stateFile = join(dataDir, "weir.db");
  if (contents.has(stateFile)) contents.set(stateFile, "state");
  if (existsSync(paths.trafficFile)) contents.set(paths.trafficFile, "traffic");
  if (contents.size === 0) return [{ name, status: "skip", detail: "there is none yet" }];
  const findings: Finding[] = [];
  for (const [path, content] of contents) {
    const file = dirname(path) === dataDir ? basename(path) : path;
    const { size } = statSync(path);
    if (size > MAX_CHECKED_BYTES) {
      findings.push({ name, status: "skip", detail: `${file} is too large to check (${sizeText(size)})` });
    } else findings.push(await checkDatabase(path, file, size, content, invocation.parts.checkDatabase));
  }
  return findings;
}

async function checkDatabase(
  path: string,
  file: string,
  size: number,
  content: DatabaseContent,
  check: Parts["checkDatabase"],
): Promise<Finding> {
  const name = "Database";
  const advice = `stop the service and move ${path} away; a new one is created at the next start`;
  try {
    const [problem] = await check(path, content);
    if (problem !== undefined) return { name, status: "fail", detail: `${file} is damaged: ${problem}`, advice };
    return { name, status: "ok", detail: `${file}, ${sizeText(size)}, is intact` };
  } catch (error) {
    const { message, name: kind } = error as Error;
    // The file is intact; the message says which version can open it.
    if (kind === "DatabaseTooNewError") return { name, status: "fail", detail: `${file} cannot be used: ${message}` };
    return { name, status: "fail", detail: `${file} cannot be read: ${message}`, advice };
  }
}

/** Whether proxy variables of this shell point to another proxy. */
function checkProxyVariables({ invocation, health }: CheckContext): Finding {
  const name = "Proxy variables";
  const set = PROXY_VARIABLES.filter((variable) => (invocation.environment[variable] ?? "") !== "");
  if (set.length === 0) return { name, status: "ok", detail: "none is set" };
  const ours = health === undefined ? undefined : new URL(health.proxy_address).host;
  const elsewhere = set.filter((variable) => hostOf(invocation.environment[variable] ?? "") !== ours);
  if (elsewhere.length === 0) return { name, status: "ok", detail: `${set.join(", ")} point to this proxy` };
  const shown = elsewhere
    .map((variable) => `${variable}=${withoutPassword(invocation.environment[variable] ?? "")}`)
    .join(", ");
  return {
    name,
    status: "warn",
    detail: `${shown} ${elsewhere.length === 1 ? "points" : "point"} elsewhere`,
    advice: "programs started here do not use Weir; `weir run -- PROGRAM` sets the variables for one program",
  };
}

function hostOf(text: string): string | undefined {
  const full = text.includes("://") ? text : `http://${text}`;
  return URL.canParse(full) ? new URL(full).host.replace("localhost", "127.0.0.1") : undefined;
}

function withoutPassword(text: string): string {
  return text.replace(/\/\/[^@/]*@/, "//[REDACTED]@");
}
