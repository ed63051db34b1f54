import { connect as connectTcp, isIP } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { readPastBrokenWrites } from "@headworks/sockets";
import type { ApplicationProtocol } from "./destination.ts";
import { NameCache } from "./name-cache.ts";
import type { UpstreamTrust } from "./trust.ts";

interface Place {
  readonly host: string;
  readonly port: number;
}

/** What TLS needs beside the way. */
export interface TlsSide extends Place {
  /** The name that the certificate must be for. */
  readonly serverName: string;
  readonly offered: readonly ApplicationProtocol[];
  readonly trust: UpstreamTrust;
}

/** One for the process, as the system's own resolver is. */
const names = new NameCache();

const WAY = { noDelay: true, autoSelectFamily: true, lookup: names.lookup } as const;

/** Starts to connect. */
export function openTcp({ host, port }: Place): Socket {
  return readPastBrokenWrites(connectTcp({ host, port, ...WAY }));
}

/** Starts to connect, and TLS after it. */
export function openTls(side: TlsSide): TLSSocket {
  const { host, port } = side;
  return readPastBrokenWrites(connectTls({ host, port, ...WAY, ...tlsOptions(side) } as ConnectionOptions));
}

/** Starts TLS over a connection that is there. */
export function startTls(socket: Socket, side: TlsSide): TLSSocket {
  return readPastBrokenWrites(connectTls({ socket, ...tlsOptions(side) }));
}

function tlsOptions({ host, port, serverName, offered, trust }: TlsSide): ConnectionOptions {
  return {
    ALPNProtocols: [...offered],
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    ...trust.options({ host, port, serverName }),
  };
}
