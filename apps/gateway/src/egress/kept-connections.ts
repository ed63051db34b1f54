import type { Socket } from "node:net";

/** Below the usual idle timeout of servers, so that connections are rarely closed under a request. */
const IDLE_MS = 4000;

/** Idle connections to one destination, opened under one generation's rules and closed with it. */
export class KeptConnections {
  readonly #capacity: number;
  readonly #idle: { readonly socket: Socket; readonly forget: () => void }[] = [];
  #isClosed = false;

  constructor(capacity = 16) {
    this.#capacity = capacity;
  }

  /** The most recently used connection, if any. */
  take(): Socket | undefined {
    const kept = this.#idle.pop();
    kept?.forget();
    return kept?.socket;
  }

  /** Keeps an idle connection, or closes it if it cannot be kept. */
  put(socket: Socket): void {
    if (this.#isClosed || socket.destroyed || !socket.writable || this.#idle.length >= this.#capacity) {
      socket.destroy();
      return;
    }
    const drop = (): void => {
      const at = this.#idle.findIndex((kept) => kept.socket === socket);
      if (at !== -1) this.#idle.splice(at, 1);
      socket.destroy();
    };
    const timer = setTimeout(drop, IDLE_MS).unref();
    // Unexpected bytes, and every kind of end, make a connection unusable.
    for (const event of ["data", "end", "close", "error"]) socket.on(event, drop);
    const forget = (): void => {
      clearTimeout(timer);
      for (const event of ["data", "end", "close", "error"]) socket.off(event, drop);
    };
    this.#idle.push({ socket, forget });
    socket.resume();
  }

  /** Closes idle connections; active ones are closed when they are put back. */
  close(): void {
    this.#isClosed = true;
    for (let socket = this.take(); socket !== undefined; socket = this.take()) socket.destroy();
  }
}
