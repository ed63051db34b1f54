import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { IncomingMessage, RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { ReplayResult } from "@headworks/capture-contract";
import { pino } from "pino";
import { createProxy } from "#proxy.ts";
import type { RunningProxy } from "#proxy.ts";

export interface Response<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly json: T;
}

/** A complete Weir with its own data directory that can be restarted. */
export interface ReplayRig {
  readonly proxy: RunningProxy;
  readonly dataDir: string;
  call<T = unknown>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response<T>>;
  /** Sends a request through the proxy and returns the id of its entry. */
  capture(url: string, options?: CaptureOptions): Promise<string>;
  restart(): Promise<void>;
}

export interface CaptureOptions {
  readonly method?: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Buffer;
}

export interface Cleanups {
  (cleanup: () => unknown): void;
}

export async function startReplayRig(cleanup: Cleanups, flags: Record<string, string> = {}): Promise<ReplayRig> {
  const directory = await temporaryDirectory();
  const start = (): Promise<RunningProxy> =>
    createProxy({
      dataDir: directory.path,
      environment: {},
      flags: { "proxy-port": "0", "api-port": "0", ...flags },
      log: pino({ level: "silent" }),
    });
  let proxy = await start();
  cleanup(async () => {
    await proxy.stop(0);
    await directory.remove();
  });
  const call: ReplayRig["call"] = async <T>(method: string, path: string, body?: unknown, signal?: AbortSignal) => {
    const response = await fetch(`${proxy.addresses.api}/api${path}`, {
      method,
      ...(signal === undefined ? {} : { signal }),
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      json: (text === "" ? undefined : JSON.parse(text)) as T,
    };
  };
  return {
    get proxy() {
      return proxy;
    },
    dataDir: directory.path,
    call,
    async capture(url, options = {}) {
      const latest = async () =>
        (await call<{ id: string; request: { url: string }; state: string }[]>("GET", "/traffic?limit=1")).json[0];
      const before = await latest();
      await throughProxy(proxy, url, options);
      return await waitUntil(async () => {
        const entry = await latest();
        const isNew = entry !== undefined && entry.id !== before?.id && entry.request.url === url;
        return isNew && entry.state !== "pending" ? entry.id : undefined;
      });
    },
    async restart() {
      await proxy.stop(0);
      proxy = await start();
    },
  };
}

async function throughProxy(proxy: RunningProxy, url: string, options: CaptureOptions): Promise<void> {
  const { hostname, port } = new URL(proxy.addresses.proxy);
  const { method = "GET", headers = {}, body } = options;
  const outgoing = request({
    host: hostname,
    port,
    path: url,
    method,
    agent: false,
    headers: { host: new URL(url).host, ...headers },
  });
  outgoing.end(body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
}

export type Listener = (...exchange: Parameters<RequestListener>) => void | Promise<void>;

/** Starts an HTTP origin and returns its URL without a trailing slash. */
export async function startOrigin(cleanup: Cleanups, listener: Listener): Promise<string> {
  const server = createServer((incoming, response) => void listener(incoming, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function bytesOf(incoming: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

/** Expects that the replay is accepted, with any outcome. */
export async function replay(rig: ReplayRig, id: string, order?: object): Promise<ReplayResult> {
  const { status, json } = await rig.call<ReplayResult>("POST", `/replay/execute/${id}`, order);
  assert.equal(status, 200, JSON.stringify(json));
  return json;
}
