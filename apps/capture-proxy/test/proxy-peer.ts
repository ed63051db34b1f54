import { connect } from "node:net";
import type { Socket } from "node:net";
import { replyBytes, Socks5ServerHandshake } from "@headworks/socks5";
import type { ReplyCode, Socks5Credentials, Socks5Address } from "@headworks/socks5";
import { startRawServer } from "@headworks/testkit";
import type { RawConnection, RawServer } from "@headworks/testkit";
import { addressOfOctets } from "#upstream/proxy-route.ts";

/** What an upstream proxy of a test was asked for. */
export interface AskedProxy extends RawServer {
  /** Heads of requests, or `host:port` of SOCKS5. */
  readonly asked: string[];
}

interface TlsFiles {
  readonly key: string;
  readonly cert: string;
}

/**
 * An HTTP proxy that opens tunnels and forwards requests to where `resolve` says; `answer` may answer a head instead.
 */
export async function startHttpProxy(
  options: {
    readonly response?: (head: string) => string | undefined;
    readonly resolve?: (host: string, port: number) => { host: string; port: number };
    readonly tls?: TlsFiles;
  } = {},
): Promise<AskedProxy> {
  const asked: string[] = [];
  const server = await startRawServer(
    async (client) => {
      const head = (await client.readUntil("\r\n\r\n").catch(() => undefined))?.toString("latin1");
      if (head === undefined) return;
      asked.push(head);
      const own = options.response?.(head);
      if (own !== undefined) return await client.write(own);
      const [method = "", target = ""] = head.split(" ");
      const isTunnel = method === "CONNECT";
      const url = new URL(isTunnel ? `tcp://${target}` : target);
      const named = { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port === "" ? 80 : url.port) };
      const place = options.resolve?.(named.host, named.port) ?? named;
      await join(client, place, isTunnel ? "HTTP/1.1 200 OK\r\nX-Proxy: yes\r\n\r\n" : "", isTunnel ? "" : head);
    },
    options.tls === undefined ? {} : { tls: options.tls },
  );
  return Object.assign(server, { asked });
}

/** A SOCKS5 proxy; `code` other than 0 refuses every request. */
export async function startSocksProxy(
  options: {
    readonly accepts?: (credentials: Socks5Credentials) => boolean;
    readonly code?: ReplyCode;
    readonly resolve?: (host: string, port: number) => { host: string; port: number };
  } = {},
): Promise<AskedProxy> {
  const asked: string[] = [];
  const server = await startRawServer(async (client) => {
    const handshake = new Socks5ServerHandshake(options.accepts);
    for (;;) {
      const chunk = await client.readSome().catch(() => undefined);
      if (chunk === undefined) return;
      const { send, outcome } = handshake.read(chunk);
      if (send.length > 0) await client.write(send);
      if (outcome.kind === "refused") return;
      if (outcome.kind !== "request") continue;
      const named = placeOf(outcome.request);
      asked.push(`${named.host}:${named.port}`);
      const code = options.code ?? 0;
      if (code !== 0) return await client.write(replyBytes(code));
      return await join(client, options.resolve?.(named.host, named.port) ?? named, replyBytes(0), outcome.rest);
    }
  });
  return Object.assign(server, { asked });
}

function placeOf({ host, port }: Socks5Address): { host: string; port: number } {
  return { host: host.kind === "name" ? host.name : addressOfOctets(host.octets), port };
}

/** Connects, tells the client so, and carries bytes both ways until both sides have ended. */
async function join(
  client: RawConnection,
  place: { readonly host: string; readonly port: number },
  toClient: string | Uint8Array,
  toOrigin: string | Uint8Array,
): Promise<void> {
  const origin = connect({ ...place, allowHalfOpen: true, noDelay: true });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  origin.once("connect", () => resolve(true)).once("error", () => resolve(false));
  if (!(await promise)) return client.destroy();
  if (toClient.length > 0) await client.write(toClient);
  if (toOrigin.length > 0) origin.write(toOrigin);
  const socket: Socket = client.detach();
  const done = Promise.withResolvers<undefined>();
  for (const [from, to] of [
    [socket, origin],
    [origin, socket],
  ] as const) {
    from.on("data", (piece) => to.write(piece));
    from.on("end", () => to.end());
    from.on("error", () => undefined);
    from.on("close", () => {
      to.destroy();
      done.resolve(undefined);
    });
    from.resume();
  }
  await done.promise;
}
