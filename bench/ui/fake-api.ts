import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createReadStream, existsSync, statSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { WebSocketServer } from "ws";
import type { ServerMessage } from "@headworks/capture-contract";
import { otherResponse } from "./fake-responses.ts";
import { FakeState } from "./fake-state.ts";
import type { FakeStore } from "./fake-store.ts";
import { trafficResponse } from "./fake-traffic-responses.ts";

/** Replaces Weir for development and measurement of the web UI: generated traffic, no proxy. Not part of a product. */
export interface FakeApi {
  readonly url: string;
  readonly store: FakeStore;
  /** Adds this many pending entries and completes those of the previous call. */
  tick(count: number): void;
  /** Sends any message to every window. */
  broadcast(message: ServerMessage): void;
  close(): Promise<void>;
}

export interface FakeApiOptions {
  readonly rows: number;
  readonly distFolder: string;
  readonly port?: number;
  /** New entries per second; 0 for none. */
  readonly perSecond?: number;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; frame-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Starts the replacement on a loopback port. */
export async function startFakeApi(options: FakeApiOptions): Promise<FakeApi> {
  const state = new FakeState(options.rows);
  const server = createServer((request, response) => {
    handle(state, options.distFolder, request, response).catch((error: unknown) => {
      if (!response.headersSent) {
        sendJson(response, 400, { error: error instanceof Error ? error.message : String(error), code: "BAD_REQUEST" });
      } else response.destroy();
    });
  });
  const sockets = new WebSocketServer({ server, path: "/ws" });
  sockets.on("connection", (socket) => state.connect(socket));
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const timer = options.perSecond
    ? setInterval(() => state.tick(Math.max(1, Math.round((options.perSecond ?? 0) / 10))), 100)
    : undefined;
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    store: state.store,
    tick: (count) => state.tick(count),
    broadcast: (message) => state.broadcast(message),
    close: async () => {
      clearInterval(timer);
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  if (body === undefined) {
    response.writeHead(status).end();
    return;
  }
  response
    .writeHead(status, { "content-type": "application/json", "cache-control": "no-store" })
    .end(JSON.stringify(body));
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

async function handle(
  state: FakeState,
  dist: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? "/", "http://fake");
  if (!url.pathname.startsWith("/api/")) {
    serveFile(dist, url.pathname, response);
    return;
  }
  const text = request.method === "GET" ? "" : await readBody(request);
  const json = (): Record<string, unknown> => (text === "" ? {} : (JSON.parse(text) as Record<string, unknown>));
  const path = url.pathname.slice("/api".length);
  const reply =
    trafficResponse(state, path, url.searchParams, request.method ?? "GET", json, response) ??
    otherResponse(state, path, request.method ?? "GET", json);
  if (reply === "sent") return;
  if (reply === undefined) sendJson(response, 404, { error: "No such resource", code: "NOT_FOUND" });
  else sendJson(response, reply.status, reply.body);
}

function serveFile(dist: string, path: string, response: ServerResponse): void {
  const wanted = join(dist, normalize(path));
  const file =
    wanted.startsWith(dist) && existsSync(wanted) && statSync(wanted).isFile() ? wanted : join(dist, "index.html");
  response.writeHead(200, {
    "content-type": TYPES[extname(file)] ?? "application/octet-stream",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
  });
  createReadStream(file).pipe(response);
}
