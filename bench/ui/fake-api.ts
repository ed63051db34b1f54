import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createReadStream, existsSync, statSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { WebSocketServer, type WebSocket } from "ws";
import type {
  BlockEntry,
  CaptureSession,
  FocusHost,
  ServerMessage,
  SORT_COLUMNS,
  TrafficEvent,
  TrafficSnapshot,
} from "@headworks/capture-contract";
import { bodyText, FakeStore, SESSION_ID } from "./fake-store.ts";
import { fakeConfig, fakeConfigFields, fakeHealth, fakeSetup } from "./fake-settings.ts";

/** Stands in for Weir while the web UI is built and measured: generated traffic, no proxy. Never part of a product. */
export interface FakeApi {
  readonly url: string;
  readonly store: FakeStore;
  /** Adds so many pending entries and finishes those of the call before. */
  tick(count: number): void;
  /** Sends any message to every window. */
  broadcast(message: ServerMessage): void;
  close(): Promise<void>;
}

export interface FakeApiOptions {
  readonly rows: number;
  readonly distFolder: string;
  readonly port?: number;
  /** New entries per second; 0 is a quiet proxy. */
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

type SortName = (typeof SORT_COLUMNS)[number];
const SORT_KEYS: Readonly<Record<SortName, (row: TrafficSnapshot) => number | string>> = {
  seq: (row) => row.seq,
  timestamp: (row) => row.timestamp,
  method: (row) => row.method,
  status: (row) => row.status_code ?? 0,
  host: (row) => row.host,
  path: (row) => row.path,
  type: (row) => row.resource_type,
  size: (row) => row.response_size ?? -1,
  request_size: (row) => row.request_size,
  duration: (row) => row.duration_ms ?? -1,
  ttfb: (row) => row.ttfb_ms ?? -1,
};

/** Starts the stand-in on a loopback port. */
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

class FakeState {
  readonly store: FakeStore;
  readonly blocklist: BlockEntry[] = [];
  readonly focus: FocusHost[] = [];
  sessions: CaptureSession[];
  recording = true;
  readonly config = fakeConfig();
  readonly #sockets = new Set<WebSocket>();
  #pending: TrafficSnapshot[] = [];

  constructor(rows: number) {
    this.store = new FakeStore(rows);
    const at = new Date().toISOString();
    this.sessions = [
      {
        id: SESSION_ID,
        name: "Checkout bug",
        created_at: at,
        updated_at: at,
        request_count: rows,
        total_size_bytes: 12_400_000,
        is_current: true,
        notes: null,
        tags: ["checkout"],
      },
      {
        id: "22222222-2222-4222-8222-222222222222",
        name: "Login flow",
        created_at: at,
        updated_at: at,
        request_count: 812,
        total_size_bytes: 3_100_000,
        is_current: false,
        notes: "Before the fix",
        tags: [],
      },
    ];
  }

  connect(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("message", (data) => {
      const text = Buffer.isBuffer(data) ? data.toString("utf8") : "";
      if (text.includes('"Ping"')) socket.send(JSON.stringify([{ type: "Pong" }]));
    });
    socket.send(JSON.stringify([{ type: "Connected", data: { client_id: "fake" } }]));
  }

  broadcast(...messages: readonly ServerMessage[]): void {
    const text = JSON.stringify(messages);
    for (const socket of this.#sockets) socket.send(text);
  }

  tick(count: number): void {
    const events: TrafficEvent[] = this.#pending.map((row) => {
      this.store.finish(row);
      return { type: "Updated", data: row };
    });
    this.#pending = [];
    for (let index = 0; index < count && this.recording; index += 1) {
      this.#pending.push(this.store.add(Date.now(), true));
      const row = this.store.rows.at(-1);
      if (row !== undefined) events.push({ type: "Added", data: row });
    }
    this.broadcast(...events.map((data): ServerMessage => ({ type: "Traffic", data })));
  }
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
  const answer =
    trafficAnswer(state, path, url.searchParams, request.method ?? "GET", json, response) ??
    otherAnswer(state, path, request.method ?? "GET", json);
  if (answer === "sent") return;
  if (answer === undefined) sendJson(response, 404, { error: "No such resource", code: "NOT_FOUND" });
  else sendJson(response, answer.status, answer.body);
}

interface Answer {
  readonly status: number;
  readonly body?: unknown;
}
const ok = (body: unknown): Answer => ({ status: 200, body });

function trafficAnswer(
  state: FakeState,
  path: string,
  query: URLSearchParams,
  method: string,
  json: () => Record<string, unknown>,
  response: ServerResponse,
): Answer | "sent" | undefined {
  const { store } = state;
  const filter = { q: query.get("q") ?? "" };
  if (path === "/traffic/rows") {
    const key = SORT_KEYS[(query.get("sort") ?? "seq") as SortName];
    const sorted =
      query.get("sort") === null || query.get("sort") === "seq"
        ? store.matching(filter)
        : store.matching(filter).toSorted((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.seq - b.seq));
    const offset = Number(query.get("offset") ?? 0);
    const limit = Number(query.get("limit") ?? 100);
    const rows =
      query.get("order") === "asc"
        ? sorted.slice(offset, offset + limit)
        : sorted.slice(Math.max(0, sorted.length - offset - limit), Math.max(0, sorted.length - offset)).toReversed();
    return ok({ total: sorted.length, total_complete: true, rows });
  }
  if (path === "/traffic/summary") return ok(store.summary(filter));
  if (path === "/traffic/count") return ok({ count: store.matching(filter).length });
  if (path === "/traffic/tree") return ok(store.tree(filter, query.get("of_host") ?? undefined));
  if (path === "/traffic/values") return ok(store.values(query.get("field") ?? "", query.get("prefix") ?? ""));
  if (path === "/traffic/clear" && method === "POST") {
    const ids = new Set((json()["ids"] ?? query.get("ids")?.split(",")) as readonly string[] | undefined);
    store.rows = ids.size === 0 ? [] : store.rows.filter((row) => !ids.has(row.id));
    state.broadcast({
      type: "Traffic",
      data: ids.size === 0 ? { type: "Cleared" } : { type: "Deleted", data: [...ids] },
    });
    return { status: 204 };
  }
  if (path === "/export/har") {
    response.writeHead(200, {
      "content-type": "application/json",
      "x-total-count": String(store.matching(filter).length),
    });
    response.end(JSON.stringify({ log: { version: "1.2", creator: { name: "fake", version: "0" }, entries: [] } }));
    return "sent";
  }
  const snippet = /^\/export\/snippet\/([^/]+)$/u.exec(path);
  if (snippet) {
    return ok({
      format: query.get("format") ?? "curl",
      text: `curl --compressed 'https://example/${snippet[1] ?? ""}'`,
    });
  }
  if (path === "/traffic/import/har") {
    return ok({ session_id: SESSION_ID, imported_count: 12, skipped_count: 1, errors: ["entry 3: no URL"] });
  }
  const body = /^\/traffic\/([^/]+)\/body\/(request|response)$/u.exec(path);
  if (body) {
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(bodyText(body[2] ?? ""));
    return "sent";
  }
  const id = /^\/traffic\/([^/]+)$/u.exec(path)?.[1];
  if (id === undefined) return undefined;
  if (method === "PATCH") {
    const note = json()["notes"];
    if (typeof note === "string") store.notes.set(id, note);
    else store.notes.delete(id);
    return ok({ id, notes: note });
  }
  if (method === "DELETE") {
    store.rows = store.rows.filter((row) => row.id !== id);
    state.broadcast({ type: "Traffic", data: { type: "Deleted", data: [id] } });
    return { status: 204 };
  }
  const entry = store.entry(id);
  return entry === undefined ? undefined : ok(entry);
}

function otherAnswer(
  state: FakeState,
  path: string,
  method: string,
  json: () => Record<string, unknown>,
): Answer | undefined {
  const at = new Date().toISOString();
  if (path === "/capture/toggle") {
    state.recording = typeof json()["enabled"] === "boolean" ? json()["enabled"] === true : !state.recording;
    state.broadcast({ type: "Changed", data: { topic: "capture" } });
  }
  if (path === "/capture" || path === "/capture/toggle") {
    return ok({ capture_enabled: state.recording, mode: state.recording ? "recording" : "passthrough" });
  }
  if (path === "/capture/stats") {
    const count = state.store.rows.length;
    return ok({
      entry_count: count,
      max_entries: count > 10_000 ? 200_000 : 10_000,
      total_size_bytes: 12_400_000,
      max_total_size_bytes: 0,
      max_body_size: 20_971_520,
      capture_enabled: state.recording,
      capture_request_bodies: true,
      capture_response_bodies: true,
      ignored_domains: state.config.ignored_domains,
      store_size_bytes: 333_447_168,
      bodies_not_stored: 0,
      entries_lost: 0,
      storage_ok: true,
      storage_problem: null,
    });
  }
  if (path === "/config") {
    if (method === "PATCH") {
      Object.assign(state.config, json());
      state.broadcast({ type: "Changed", data: { topic: "config" } });
    }
    return ok(state.config);
  }
  if (path === "/config/fields") return ok(fakeConfigFields(state.config));
  if (path === "/health/detailed") return ok(fakeHealth());
  if (path === "/cert/setup") return ok(fakeSetup());
  if (path === "/cert/info") {
    return ok({
      subject: "CN=Weir CA",
      fingerprint_sha256:
        "AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89",
      serial: "01",
      not_before: at,
      not_after: "2036-11-21T00:00:00.000Z",
      expires_soon: false,
      path: "/home/me/.weir/ca.pem",
      imported: false,
    });
  }
  if (path === "/cert/test") {
    return ok({
      ok: true,
      steps: [
        { name: "Connect to the proxy", ok: true, detail: "127.0.0.1:8888" },
        { name: "TLS with our certificate", ok: true, detail: "TLSv1.3" },
      ],
    });
  }
  if (path === "/sessions" && method === "POST") {
    const name = json()["name"];
    state.sessions = [
      ...state.sessions,
      {
        id: crypto.randomUUID(),
        name: typeof name === "string" ? name : null,
        created_at: at,
        updated_at: at,
        request_count: 0,
        total_size_bytes: 0,
        is_current: false,
        notes: null,
        tags: [],
      },
    ];
    return ok(state.sessions.at(-1));
  }
  if (path === "/sessions") return ok(state.sessions);
  return sessionAnswer(state, path, method, json) ?? ruleAnswer(state, path, method, json, at);
}

function sessionAnswer(
  state: FakeState,
  path: string,
  method: string,
  json: () => Record<string, unknown>,
): Answer | undefined {
  const [, id, verb] = /^\/sessions\/([^/]+)(?:\/(switch))?$/u.exec(path) ?? [];
  if (id === undefined) return undefined;
  if (verb === "switch") {
    state.sessions = state.sessions.map((session) => ({ ...session, is_current: session.id === id }));
  } else if (method === "PATCH") {
    state.sessions = state.sessions.map((session) => (session.id === id ? { ...session, ...json() } : session));
  } else if (method === "DELETE") state.sessions = state.sessions.filter((session) => session.id !== id);
  if (method !== "GET") state.broadcast({ type: "Changed", data: { topic: "sessions" } });
  return verb === "switch"
    ? ok({ success: true })
    : method === "DELETE"
      ? { status: 204 }
      : ok(state.sessions.find((session) => session.id === id));
}

function ruleAnswer(
  state: FakeState,
  path: string,
  method: string,
  json: () => Record<string, unknown>,
  at: string,
): Answer | undefined {
  if (path === "/focus" && method === "GET") return ok(state.focus);
  if (path === "/focus" && method === "POST") {
    const added = { id: crypto.randomUUID(), pattern: String(json()["pattern"]), created_at: at };
    state.focus.push(added);
    state.broadcast({ type: "Changed", data: { topic: "focus" } });
    return { status: 201, body: added };
  }
  if (path.startsWith("/focus") && method === "DELETE") {
    const id = path.slice("/focus/".length);
    state.focus.splice(0, state.focus.length, ...(id === "" ? [] : state.focus.filter((host) => host.id !== id)));
    state.broadcast({ type: "Changed", data: { topic: "focus" } });
    return { status: 204 };
  }
  if (path === "/blocklist" && method === "GET") return ok(state.blocklist);
  if (path === "/blocklist/stats") {
    return ok({
      total: state.blocklist.length,
      enabled: state.blocklist.filter((entry) => entry.enabled).length,
      disabled: 0,
      total_hits: 0,
    });
  }
  if (path === "/blocklist" && method === "POST") {
    const entry: BlockEntry = {
      id: crypto.randomUUID(),
      pattern: String(json()["pattern"]),
      note: null,
      enabled: true,
      hit_count: 0,
      status_code: 403,
      response_body: "",
      content_type: "text/plain",
      created_at: at,
      updated_at: at,
      device_id: null,
    };
    state.blocklist.push(entry);
    return { status: 201, body: { id: entry.id } };
  }
  const [, id, verb] = /^\/blocklist\/([^/]+)(?:\/(toggle))?$/u.exec(path) ?? [];
  const index = state.blocklist.findIndex((entry) => entry.id === id);
  const entry = state.blocklist[index];
  if (entry === undefined) return undefined;
  if (method === "DELETE") state.blocklist.splice(index, 1);
  else if (verb === "toggle") state.blocklist[index] = { ...entry, enabled: !entry.enabled };
  else if (method === "PUT") state.blocklist[index] = { ...entry, ...(json() as Partial<BlockEntry>) };
  return method === "DELETE"
    ? { status: 204 }
    : ok(verb === "toggle" ? { id, enabled: !entry.enabled } : state.blocklist[index]);
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
