import { connect, isIP, type Socket } from "node:net";
import { EgressError, timedOut } from "./egress-failure.ts";

/** Delay before the next address is tried in parallel (RFC 8305 section 5). */
const STAGGER_MS = 250;
/** A name may have hundreds of addresses. */
const MAX_ADDRESSES = 16;

/**
 * Connects to the first of the addresses that accepts, in order; the next attempt starts when one fails or is slow.
 * Names are refused, never looked up. @throws EgressError `connect_failed` if none accepts, `timeout` when `signal`
 * aborts
 */
export async function connectFirst(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  const attempts = new Set<Socket>();
  const waiting = addresses.slice(0, MAX_ADDRESSES);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  let timer: NodeJS.Timeout | undefined;
  let lastError = new EgressError("connect_failed", "There is no address to connect to");

  const next = (): void => {
    clearTimeout(timer);
    const address = waiting.shift();
    if (address === undefined) {
      if (attempts.size === 0) reject(lastError);
      return;
    }
    if (isIP(address) === 0) {
      lastError = new EgressError("connect_failed", "The dial target is not an address");
      next();
      return;
    }
    const socket = connect({ host: address, port, noDelay: true, autoSelectFamily: false, lookup: refuseLookup });
    attempts.add(socket);
    socket.once("connect", () => resolve(socket));
    socket.on("error", (error) => {
      if (!attempts.delete(socket)) return;
      lastError = new EgressError("connect_failed", error.message);
      next();
    });
    timer = setTimeout(next, STAGGER_MS);
  };

  const onAbort = (): void => reject(timedOut());
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    if (signal.aborted) throw timedOut();
    next();
    const socket = await promise;
    attempts.delete(socket);
    return socket;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    waiting.length = 0;
    for (const socket of attempts) {
      attempts.delete(socket);
      socket.destroy();
    }
  }
}

/** Addresses need no lookup; should node attempt one, the connection fails. */
function refuseLookup(
  host: string,
  _options: unknown,
  done: (error: NodeJS.ErrnoException | null, address: string, family: number) => void,
): void {
  done(new Error(`${host} would have been looked up a second time`), "", 0);
}
