// Tested by ../../test/listener-changes.test.ts
import type { Listener } from "@headworks/gateway-contract";

/** Why a listener of a document cannot be what the document wants. */
export interface ListenerProblem {
  /** Its place among the listeners of the document. */
  readonly at: number;
  readonly message: string;
}

const CAUSES: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: "this machine has no such address",
  EADDRINUSE: "the port is in use there",
  EACCES: "this process may not use that port",
  ENOTFOUND: "no address is known by that name",
};

/** A sentence for people that says why a listener cannot be opened, or cannot go on under its document. */
export function whyNotListening({ name, address, port }: Listener, error: unknown): string {
  const { code = "", syscall, message } = error as NodeJS.ErrnoException;
  const isAddress = syscall === "listen" || syscall === "bind" || syscall === "getaddrinfo";
  if (!isAddress) return `The listener "${name}" cannot use its certificates: ${message}`;
  const cause = CAUSES[code];
  const why = cause === undefined ? message : `${cause} (${code})`;
  return `The listener "${name}" cannot listen on ${address} port ${port}: ${why}`;
}
