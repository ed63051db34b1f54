import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync, statSync, statfsSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { trafficOperations } from "@headworks/capture-contract";
import type { TrafficEntry } from "@headworks/capture-contract";
import { callJson } from "./api-connection.ts";
import { PROXY_VARIABLES } from "./client-environment.ts";
import type { Finding, CheckContext } from "./doctor.ts";
import type { DatabaseContent, Parts } from "./invocation.ts";
import { sizeText } from "./present-values.ts";

const MIN_NODE = [24, 15] as const;

/** TypeScript runs as source and the store is Node's own SQLite; older versions lack one or the other. */
export function checkNode(): Finding {
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
export function checkDataDirectory({ dataDir }: CheckContext): readonly Finding[] {
  const name = "Data directory";
  const exists = existsSync(dataDir);
  const place = exists ? dataDir : nearestExisting(dataDir);
  const problem = writeProblem(place);
  if (problem !== undefined) {
    return [
      {
        name,
        status: "fail",
        detail: `${place} cannot be written: ${problem}`,
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
  const { bavail, bsize } = statfsSync(place);
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
  for (let place = path; ; place = dirname(place)) if (existsSync(place) || dirname(place) === place) return place;
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
export async function checkClock({ dataDir, nowMs, health, address }: CheckContext): Promise<Finding> {
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
export async function checkDatabases({ dataDir, places, invocation }: CheckContext): Promise<readonly Finding[]> {
  const name = "Database";
  const files = existsSync(dataDir) ? readdirSync(dataDir).filter((file) => file.endsWith(".db")) : [];
  const contents = new Map<string, DatabaseContent>(files.map((file) => [join(dataDir, file), "other"]));
  const stateFile = join(dataDir, "weir.db");
  if (contents.has(stateFile)) contents.set(stateFile, "state");
  if (existsSync(places.trafficFile)) contents.set(places.trafficFile, "traffic");
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
export function checkProxyVariables({ invocation, health }: CheckContext): Finding {
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
