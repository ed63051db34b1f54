import { mkdirSync, writeFileSync } from "node:fs";
import type { TrafficGauges } from "#exchange/gauges.ts";
import { openDatabase, STATE_MIGRATIONS } from "#storage/database.ts";
import type { Database } from "#storage/database.ts";
import type { CaptureStore, StorageStatus } from "#storage/capture-store.ts";
import { loadSettings } from "#settings/load-settings.ts";
import type { Flags } from "#settings/setting-sources.ts";
import type { SettingsStore } from "#settings/settings.ts";
import { EventHub } from "#api/events.ts";
import { createApiServer } from "#api/server.ts";
import type { ApiPage, ApiServerOptions, BoundSlice } from "#api/server.ts";
import { FakeClock, temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import type { SliceHost } from "#slice.ts";

export const HEALTHY: StorageStatus = {
  ok: true,
  problem: null,
  entryCount: 3,
  totalSizeBytes: 1000,
  storeSizeBytes: 4096,
  bodiesNotStored: 0,
  entriesLost: 0,
  backlogBytes: 0,
  backlogEntries: 0,
  writtenEntries: 3,
  lastBatchMs: 1.5,
};

const IDLE_GAUGES: TrafficGauges = {
  activeConnections: 2,
  activeExchanges: 1,
  activeTunnels: 0,
  tunnelsTotal: 4,
  tlsHandshakesTotal: 5,
  tlsHandshakesFailed: 1,
  upstreamConnections: 3,
  idleUpstreamConnections: 2,
  pendingRequests: 0,
};

export interface ApiRigOptions {
  readonly flags?: Flags;
  /** What `config.json` has at the start. */
  readonly savedSettings?: object;
  readonly logs?: SliceHost["logs"];
  readonly slices?: (host: SliceHost) => readonly BoundSlice[];
  readonly operations?: ApiServerOptions["operations"];
  readonly identify?: ApiServerOptions["identify"];
  readonly pages?: readonly ApiPage[];
  readonly uiDirectory?: string;
  readonly status?: () => StorageStatus;
  readonly latestRows?: CaptureStore["latestRows"];
  readonly maxClients?: number;
  /** The proxy's address that slices are told. */
  readonly proxyAddress?: string;
  /** Answers requests that slices send. */
  readonly send?: SliceHost["send"];
}

/** A running API on a port of the system's choice, with a data directory of its own. */
export interface ApiRig {
  readonly url: string;
  readonly port: number;
  readonly clock: FakeClock;
  readonly directory: TemporaryDirectory;
  readonly database: Database;
  readonly settings: SettingsStore;
  readonly events: EventHub;
  readonly host: SliceHost;
  /** Calls the API; the body is sent as JSON. */
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; headers: Headers; json: unknown }>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startApi(options: ApiRigOptions = {}): Promise<ApiRig> {
  const directory = await temporaryDirectory();
  mkdirSync(directory.path, { recursive: true });
  if (options.savedSettings) writeFileSync(directory.file("config.json"), JSON.stringify(options.savedSettings));
  const clock = new FakeClock();
  const log = pino({ level: "silent" });
  const settings = loadSettings({ dataDir: directory.path, environment: {}, flags: options.flags ?? {}, log });
  const database = openDatabase(":memory:", { migrations: STATE_MIGRATIONS });
  const latestRows = options.latestRows ?? (async () => []);
  const events = new EventHub({
    clock,
    latestRows,
    log,
    ...(options.maxClients === undefined ? {} : { maxClients: options.maxClients }),
  });
  const on = (): void => undefined;
  const store = { status: options.status ?? (() => HEALTHY), latestRows, on } as unknown as CaptureStore;
  let apiAddress = "http://127.0.0.1:0";
  const host: SliceHost = {
    version: "0.1.0",
    command: "weir",
    dataDir: directory.path,
    clock,
    log,
    database,
    store,
    streams: store.streams,
    settings,
    logs: options.logs,
    events,
    gauges: IDLE_GAUGES,
    addresses: () => ({ proxy: options.proxyAddress ?? "http://127.0.0.1:8888", api: apiAddress, socks: undefined }),
    send: options.send ?? (() => Promise.reject(new Error("nothing is sent in this test"))),
  };
  const server = createApiServer({
    slices: options.slices?.(host) ?? [],
    settings,
    events,
    log,
    uiDirectory: options.uiDirectory ?? directory.file("no-ui"),
    ...(options.pages ? { pages: options.pages } : {}),
    ...(options.operations ? { operations: options.operations } : {}),
    ...(options.identify ? { identify: options.identify } : {}),
  });
  apiAddress = await server.listen(0, "127.0.0.1");
  return {
    url: apiAddress,
    port: Number(new URL(apiAddress).port),
    clock,
    directory,
    database,
    settings,
    events,
    host,
    call: (method, path, body, headers) => callApi(apiAddress + path, method, body, headers),
    [Symbol.asyncDispose]: async () => {
      const closed = server.close(100);
      await clock.advance(2000);
      await closed;
      database.close();
      await directory.remove();
    },
  };
}

async function callApi(
  url: string,
  method: string,
  body: unknown,
  headers: Record<string, string> = {},
): ReturnType<ApiRig["call"]> {
  const withType = body === undefined ? headers : { "content-type": "application/json", ...headers };
  const response = await fetch(url, {
    method,
    headers: withType,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return { status: response.status, headers: response.headers, json: isJson && text !== "" ? JSON.parse(text) : text };
}
