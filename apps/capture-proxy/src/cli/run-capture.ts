import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  type CaptureSession,
  certOperations,
  type DetailedHealth,
  type Metrics,
  metricsOperations,
  type Run,
  runsOperations,
  sessionsOperations,
} from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { verbosity } from "#logging/log-level.ts";
import type { Flags } from "#settings/setting-sources.ts";
import { apiAddress, type ApiAddress, callApi, callJson, readText, shownUrl } from "./api-connection.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import type { RunOptions } from "./run-command.ts";
import { type StartedProxy, startProxy } from "./serve.ts";
import { serviceHealth } from "./service-health.ts";

/** The service forgets a run that is silent for 15 minutes. */
const RENEW_MS = 60_000;

const CONNECT_MS = 3000;

/** A proxy to send a program's traffic through, and the session that holds what it captures. */
export interface Capture {
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
  /** Resolves when what the run sent is in the store, as far as that can be told. */
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
export async function findCapture(
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
 * The name of a session for this run alone: asked for, or needed because a report is to hold this run and nothing else.
 * Otherwise the traffic goes where people are looking, into the active session.
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

/** A run in a service that others use too: traffic through the run's own proxy port is told apart from all other. */
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
