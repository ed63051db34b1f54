import { chmodSync, closeSync, fsyncSync, openSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { makeDirectorySync } from "@headworks/files";
import { StateStoreError, toStateStoreError } from "./state-store.ts";
import { CredentialTable, GenerationTable, OutboxTable, UsageTable } from "./state-tables.ts";
import {
  counterKey,
  type FromStore,
  type GroupMessage,
  type GroupOutcome,
  type StoreCallName,
  type StoreCalls,
  type StoreRequest,
  type StoreResponses,
  type StoreSetup,
  type ToStore,
} from "./store-messages.ts";

/** Number of changed counters or groups before a fold, which takes a few milliseconds. */
const MAX_PENDING = 2048;
const MAX_GROUPS = 512;

/**
 * Consumers and their counters. A group of charges is written as one row; folds move the newest values to the counters'
 * table in key order, because written pages dominate the cost. Unsigned 64-bit counters are stored bit for bit in
 * SQLite's signed integers; SQL never compares or adds them.
 */
class CounterTable {
  readonly #write: StatementSync;
  readonly #read: StatementSync;
  readonly #addConsumer: StatementSync;
  readonly #consumerId: StatementSync;
  readonly #newestBefore: StatementSync;
  readonly #deleteOld: StatementSync;
  readonly #addGroup: StatementSync;
  readonly #dropGroups: StatementSync;
  /** Durable values not yet folded, by counter key and window start. */
  readonly #pending = new Map<bigint, Map<bigint, bigint>>();
  #pendingCount = 0;
  #groupCount = 0;

  constructor(database: DatabaseSync) {
    this.#write = database.prepare(
      "INSERT INTO quota_counter (budget, window_start_s, consumer_id, used) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET used = excluded.used",
    );
    this.#read = database.prepare(
      "SELECT used FROM quota_counter WHERE budget = ? AND window_start_s = ? AND consumer_id = ?",
    );
    this.#read.setReadBigInts(true);
    this.#addConsumer = database.prepare(
      "INSERT INTO consumer (name, created_ms) VALUES (?, ?) ON CONFLICT DO NOTHING",
    );
    this.#consumerId = database.prepare("SELECT id FROM consumer WHERE name = ?");
    this.#newestBefore = database.prepare(
      "SELECT MAX(window_start_s) AS start FROM quota_counter WHERE budget = ? AND window_start_s < ?",
    );
    this.#deleteOld = database.prepare(
      "DELETE FROM quota_counter WHERE (budget, window_start_s, consumer_id) IN (SELECT budget, window_start_s, consumer_id FROM quota_counter WHERE budget = ? AND window_start_s < ? LIMIT ?)",
    );
    this.#addGroup = database.prepare("INSERT INTO quota_group (counters) VALUES (?)");
    this.#dropGroups = database.prepare("DELETE FROM quota_group");
    for (const row of database.prepare("SELECT counters FROM quota_group ORDER BY seq").all()) {
      // Copied, since BigInt64Array requires alignment.
      if (row["counters"] instanceof Uint8Array) this.#keep(new BigInt64Array(row["counters"].slice().buffer));
    }
  }

  /** Applies a group in the caller's transaction, or `writes` alone; call `committed` once durable. */
  apply(group: GroupMessage): Omit<GroupOutcome, "error"> {
    const { writes, loads, names } = group;
    if (writes !== undefined) this.#addGroup.run(new Uint8Array(writes.buffer, writes.byteOffset, writes.byteLength));
    return {
      loaded: loads === undefined ? undefined : this.#load(loads),
      ids: names?.map((name) => this.#idOf(name, group.nowMs)),
    };
  }

  committed({ writes }: GroupMessage): void {
    if (writes !== undefined) this.#keep(writes);
  }

  #keep(writes: BigInt64Array): void {
    this.#groupCount += 1;
    for (let at = 0; at + 2 < writes.length; at += 3) {
      const key = writes[at] ?? 0n;
      let windows = this.#pending.get(key);
      if (windows === undefined) {
        windows = new Map();
        this.#pending.set(key, windows);
      }
      const startS = writes[at + 1] ?? 0n;
      if (!windows.has(startS)) this.#pendingCount += 1;
      windows.set(startS, writes[at + 2] ?? 0n);
    }
  }

  /** True if a fold is due. */
  get isFoldDue(): boolean {
    return this.#pendingCount >= MAX_PENDING || this.#groupCount >= MAX_GROUPS;
  }

  get hasPending(): boolean {
    return this.#groupCount > 0;
  }

  /** Moves pending values into the counters' table within the caller's transaction; call `folded` after the commit. */
  fold(): void {
    const rows = [...this.#pending].flatMap(([key, windows]) =>
      [...windows].map(([startS, used]) => ({ budget: key & 1n, startS, consumerId: key >> 1n, used })),
    );
    rows.sort((a, b) => order(a.budget, b.budget) || order(a.startS, b.startS) || order(a.consumerId, b.consumerId));
    for (const { budget, startS, consumerId, used } of rows) this.#write.run(budget, startS, consumerId, used);
    this.#dropGroups.run();
  }

  folded(): void {
    this.#pending.clear();
    this.#pendingCount = 0;
    this.#groupCount = 0;
  }

  #load(loads: BigInt64Array): BigUint64Array {
    const values = new BigUint64Array(loads.length / 2);
    for (let index = 0; index < values.length; index += 1) {
      const key = loads[index * 2] ?? 0n;
      values[index] = this.#used(key, loads[index * 2 + 1] ?? 0n);
    }
    return values;
  }

  #idOf(name: string, nowMs: number): number {
    this.#addConsumer.run(name, Math.floor(nowMs));
    return Number(this.#consumerId.get(name)?.["id"]);
  }

  #used(key: bigint, startS: bigint): bigint {
    const used = this.#pending.get(key)?.get(startS) ?? this.#read.get(key & 1n, startS, key >> 1n)?.["used"];
    return BigInt.asUintN(64, typeof used === "bigint" ? used : 0n);
  }

  /** Counters of the windows per consumer; undefined without a row. */
  usageOf(
    names: readonly string[],
    windows: StoreCalls["usageOf"]["windows"],
  ): readonly (readonly bigint[] | undefined)[] {
    return names.map((name) => {
      const id = this.#consumerId.get(name)?.["id"];
      if (typeof id !== "number") return undefined;
      return windows.map(([budget, startS]) => this.#used(counterKey(id, budget), BigInt(startS)));
    });
  }

  /**
   * Deletes at most `limit` counters of windows that began before `beforeS`, and returns their number; requires that
   * nothing is pending. The newest `keptWindows` always stay: a temporarily wrong clock must not reset budgets.
   */
  prune(budget: number, beforeS: number, keptWindows: number, limit: number): number {
    let edgeS = Number.MAX_SAFE_INTEGER;
    for (let kept = 0; kept < keptWindows; kept += 1) {
      const start = this.#newestBefore.get(budget, edgeS)?.["start"];
      if (typeof start !== "number") return 0;
      edgeS = start;
    }
    return Number(this.#deleteOld.run(budget, Math.min(edgeS, Math.floor(beforeS)), limit).changes);
  }
}

const order = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/u;
const OWN = new URL("./migrations/", import.meta.url);

/** The SQLite application id "SLUI"; protects databases of other programs. */
const APPLICATION_ID = 0x53_4c_55_49;

/** Best of 1, 2, 4, 8 and 16 KiB (bench/gateway/quota.bench.ts): a commit writes whole pages to the WAL. */
const PAGE_BYTES = 4096;
const DAY_S = 86_400;
/** Retention of daily and monthly counters in seconds and in windows. */
const KEPT_DAILY = { seconds: 40 * DAY_S, windows: 40 };
const KEPT_MONTHLY = { seconds: 430 * DAY_S, windows: 14 };
const KEPT_HOURS_S = 40 * DAY_S;
const KEPT_DAYS_S = 400 * DAY_S;
const KEPT_ACKNOWLEDGED_MS = DAY_S * 1000;
const KEPT_RETIRED_MS = 30 * DAY_S * 1000;
/** Rows deleted per transaction: a few milliseconds. */
const PRUNE_STEP = 1000;

/** The thread side of the state store, which owns the file and handles messages in order. */
export class StoreThread {
  readonly #setup: StoreSetup;
  readonly #database: DatabaseSync;
  readonly #post: (message: FromStore) => void;
  readonly #counters: CounterTable;
  readonly #outbox: OutboxTable;
  readonly #generations: GenerationTable;
  readonly #usage: UsageTable;
  readonly #credentials: CredentialTable;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #mustCheckpoint = false;

  /** Throws {@link StateStoreError} if the file cannot be opened. */
  constructor(setup: StoreSetup, post: (message: FromStore) => void) {
    this.#setup = setup;
    this.#post = post;
    this.#database = openStateDatabase(setup);
    this.#counters = new CounterTable(this.#database);
    this.#outbox = new OutboxTable(this.#database);
    this.#generations = new GenerationTable(this.#database);
    this.#usage = new UsageTable(this.#database);
    this.#credentials = new CredentialTable(this.#database);
    this.#begin = this.#database.prepare("BEGIN IMMEDIATE");
    this.#commit = this.#database.prepare("COMMIT");
    this.#fold();
  }

  receive(message: Exclude<ToStore, { kind: "close" }>): void {
    if (message.kind === "group") this.#receiveGroup(message);
    else this.#receiveCall(message.call, message.request);
  }

  close(): void {
    this.#tryFold();
    this.#database.close();
  }

  #receiveGroup(group: GroupMessage): void {
    try {
      const isOneStatement = group.loads === undefined && group.names === undefined;
      const apply = (): Omit<GroupOutcome, "error"> => this.#counters.apply(group);
      // The common case: a single statement is its own transaction, with a third of the calls.
      const outcome = isOneStatement ? this.#durably(apply) : this.#transaction(apply);
      this.#counters.committed(group);
      this.#post({ kind: "settled", error: undefined, ...outcome });
      if (this.#counters.isFoldDue) this.#tryFold();
    } catch (error) {
      this.#post({ kind: "settled", error: this.#describe(error), loaded: undefined, ids: undefined });
    }
  }

  #fold(): void {
    if (!this.#counters.hasPending) return;
    this.#transaction(() => this.#counters.fold());
    this.#counters.folded();
  }

  /** A failed fold is harmless: values stay pending, and the next group reports the error. */
  #tryFold(): void {
    try {
      this.#fold();
    } catch {
      return;
    }
  }

  #receiveCall(call: number, request: StoreRequest): void {
    try {
      this.#post({ kind: "response", call, value: this.#response(request) });
    } catch (error) {
      this.#post({ kind: "failed", call, error: this.#describe(error) });
    }
  }

  #response(request: StoreRequest): StoreResponses[StoreCallName] {
    switch (request.name) {
      case "usageOf":
        return this.#counters.usageOf(request.input.names, request.input.windows);
      case "appendEvent":
        return this.#transaction(() => this.#outbox.append(request.input, request.input.nowMs));
      case "acknowledgeEvent": {
        const { id, target, nowMs } = request.input;
        return this.#transaction(() => this.#outbox.acknowledge(id, target, nowMs));
      }
      case "pendingEvents":
        return this.#outbox.pending(request.input.afterSeq);
      case "addGeneration":
        return this.#transaction(() => this.#generations.add(request.input));
      case "generations":
        return this.#generations.newest(request.input.limit);
      case "generation":
        return this.#generations.find(request.input.number);
      case "addUsage":
        return this.#transaction(() => this.#usage.add(request.input));
      case "usageTotals":
        return this.#usage.firstRollup(request.input.span, request.input.fromS, request.input.toS);
      case "oldestHour":
        return this.#usage.oldestHour();
      case "addRun":
        return this.#transaction(() => this.#usage.addRun(request.input));
      case "runs":
        return this.#usage.runs(request.input.limit);
      case "lastScheduled":
        return this.#usage.lastScheduled(request.input.window, request.input.beforeS);
      case "credentials":
        return this.#credentials.all();
      case "addCredential":
        return this.#transaction(() => this.#credentials.add(request.input));
      case "retireCredential":
        return this.#transaction(() => this.#credentials.retire(request.input.id, request.input.atMs));
      case "prune":
        this.#fold();
        return this.#transaction(() => this.#prune(request.input.nowMs));
    }
  }

  /** One step per kind; true when nothing is left to delete. */
  #prune(nowMs: number): boolean {
    const nowS = nowMs / 1000;
    const deleted = [
      this.#counters.prune(0, nowS - KEPT_DAILY.seconds, KEPT_DAILY.windows, PRUNE_STEP),
      this.#counters.prune(1, nowS - KEPT_MONTHLY.seconds, KEPT_MONTHLY.windows, PRUNE_STEP),
      this.#usage.prune("hour", nowS - KEPT_HOURS_S, PRUNE_STEP),
      this.#usage.prune("day", nowS - KEPT_DAYS_S, PRUNE_STEP),
      this.#outbox.prune(nowMs - KEPT_ACKNOWLEDGED_MS, PRUNE_STEP),
      this.#credentials.prune(nowMs - KEPT_RETIRED_MS, PRUNE_STEP),
    ];
    return deleted.every((count) => count < PRUNE_STEP);
  }

  /** Atomic, and durable on return. */
  #transaction<T>(work: () => T): T {
    return this.#durably(() => {
      this.#begin.run();
      try {
        const result = work();
        this.#commit.run();
        return result;
      } catch (error) {
        // SQLite itself rolls back on some errors, such as a full disk.
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        throw error;
      }
    });
  }

  /** `work` is one transaction, or one statement outside of any. */
  #durably<T>(work: () => T): T {
    this.#recover();
    try {
      return work();
    } catch (error) {
      this.#mustCheckpoint ||= toStateStoreError(error, this.#setup.path).errorKind === "io";
      throw error;
    }
  }

  /**
   * After a failed write or fsync, the page cache may wrongly consider WAL pages written. Checkpoints and restarts the
   * WAL before anything else is acknowledged.
   */
  #recover(): void {
    if (!this.#mustCheckpoint) return;
    this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    this.#mustCheckpoint = false;
  }

  #describe(error: unknown): string {
    return toStateStoreError(error, this.#setup.path).message;
  }
}

interface OpenScope extends MigrationScope {
  readonly path: string;
  /** For benchmarks. */
  readonly pageBytes?: number;
}

/**
 * Opens the file, creating it and its directory, and migrates the schema. The connection locks the file exclusively,
 * since counters are cached in memory. Throws {@link StateStoreError}.
 */
export function openStateDatabase(scope: OpenScope): DatabaseSync {
  const { path } = scope;
  try {
    const undo = makePrivateFile(path);
    const database = new DatabaseSync(path, { timeout: 0 });
    try {
      prepareConnection(database, scope);
      return database;
    } catch (error) {
      database.close();
      if (isOfOthers(error, path)) undo();
      throw error;
    }
  } catch (error) {
    throw toStateStoreError(error, path);
  }
}

function isOfOthers(error: unknown, path: string): boolean {
  const { errorKind } = toStateStoreError(error, path);
  return errorKind === "foreign" || errorKind === "corrupt";
}

function prepareConnection(database: DatabaseSync, scope: OpenScope): void {
  // Must precede any read: it selects a WAL index in process memory instead of a shared file.
  database.exec("PRAGMA locking_mode = EXCLUSIVE");
  database.exec(`PRAGMA page_size = ${scope.pageBytes ?? PAGE_BYTES}`);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA foreign_keys = ON");
  // Functions called by a foreign schema are untrusted.
  database.exec("PRAGMA trusted_schema = OFF");
  // Detects a read-only file now instead of at the first charge.
  database.exec("BEGIN IMMEDIATE");
  database.exec("ROLLBACK");
  const id = database.prepare("PRAGMA application_id").get()?.["application_id"];
  const isEmpty = database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (id !== APPLICATION_ID && !(isEmpty && schemaVersion(database) === 0)) {
    throw new StateStoreError("foreign", `${scope.path} is the database of another program: name another file`);
  }
  if (isEmpty) database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  applyMigrations(database, scope);
}

interface MigrationScope {
  readonly path: string;
  readonly nowMs: number;
  /** Directory of `NNNN-topic.sql` files; overridden in tests. */
  readonly migrations?: URL;
}

/** The last applied migration; 0 for an empty file. */
function schemaVersion(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
}

/**
 * Applies pending migrations, each in a transaction with its number. A file with data is first copied to
 * `<file>.bak-<version>-<unix seconds>-<milliseconds>`. Throws for a file of a newer version.
 */
function applyMigrations(database: DatabaseSync, scope: MigrationScope): void {
  const scripts = readScripts(scope.migrations ?? OWN);
  const version = schemaVersion(database);
  if (version > scripts.length) {
    throw new StateStoreError(
      "too-new",
      `${scope.path} has schema version ${version}, this program knows up to ${scripts.length}: start the newer program that wrote it, or go back to its backup`,
    );
  }
  if (version === scripts.length) return;
  if (version > 0) copyDatabase(database, backupPath(scope.path, version, scope.nowMs));
  for (const [index, sql] of scripts.entries()) {
    if (index >= version) applyScript(database, sql, index + 1);
  }
}

function applyScript(database: DatabaseSync, sql: string, version: number): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    database.exec(sql);
    database.exec(`PRAGMA user_version = ${version}`);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function backupPath(path: string, version: number, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  const milliseconds = String(Math.floor(nowMs) - seconds * 1000).padStart(3, "0");
  return `${path}.bak-${version}-${seconds}-${milliseconds}`;
}

/** Numbers must be 1, 2, 3 … without gaps or duplicates. */
function readScripts(folder: URL): string[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .toSorted();
  return names.map((name, index) => {
    if (Number(FILE_NAME.exec(name)?.[1]) !== index + 1) {
      throw new Error(`The migration ${name} should have the number ${index + 1}`);
    }
    return readFileSync(new URL(name, folder), "utf8");
  });
}

/**
 * Creates the file and directory as private, or removes permissions of others. SQLite would use the umask for a new
 * file; its WAL inherits the file's mode. Returns an undo function for a file of another program. Throws {@link
 * StateStoreError} if it is no regular file.
 */
function makePrivateFile(path: string): () => void {
  makeDirectorySync(dirname(path));
  try {
    closeSync(openSync(path, "wx", 0o600));
    syncFolder(dirname(path));
    return () => undefined;
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  }
  const found = statSync(path);
  if (found.isDirectory()) throw new StateStoreError("foreign", `${path} is a directory: name a file in it`);
  if (!found.isFile()) throw new StateStoreError("foreign", `${path} is no regular file: name another one`);
  // Not opened here: closing it would release POSIX locks held by this process.
  chmodSync(path, 0o600);
  return () => chmodSync(path, found.mode & 0o7777);
}

/** Copies the open database consistently and durably. Throws and removes a partial copy. */
function copyDatabase(database: DatabaseSync, path: string): void {
  closeSync(openSync(path, "wx", 0o600));
  try {
    database.prepare("VACUUM INTO ?").run(path);
    const file = openSync(path, "r+");
    fsyncSync(file);
    closeSync(file);
    syncFolder(dirname(path));
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

function syncFolder(path: string): void {
  // Not supported on Windows.
  if (process.platform === "win32") return;
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

const port = parentPort;
if (port !== null) {
  const setup = workerData as StoreSetup;
  const post = (message: FromStore): void => port.postMessage(message);
  try {
    const thread = new StoreThread(setup, post);
    port.on("message", (message: ToStore) => {
      if (message.kind !== "close") return thread.receive(message);
      thread.close();
      port.close();
    });
    post({ kind: "ready" });
  } catch (error) {
    const { errorKind, message } = toStateStoreError(error, setup.path);
    post({ kind: "refused", errorKind, error: message });
  }
}
