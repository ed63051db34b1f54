import type { Listener } from "@headworks/gateway-contract";

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
