import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { pino } from "pino";
import { createProxy } from "#proxy.ts";
import type { ProxyOptions, RunningProxy } from "#proxy.ts";

/** What the origin got. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

/** What a client got. */
export interface Response {
  readonly status: number;
  readonly reason: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
}

/** A whole Weir with a data directory of its own, in front of one origin. */
export interface ProxyRig {
  readonly proxy: RunningProxy;
  readonly originPort: number;
  /** Empty it before use, where tests share a rig. */
  readonly seen: SeenRequest[];
  /** What the origin does with a whole request. */
  respond: Respond;
  /** Sends a request through the proxy, on a connection of its own. */
  send(sent?: Sent): Promise<Response>;
  /** Calls the API and asserts the status. */
  api<T = unknown>(method: string, path: string, body?: unknown, status?: number): Promise<T>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type Respond = (seen: SeenRequest, response: ServerResponse, request: IncomingMessage) => void;

/** The origin sends back what it got. */
export const echoed: Respond = (seen, response) => void response.end(`echo ${seen.body.toString()}`);

/** Starts both, the origin as an {@link echoed} one. */
export async function startProxyRig(
  flags: Readonly<Record<string, string>> = {},
  openLog: (dataDir: string) => Pick<ProxyOptions, "log" | "logs"> = () => ({ log: pino({ level: "silent" }) }),
): Promise<ProxyRig> {
  const directory = await temporaryDirectory();
  const seen: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  const origin = createServer((incoming, response) => {
    const pieces: Buffer[] = [];
    incoming.on("data", (piece: Buffer) => pieces.push(piece));
    incoming.on("end", () => {
      const { method = "", url = "", headers, rawHeaders } = incoming;
      const whole = { method, url, headers, rawHeaders, body: Buffer.concat(pieces) };
      seen.push(whole);
      rig.respond(whole, response, incoming);
    });
  }).on("connection", (socket) => sockets.add(socket));
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  const { port } = origin.address() as AddressInfo;
  const proxy = await createProxy({
    dataDir: directory.path,
    environment: {},
    flags: { "proxy-port": "0", "api-port": "0", ...flags },
    ...openLog(directory.path),
  });
  const rig: ProxyRig = {
    proxy,
    originPort: port,
    seen,
    respond: echoed,
    send: (sent = {}) => send(proxy, port, sent),
    api: (method, path, body, status = 200) => callApi(proxy, { method, path, body, status }),
    [Symbol.asyncDispose]: async () => {
      await proxy.stop(0);
      for (const socket of sockets) socket.destroy();
      origin.close();
      await directory.remove();
    },
  };
  return rig;
}

async function send(proxy: RunningProxy, originPort: number, sent: Sent): Promise<Response> {
  const { hostname, port } = new URL(proxy.addresses.proxy);
  const outgoing = request({
    host: hostname,
    port,
    method: sent.method ?? "GET",
    path: `http://127.0.0.1:${originPort}${sent.path ?? "/"}`,
    headers: { host: `127.0.0.1:${originPort}`, ...sent.headers },
    agent: false,
    ...(sent.signal === undefined ? {} : { signal: sent.signal }),
  });
  outgoing.end(sent.body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  const { statusCode = 0, statusMessage = "", headers, rawHeaders } = response;
  return { status: statusCode, reason: statusMessage, headers, rawHeaders, body: Buffer.concat(pieces) };
}

async function callApi<T>(
  proxy: RunningProxy,
  call: { readonly method: string; readonly path: string; readonly body: unknown; readonly status: number },
): Promise<T> {
  const response = await fetch(`${proxy.addresses.api}/api${call.path}`, {
    method: call.method,
    ...(call.body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(call.body) }),
  });
  const text = await response.text();
  assert.equal(response.status, call.status === 200 && response.status === 201 ? 201 : call.status, text);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** The entry of a path once `isReady` holds for it. */
export async function entryOf<T extends { readonly path: string }>(
  rig: ProxyRig,
  path: string,
  isReady: (row: T) => boolean,
): Promise<T> {
  return await waitUntil(async () => {
    const { rows } = await rig.api<{ rows: T[] }>("GET", "/traffic/rows");
    return rows.find((row) => row.path === path && isReady(row));
  });
}
