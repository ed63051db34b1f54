import { connect } from "node:net";
import { runsOperations, sessionsOperations } from "@headworks/capture-contract";
import type { CaptureSession, Run } from "@headworks/capture-contract";
import { callJson, shownUrl } from "./api-connection.ts";
import type { ApiAddress } from "./api-connection.ts";
import { CommandFailure, EXIT } from "./exit-codes.ts";

/** A run in a service that others use too: traffic through the run's own proxy port is told apart from all other. */
export interface RunSession {
  readonly sessionId: string;
  readonly sessionName: string | null;
  readonly proxyUrl: string;
  /** Resolves when what the run sent is in the store. */
  readonly end: (signal?: AbortSignal) => Promise<void>;
}

/** The service forgets a run that is silent for 15 minutes. */
const RENEW_MS = 60_000;
const CONNECT_MS = 3000;

/** Opens a proxy and a session for one run. Throws {@link CommandFailure} when that proxy cannot be reached from here. */
export async function beginRunSession(address: ApiAddress, name: string): Promise<RunSession> {
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
export async function newSession(address: ApiAddress, name: string): Promise<CaptureSession> {
  const { value } = await callJson(address, sessionsOperations.createSession, { body: { name } });
  const session = value as CaptureSession;
  await callJson(address, sessionsOperations.switchSession, { params: { id: session.id } });
  return session;
}

/** The active session. */
export async function currentSession(address: ApiAddress, signal?: AbortSignal): Promise<CaptureSession | undefined> {
  return (await listSessions(address, signal)).find((session) => session.is_current);
}

async function listSessions(address: ApiAddress, signal?: AbortSignal): Promise<readonly CaptureSession[]> {
  const { value } = await callJson(address, sessionsOperations.listSessions, signal === undefined ? {} : { signal });
  return value as CaptureSession[];
}
