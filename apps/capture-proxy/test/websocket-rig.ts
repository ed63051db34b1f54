import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent } from "node:http";
import { connect } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { waitUntil } from "@headworks/testkit";
import { WebSocket, WebSocketServer } from "ws";
import type { ClientOptions, RawData, ServerOptions } from "ws";
import { startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";

/** One end of a connection with what it was told. */
export interface WebSocketEnd {
  readonly socket: WebSocket;
  readonly messages: string[];
  /** The code and the reason it was closed with. */
  readonly closed: string[];
}

/** A whole Weir in front of a WebSocket server. */
export interface WebSocketRig extends AsyncDisposable {
  readonly rig: ProxyRig;
  readonly api: ProxyRig["api"];
  /** Opens a connection through the proxy; gives both ends and its id. */
  open(
    options?: ClientOptions,
    protocols?: string[],
  ): Promise<{ client: WebSocketEnd; server: WebSocketEnd; id: string }>;
}

/** Reaches its targets by CONNECT through a proxy. */
export class TunnelAgent extends Agent {
  readonly #proxyPort: number;

  constructor(proxyPort: number) {
    super();
    this.#proxyPort = proxyPort;
  }

  override createConnection(
    options: { host?: string | null | undefined; port?: number | string | null | undefined },
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex {
    const socket: Socket = connect(this.#proxyPort, "127.0.0.1");
    const target = `${options.host}:${options.port}`;
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
    socket.once("data", () => callback?.(null, socket));
    socket.once("error", (error) => callback?.(error, socket));
    // Given by the callback once the tunnel is there.
    return undefined as unknown as Duplex;
  }
}

export async function startWebSocketRig(serverOptions: ServerOptions = {}): Promise<WebSocketRig> {
  const rig = await startProxyRig();
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", ...serverOptions });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const ends: WebSocketEnd[] = [];
  const agent = new TunnelAgent(Number(new URL(rig.proxy.addresses.proxy).port));
  return {
    rig,
    api: async (method, path, body, status) => await rig.api(method, path, body, status),
    open: async (options = {}, protocols = []) => {
      const before = await ids(rig);
      const serving = once(server, "connection") as Promise<[WebSocket]>;
      const client = endOf(new WebSocket(`ws://127.0.0.1:${port}/chat`, protocols, { agent, ...options }));
      const [socket] = await serving;
      const peer = endOf(socket);
      ends.push(client, peer);
      await once(client.socket, "open");
      let found: string | undefined;
      await waitUntil(async () => {
        found = (await ids(rig)).find((id) => !before.includes(id));
        return found !== undefined;
      });
      assert.ok(found);
      return { client, server: peer, id: found };
    },
    [Symbol.asyncDispose]: async () => {
      for (const { socket } of ends) socket.terminate();
      server.close();
      agent.destroy();
      await rig[Symbol.asyncDispose]();
    },
  };
}

async function ids(rig: ProxyRig): Promise<string[]> {
  const list = await rig.api<{ id: string }[]>("GET", "/ws-traffic/connections?limit=1000");
  return list.map(({ id }) => id);
}

function endOf(socket: WebSocket): WebSocketEnd {
  const messages: string[] = [];
  const closed: string[] = [];
  socket.on("message", (data: RawData, isBinary: boolean) => {
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer);
    messages.push(isBinary ? `base64:${bytes.toString("base64")}` : bytes.toString());
  });
  socket.on("ping", (data: Buffer) => messages.push(`ping:${data.toString()}`));
  socket.on("pong", (data: Buffer) => messages.push(`pong:${data.toString()}`));
  socket.on("close", (code, reason) => closed.push(`${code} ${reason.toString()}`));
  socket.on("error", () => undefined);
  return { socket, messages, closed };
}
