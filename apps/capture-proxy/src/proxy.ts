import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Worker } from "node:worker_threads";
import type { Logger } from "pino";
import { apiInfo, type Settings } from "@headworks/capture-contract";
import { makeDirectorySync, storageErrorKind } from "@headworks/files";
import { DeadlineSweep } from "@headworks/sockets";
import { EventHub } from "#api/events.ts";
import { apiExposureProblem } from "#api/gate.ts";
import { createApiServer } from "#api/server.ts";
import { CertificateRefusals, LeafContexts } from "#connection/client-tls.ts";
import { InternalClient } from "#connection/internal-client.ts";
import { ProxyListeners } from "#connection/listener.ts";
import { compileTrafficPolicy, type ProxyServices } from "#connection/proxy-services.ts";
import { credentialsCheck } from "#connection/socks5-connection.ts";
import { newGauges } from "#exchange/gauges.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import { Pipeline } from "#exchange/pipeline.ts";
import type { LogOutput } from "#logging/service-logs.ts";
import { type DataPaths, defaultDataPaths } from "#settings/data-paths.ts";
import { loadSettings } from "#settings/load-settings.ts";
import { type SettingsStore, StartupError } from "#settings/settings.ts";
import { readClientCertificate, readTlsMinVersion } from "#settings/upstream-tls.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import {
  type Database,
  DatabaseTooNewError,
  openDatabase,
  STATE_MIGRATIONS,
  StorageError,
  storageErrorReason,
} from "#storage/database.ts";
import { openCaptureStore } from "#storage/open-capture-store.ts";
import { DataDirectoryInUseError, ForeignFileError } from "#storage/store-files.ts";
import { Dialer } from "#upstream/dial.ts";
import { IdleOrigins } from "#upstream/idle-origins.ts";
import { OwnListeners } from "#upstream/loop-detector.ts";
import type { OriginConnection } from "#upstream/origin-connection.ts";
import { newViaPseudonym } from "#upstream/origin-fields.ts";
import type { OriginSession } from "#upstream/origin-session.ts";
import type { ProxyAddress } from "#upstream/proxy-failure.ts";
import { type ProxyChoices, ProxyRoutes } from "#upstream/proxy-route.ts";
import { probeRoute } from "#upstream/route-probe.ts";
import { UpstreamTrust } from "#upstream/trust.ts";
import { systemClock } from "./clock.ts";
import { FAIL_CLOSED, INTERCEPTOR_ORDER, OBSERVER_ORDER } from "./pipeline-order.ts";
import type { Addresses, SliceHost } from "./slice.ts";
import { type AuthorityStore, AuthorityStoreError, createSlices, openAuthorityStore, type Slices } from "./slices.ts";

export interface ProxyOptions {
  readonly dataDir: string;
  /** Overrides of locations; by default everything is in the data directory. */
  readonly dataPaths?: DataPaths;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Command-line values by flag name, without leading dashes. */
  readonly flags: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
  readonly log: Logger;
  /** Log output; receives the settings as soon as they are known. */
  readonly logs?: LogOutput;
  /** Directory of the built web UI. */
  readonly uiDirectory?: string;
  /** PEM files of an existing CA to be used instead of a generated one. */
  readonly importedAuthority?: { readonly certificateFile: string; readonly keyFile: string };
  /** Serve the API without authentication on an address reachable by others. */
  readonly allowInsecureApi?: boolean;
  /** The store's thread, if it was started while this module was loaded. */
  readonly writer?: Worker;
}

/** A running Weir. */
export interface RunningProxy {
  readonly addresses: Addresses;
  /** The command name at this installation. */
  readonly command: string;
  readonly certificatePath: string;
  readonly fingerprint: string;
  /** Drains exchanges for `graceMs` (5 s) and commits. Returns a sentence if entries were lost. */
  stop(graceMs?: number): Promise<string | undefined>;
}

const GRACE_MS = 5000;
/** Delay before preparing what takes tens of milliseconds and only first requests need. */
const READINESS_DELAY_MS = 250;

/** Assembles all parts and starts listening. Throws StartupError for problems the user can fix. */
export async function createProxy(options: ProxyOptions): Promise<RunningProxy> {
  const { dataDir, log } = options;
  // Files written from here on contain traffic, keys or settings: private to this user.
  process.umask(0o077);
  makeDirectorySync(dataDir);
  const dataPaths = options.dataPaths ?? defaultDataPaths(dataDir);
  const { certificateDirectory, trafficFile } = dataPaths;
  const settings = loadSettings({ dataDir, dataPaths, environment: options.environment, flags: options.flags, log });
  options.logs?.begin(settings.running.log_config);
  refuseExposure(settings.running, options.allowInsecureApi ?? false);
  const started = new StartedParts();
  // The directory that the next step writes to.
  let directory = certificateDirectory;
  try {
    const { importedAuthority: imported } = options;
    const authority = openAuthorityStore({
      directory: certificateDirectory,
      nowMs: () => systemClock.now(),
      log,
      ...(imported === undefined ? {} : { imported }),
    });
    directory = dataDir;
    const database = openDatabase(join(dataDir, "weir.db"), { migrations: STATE_MIGRATIONS });
    started.onStop(() => database.close());
    directory = dirname(trafficFile);
    const store = await openCaptureStore({
      dataDir,
      databasePath: trafficFile,
      limits: storeLimits(settings.running),
      log,
      clock: systemClock,
      writer: options.writer,
    });
    started.onStop(() => store.close());
    directory = dataDir;
    // Only once the directory is known to belong to this process: another one may be logging there.
    options.logs?.openFile(settings.running.log_config);
    return await assemble({ options, settings, authority, database, store, started });
  } catch (error) {
    await started.stop();
    throw startupError(error, directory);
  }
}

/** Converts the parts' errors to a StartupError; file-system errors name `directory`. */
function startupError(error: unknown, directory: string): unknown {
  const isMendable =
    error instanceof AuthorityStoreError ||
    error instanceof DataDirectoryInUseError ||
    error instanceof DatabaseTooNewError ||
    error instanceof ForeignFileError;
  if (isMendable) return new StartupError(error.message, { cause: error });
  // Listening uses the same codes, and a named file is more precise than its directory.
  if (!(error instanceof Error) || "port" in error || "path" in error) return error;
  if (!(error instanceof StorageError) && storageErrorKind(error) === "other") return error;
  return new StartupError(`Cannot use ${directory}: ${storageErrorReason(error)}`, { cause: error });
}

interface Parts {
  readonly options: ProxyOptions;
  readonly settings: SettingsStore;
  readonly authority: AuthorityStore;
  readonly database: Database;
  readonly store: CaptureStore;
  readonly started: StartedParts;
}

async function assemble(parts: Parts): Promise<RunningProxy> {
  const { options, settings, authority, database, store } = parts;
  const { log, dataDir } = options;
  const gauges = newGauges();
  const events = new EventHub({ clock: systemClock, latestRows: store.latestRows.bind(store), log });
  const addresses: MutableAddresses = { proxy: "", api: "", socks: undefined };
  const client = new InternalClient(() => services);
  const host: SliceHost = {
    version: apiInfo.version,
    command: commandName(options.environment),
    dataDir,
    clock: systemClock,
    log,
    database,
    store,
    streams: store.streams,
    settings,
    logs: options.logs?.hasFile === true ? options.logs : undefined,
    events,
    gauges,
    addresses: () => addresses,
    send: (request, options) => client.send(request, options),
  };
  const own = new OwnListeners();
  const listeners = new ProxyListeners(() => services, own);
  const slices = createSlices(host, authority, {
    probeRoute: (request) => probeRoute(services.dialer, request),
    openSessionProxy: async (session) => await listeners.listenForSession(session, settings.running.host),
  });
  const services = dataPath(parts, slices, own, gauges, client);
  followSettings(parts, events);

  const api = createApiServer({
    slices: slices.all,
    settings,
    events,
    log,
    uiDirectory: options.uiDirectory ?? fileURLToPath(new URL("../../capture-ui/dist/", import.meta.url)),
    pages: [slices.cert.setupPage],
  });
  await listen(listeners, api, settings.running, addresses);
  // Proxied requests to the API would loop.
  const { hostname, port } = new URL(addresses.api);
  own.add(hostname.replace(/^\[|\]$/g, ""), Number(port));

  const tasks = new AbortController();
  for (const slice of slices.all) slice.task?.start(tasks.signal);
  setTimeout(() => store.prepareReading(), READINESS_DELAY_MS).unref();
  const { proxy, api: address } = addresses;
  log.info({ version: apiInfo.version, proxy, api: address, process: process.pid }, "Weir has started");
  return {
    addresses,
    command: host.command,
    certificatePath: authority.certificatePath,
    get fingerprint() {
      return authority.current.fingerprintSha256;
    },
    async stop(graceMs = GRACE_MS) {
      await listeners.close(graceMs);
      tasks.abort();
      await Promise.all(slices.all.map(async ({ task }) => await task?.stopped?.()));
      client.close();
      services.idleOrigins.close();
      events.close();
      await api.close(Math.min(graceMs, 1000));
      services.deadlines.stop();
      return await endParts(parts);
    },
  };
}

/** The last step of a stop. Returns a sentence if the store could not write the last entries. */
async function endParts({ options, started, store }: Parts): Promise<string | undefined> {
  const lostBefore = store.status().entriesLost;
  await started.stop();
  options.log.info("Weir has stopped");
  const { entriesLost, problem } = store.status();
  return entriesLost > lostBefore ? (problem ?? undefined) : undefined;
}

/** npm sets this variable for its children, where the command is not in the shell's path. */
function commandName(environment: ProxyOptions["environment"]): string {
  return environment["npm_lifecycle_event"] === undefined ? "weir" : "npx weir";
}

type MutableAddresses = { -readonly [Key in keyof Addresses]: Addresses[Key] };

/** Adds to a listen error the `flag` that chooses another port. */
async function namingFlag<T>(flag: string, listening: Promise<T>): Promise<T> {
  try {
    return await listening;
  } catch (error) {
    throw Object.assign(error as Error, { flag });
  }
}

/** Listens for HTTP clients, for SOCKS5 clients if enabled, and for the API: all or none. */
async function listen(
  listeners: ProxyListeners,
  api: ReturnType<typeof createApiServer>,
  running: Settings,
  addresses: MutableAddresses,
): Promise<void> {
  const { host, socks_auth_username: username, socks_auth_password: password } = running;
  try {
    addresses.proxy = await namingFlag("--proxy-port", listeners.listenHttp(running.proxy_port, host));
    if (running.enable_socks) {
      const check = username === null ? undefined : credentialsCheck(username, password ?? "");
      addresses.socks = await namingFlag("--socks-port", listeners.listenSocks5(running.socks_port, host, check));
    }
    addresses.api = await namingFlag("--api-port", api.listen(running.api_port, running.api_host));
  } catch (error) {
    await listeners.close(0);
    throw error;
  }
}

/** The data path: it knows settings only as a compiled policy and slices only as phases. */
function dataPath(
  parts: Parts,
  slices: Slices,
  own: OwnListeners,
  gauges: ReturnType<typeof newGauges>,
  client: InternalClient,
): ProxyServices {
  const { settings, authority, store, options } = parts;
  const { log } = options;
  const { running } = settings;
  const pipeline = new Pipeline(
    slices.interceptors(INTERCEPTOR_ORDER),
    [...slices.observers(OBSERVER_ORDER), client],
    FAIL_CLOSED,
    (slice, phase, error) => log.error({ err: error, slice, phase }, "A slice failed"),
  );
  const trust = new UpstreamTrust(trustSettings(running, readRoots(running.upstream_ca_file)));
  setTimeout(() => trust.prepare(), READINESS_DELAY_MS).unref();
  const routes = new ProxyRoutes(upstreamProxy(running), upstreamChoices(running));
  let policy = compileTrafficPolicy(running);
  const deadlines = new DeadlineSweep();
  const idleOrigins = new IdleOrigins<OriginConnection | OriginSession>({
    deadlines,
    gauges,
    keepMs: () => settings.running.upstream_keep_alive_ms,
  });
  settings.onChange((changed) => {
    policy = compileTrafficPolicy(changed);
    routes.update(upstreamChoices(changed));
    trust.update(trustSettings(changed, null));
    idleOrigins.forget();
  });
  return {
    pipeline,
    dialer: new Dialer({
      trust,
      own,
      routes,
      viaPseudonym: newViaPseudonym(),
      timeoutMs: () => settings.running.connect_timeout_ms,
    }),
    idleOrigins,
    leafContexts: new LeafContexts(
      () => authority.current,
      () => settings.running.legacy_client_tls,
    ),
    refusals: new CertificateRefusals(() => authority.current, deadlines),
    deadlines,
    gauges,
    log,
    spool: store.spool,
    policy: () => policy,
    ownPages: (request): SyntheticResponse => slices.cert.handleMagicHost(request),
  };
}

function followSettings({ settings, store, options }: Parts, events: EventHub): void {
  const { log } = options;
  const quietLevel = log.level;
  const verboseLevel = log.isLevelEnabled("debug") ? quietLevel : "debug";
  const setLevel = ({ verbose }: Settings): void => {
    log.level = verbose ? verboseLevel : quietLevel;
  };
  setLevel(settings.running);
  settings.onChange(setLevel);
  settings.onChange(({ log_config }) => options.logs?.configure(log_config));
  settings.onChange((running) => store.setLimits(storeLimits(running)));
  store.streams.onFrame(events.frame);
  store.on("pruned", (ids) => events.traffic({ type: "Deleted", data: ids }));
  store.on("statusChanged", () => events.changed("storage"));
}

function storeLimits(settings: Settings): { maxRequests: number; maxTotalSizeMb: number | null; maxBodyBytes: number } {
  return {
    maxRequests: settings.max_requests,
    maxTotalSizeMb: settings.max_total_size_mb,
    maxBodyBytes: settings.max_body_size,
  };
}

function trustSettings(
  settings: Settings,
  extraRootsPem: string | null,
): ConstructorParameters<typeof UpstreamTrust>[0] {
  return {
    extraRootsPem,
    insecure: settings.upstream_insecure,
    insecureHosts: settings.upstream_insecure_hosts,
    clientCertificates: values(settings.upstream_client_certificates.map(readClientCertificate)),
    minVersions: values(settings.tls_min_version.map(readTlsMinVersion)),
  };
}

/** The readable values; invalid entries were refused earlier, but a file may have changed since. */
function values<Value>(readings: readonly ({ readonly value: Value } | { readonly problem: string })[]): Value[] {
  return readings.flatMap((reading) => ("value" in reading ? [reading.value] : []));
}

/** The upstream proxy, fixed at start. */
function upstreamProxy({ upstream_proxy: { enabled, protocol, host, port } }: Settings): ProxyAddress | undefined {
  return enabled ? { protocol, host, port } : undefined;
}

function upstreamChoices({ upstream_proxy }: Settings): ProxyChoices {
  const { auth_username: username, auth_password: password, no_proxy_hosts: bypass } = upstream_proxy;
  return { credentials: username === null ? undefined : { username, password: password ?? "" }, bypass };
}

function readRoots(file: string | null): string | null {
  if (file === null) return null;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StartupError(`The file of additional roots ${file} cannot be read: ${(error as Error).message}`);
  }
}

function refuseExposure(settings: Settings, isInsecureAllowed: boolean): void {
  const problem = apiExposureProblem({ apiHost: settings.api_host, isAuthenticated: false, isInsecureAllowed });
  if (problem !== undefined) throw new StartupError(problem);
}

/** The started parts, stopped in reverse order. */
class StartedParts {
  readonly #stops: (() => unknown)[] = [];

  onStop(stop: () => unknown): void {
    this.#stops.push(stop);
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop();
  }
}
