import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Listener } from "@headworks/gateway-contract";

/** Time for workers to close what they prepared. */
const GIVEN_UP_MS = 100;

/** Why a listener cannot follow its document. */
export interface ListenerProblem {
  /** Index among the listeners of the document. */
  readonly at: number;
  readonly message: string;
}

const CAUSES: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this process may not use that port",
  ENOTFOUND: "no address is known by that name",
};

/** A sentence that says why a listener cannot be opened or cannot follow its document. */
export function whyNotListening({ name, address, port }: Listener, error: unknown): string {
  const why = whyNoAddress(port, error);
  if (why === undefined) return `The listener "${name}" cannot use its certificates: ${(error as Error).message}`;
  return `The listener "${name}" cannot listen on ${address} port ${port}: ${why}`;
}

/** Why an address cannot be listened on, as the end of a sentence; undefined for other errors. */
export function whyNoAddress(port: number, error: unknown): string | undefined {
  const { code = "", syscall, message } = error as NodeJS.ErrnoException;
  if (syscall !== "listen" && syscall !== "bind" && syscall !== "getaddrinfo") return undefined;
  if (code === "EADDRINUSE") return `the port is in use there (${code}); ${whoHolds(port)}`;
  const cause = CAUSES[code];
  return cause === undefined ? message : `${cause} (${code})`;
}

/** Finding the owner of a port takes more rights than a gateway has. */
function whoHolds(port: number): string {
  const tool = process.platform === "linux" ? `ss -ltnp 'sport = :${port}'` : `lsof -nP -iTCP:${port} -sTCP:LISTEN`;
  return `another gateway that still runs, or another program, has it: ${tool} names it`;
}

/**
 * Tries every address that the workers do not listen on yet, in this process, which listens on nothing itself. A
 * worker that fails at an address counts that attempt for good (`node:cluster`), and from then on shares the address
 * with no worker that made fewer attempts; so failures are detected here first.
 */
export async function tryAddresses(
  listeners: readonly Listener[],
  open: readonly { readonly address: string; readonly port: number }[],
): Promise<readonly ListenerProblem[]> {
  const problems: ListenerProblem[] = [];
  for (const [at, listener] of listeners.entries()) {
    const { address, port } = listener;
    if (open.some((known) => known.address === address && (known.port === port || port === 0))) continue;
    try {
      await tryTwice(address, port);
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      const neighbour = isTaken && open.some((known) => known.port === port);
      const hint = neighbour ? "; with several workers, a listener on that port has to be removed first" : "";
      problems.push({ at, message: `${whyNotListening(listener, error)}${hint}` });
    }
  }
  return problems;
}

/** Retried once: workers may still be closing an abandoned candidate. */
async function tryTwice(address: string, port: number): Promise<void> {
  try {
    await listenShortly(address, port);
  } catch {
    await sleep(GIVEN_UP_MS);
    await listenShortly(address, port);
  }
}

async function listenShortly(host: string, port: number): Promise<void> {
  const server = createServer((socket) => void socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => void server.close(() => resolve()));
  });
}
