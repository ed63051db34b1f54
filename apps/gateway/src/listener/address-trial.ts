import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Listener } from "@headworks/gateway-contract";
import { whyNotListening, type ListenerProblem } from "./listen-error.ts";

/** Time for workers to close what they prepared. */
const GIVEN_UP_MS = 100;

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
