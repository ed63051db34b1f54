import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Listener } from "@headworks/gateway-contract";
import { whyNotListening, type ListenerProblem } from "./listen-error.ts";

/** Long enough for workers to close what they prepared. */
const GIVEN_UP_MS = 100;

/**
 * Tries in this process, which listens nowhere itself, every address that its workers do not listen on. A worker that
 * fails at an address keeps a number of the attempt for good (`node:cluster` does), and from then on shares that address
 * with no worker that made fewer attempts; so they are not to fail where that can be known before.
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

/** A candidate that was given up just before is still being closed in workers. */
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
