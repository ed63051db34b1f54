import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Worker } from "node:worker_threads";
import type {
  CaptureSession,
  ImportResult,
  MatchPreview,
  TrafficEntry,
  TrafficFilter,
  TrafficSnapshot,
  TrafficSummary,
  TreeNode,
} from "@headworks/capture-contract";
import { makeDirectorySync } from "@headworks/files";
import type { BodySpool } from "#exchange/body.ts";
import type { ExchangeFacts, ExchangeView } from "#exchange/exchange.ts";
import type {
  BodyPart,
  CaptureStore,
  DocumentExport,
  EntryPage,
  EntryQuery,
  ImportOptions,
  MatchPreviewQuery,
  RowPage,
  RowWindow,
  StorageStatus,
  SessionName,
  StoreEvents,
  StoreLimits,
} from "./capture-store.ts";
import {
  type FrameListener,
  type FrameQuery,
  type StoredFrame,
  STREAM_KINDS,
  type StreamGroup,
  type StreamGroupQuery,
  type StreamKind,
  type StreamQuery,
  type StreamRecorder,
  type StreamRow,
  type StreamStats,
  type StreamStore,
} from "./streams/stream-store.ts";
import { SessionImports } from "./import/session-imports.ts";
import { readerOf, ReaderPool, type SessionScope } from "./read/reader-client.ts";
import { shownSession } from "./sessions/session-table.ts";
import { lockForThisProcess, rejectForeignFile, rejectLinkedFile, storePaths, type StorePaths } from "./store-files.ts";
import { snapshotOfExchange } from "./write/exchange-record.ts";
import { WriterClient } from "./write/writer-client.ts";
import type { SessionRecord, StoreChange } from "./write/writer-messages.ts";

interface StoreLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

interface CaptureStoreOptions {
  readonly dataDir: string;
  /** Default: `traffic.db` in the data directory. Bodies of another file are stored beside it, in `<name>-bodies`. */
  readonly databasePath?: string | undefined;
  readonly limits: StoreLimits;
  readonly log: StoreLog;
  readonly clock: { now(): number };
  /** A thread started early; otherwise the store starts one. */
  readonly writer?: Worker | undefined;
}

/** Ids deleted per transaction. */
const DELETED_AT_ONCE = 1000;

/**
 * Opens or creates the captured traffic of a data directory, exclusively for this process. Rejects with one message if
 * another process uses it, if a newer version or another program wrote it, or if it is not writable.
 */
export async function openCaptureStore(options: CaptureStoreOptions): Promise<CaptureStore> {
  const { locks, isElsewhere, ...setup } = storePaths(options.dataDir, options.databasePath);
  makeDirectorySync(options.dataDir);
  makeDirectorySync(dirname(setup.path));
  const unlocks: (() => void)[] = [];
  const unlock = (): void => {
    for (const release of unlocks.splice(0)) release();
  };
  try {
    if (isElsewhere) rejectForeignFile(setup.path);
    for (const [file, shownPath] of locks) unlocks.push(lockForThisProcess(file, shownPath));
    rejectLinkedFile(setup.path);
    rmSync(setup.decodedFolder, { recursive: true, force: true });
    const store = new ThreadedCaptureStore(options, unlock);
    await store.start(setup);
    return store;
  } catch (error) {
    unlock();
    throw error;
  }
}

/** Proxy thread's side: one writer thread, two reader threads. */
function sessionName({ id, name }: SessionRecord): SessionName {
  return { id, name };
}

class ThreadedCaptureStore implements CaptureStore {
  readonly #options: CaptureStoreOptions;
  readonly #unlock: () => void;
  #reportedSession: SessionRecord | undefined;
  readonly #listeners: { [K in keyof StoreEvents]: StoreEvents[K][] } = {
    pruned: [],
    statusChanged: [],
    sessionSwitched: [],
  };
  readonly #imports = new SessionImports({
    writer: () => this.#writer,
    create: async (name) => await this.#createSession(name, null, true),
    sessions: this,
    textsFolder: (session) => join(this.#decodedFolder, `import-${session}`),
  });
  #decodedFolder = "";
  #openWriter: WriterClient | undefined;
  #openReaders: ReaderPool | undefined;
  #openStreams: StreamStore | undefined;

  constructor(options: CaptureStoreOptions, unlock: () => void) {
    this.#options = options;
    this.#unlock = unlock;
  }

  async start(setup: Omit<StorePaths, "locks" | "isElsewhere">): Promise<void> {
    const { log } = this.#options;
    this.#decodedFolder = setup.decodedFolder;
    this.#openWriter = await WriterClient.start(
      { path: setup.path, bodiesFolder: setup.bodiesFolder, limits: this.#options.limits },
      {
        changed: (change) => this.#changed(change),
        statusChanged: () => {
          // Undefined only during start.
          const writer = this.#openWriter;
          if (writer !== undefined) for (const listener of this.#listeners.statusChanged) listener(writer.status());
        },
        alarm: (message) => log.error({}, message),
        databaseReplaced: () => this.#openReaders?.reopen(),
      },
      this.#options.writer,
    );
    const index = { path: `${setup.path}.index`, firstNewSeq: this.#openWriter.firstSeq };
    this.#openReaders = new ReaderPool(
      { ...setup, index },
      { caughtUp: () => this.#writer.caughtUp(), onBroken: (reason) => log.error({}, reason) },
    );
    this.#openStreams = new ThreadedStreamStore(this.#openWriter, this.#openReaders);
    this.#reportedSession = this.#activeSession;
  }

  get spool(): BodySpool {
    return this.#writer.spool;
  }

  get streams(): StreamStore {
    if (this.#openStreams === undefined) throw new Error("The store is not open");
    return this.#openStreams;
  }

  nextSeq(): number {
    return this.#writer.nextSeq();
  }

  snapshotOf(seq: number, exchange: ExchangeFacts): TrafficSnapshot {
    return snapshotOfExchange(seq, this.sessionIdOf(exchange), exchange);
  }

  sessionIdOf({ client }: ExchangeFacts): string {
    // A deleted session receives no entries.
    const own = client.session === undefined ? undefined : this.#writer.sessions.get(client.session);
    return (own ?? this.#activeSession).id;
  }

  record(seq: number, exchange: ExchangeFacts): void {
    this.#writer.record(seq, exchange);
  }

  async flush(): Promise<void> {
    await this.#writer.flush();
  }

  setLimits(limits: StoreLimits): void {
    this.#writer.setLimits(limits);
  }

  status(): StorageStatus {
    return this.#writer.status();
  }

  on<K extends keyof StoreEvents>(event: K, listener: StoreEvents[K]): void {
    this.#listeners[event].push(listener);
  }

  get activeSessionId(): string {
    return this.#activeSession.id;
  }

  async listSessions(): Promise<CaptureSession[]> {
    return [...this.#writer.sessions.values()]
      .filter((session) => !this.#imports.isRunning(session.id))
      .sort((left, right) => right.updatedMs - left.updatedMs || right.number - left.number)
      .map((session) => this.#shownSession(session));
  }

  async getSession(id: string): Promise<CaptureSession | undefined> {
    const session = this.#imports.isRunning(id) ? undefined : this.#sessionById(id);
    return session === undefined ? undefined : this.#shownSession(session);
  }

  async createSession(name: string | null, notes: string | null): Promise<CaptureSession> {
    return this.#shownSession(await this.#createSession(name, notes, false));
  }

  async openSession(name: string | null): Promise<{ readonly session: CaptureSession; readonly number: number }> {
    const record = await this.#createSession(name, null, false);
    await this.#writer.call({ op: "receive", session: record.number, isReceiving: true });
    return { session: this.#shownSession(record), number: record.number };
  }

  async closeSession(number: number): Promise<void> {
    await this.#writer.call({ op: "receive", session: number, isReceiving: false });
  }

  async updateSession(
    id: string,
    change: { name?: string; notes?: string | null; tags?: string[] },
  ): Promise<CaptureSession | undefined> {
    const nowMs = this.#options.clock.now();
    const updated = await this.#writer.call({ op: "updateSession", id, ...change, nowMs });
    return updated === undefined ? undefined : this.#shownSession(updated as SessionRecord);
  }

  async deleteSession(id: string): Promise<"deleted" | "unknown" | "active"> {
    return (await this.#writer.call({ op: "deleteSession", id })) as "deleted" | "unknown" | "active";
  }

  async switchSession(id: string): Promise<number | undefined> {
    if (this.#imports.isRunning(id)) return undefined;
    const taken = await this.#writer.call({ op: "switchSession", id, nowMs: this.#options.clock.now() });
    return taken as number | undefined;
  }

  async listEntries(query: EntryQuery): Promise<EntryPage> {
    const { signal, ...rest } = query;
    const { filter } = query;
    const request = () => ({ op: "entries", scope: this.#scope(filter.session_id), ...rest }) as const;
    return await this.#readers.read(readerOf(filter), request, signal);
  }

  async listRows(window: RowWindow, signal: AbortSignal): Promise<RowPage> {
    const { filter, sort } = window;
    const reader = sort === "seq" ? readerOf(filter) : "scan";
    const request = () => ({ op: "rows", scope: this.#scope(filter.session_id), ...window }) as const;
    return await this.#readers.read(reader, request, signal);
  }

  async latestRows(limit: number, filter: TrafficFilter, signal: AbortSignal): Promise<TrafficSnapshot[]> {
    const request = () => ({ op: "latest", scope: this.#scope(undefined), limit, filter }) as const;
    return await this.#readers.read(readerOf(filter), request, signal);
  }

  async count(filter: TrafficFilter, signal: AbortSignal): Promise<number> {
    const request = () => ({ op: "count", scope: this.#scope(filter.session_id), filter }) as const;
    return await this.#readers.read(readerOf(filter), request, signal);
  }

  async summarize(filter: TrafficFilter, signal: AbortSignal): Promise<TrafficSummary> {
    const request = () => ({ op: "summary", scope: this.#scope(filter.session_id), filter }) as const;
    return await this.#readers.read("scan", request, signal);
  }

  async previewMatches(preview: MatchPreviewQuery, signal: AbortSignal): Promise<MatchPreview> {
    const { sessionId, condition, ...rest } = preview;
    const text = JSON.stringify(condition);
    const request = () => ({ op: "preview", scope: this.#scope(sessionId), condition: text, ...rest }) as const;
    return await this.#readers.read("scan", request, signal);
  }

  async tree(filter: TrafficFilter, ofHost: string | undefined, signal: AbortSignal): Promise<TreeNode[]> {
    const request = () => ({ op: "tree", scope: this.#scope(filter.session_id), filter, ofHost }) as const;
    return await this.#readers.read("scan", request, signal);
  }

  async values(
    field: string,
    prefix: string,
    sessionId: string | undefined,
    limit: number,
  ): Promise<{ value: string; count: number }[]> {
    const request = () => ({ op: "values", scope: this.#scope(sessionId), field, prefix, limit }) as const;
    return await this.#readers.read("quick", request);
  }

  async getEntry(
    id: string,
    options: { includeBodies: boolean; decompressed: boolean },
  ): Promise<TrafficEntry | undefined> {
    return await this.#readers.read("quick", () => ({ op: "entry", id, sessions: this.#writer.sessions, ...options }));
  }

  async getRow(id: string): Promise<TrafficSnapshot | undefined> {
    return await this.#readers.read("quick", () => ({ op: "row", id, sessions: this.#writer.sessions }));
  }

  async readBody(
    id: string,
    side: "request" | "response",
    options: { decoded: boolean; utf8: boolean; start: number; end: number | undefined },
  ): Promise<BodyPart | undefined> {
    const request = () => ({ op: "body", id, side, sessions: this.#writer.sessions, ...options }) as const;
    return await this.#readers.read("quick", request);
  }

  async setNote(id: string, notes: string | null): Promise<boolean> {
    return (await this.#writer.call({ op: "setNote", id, note: notes === "" ? null : notes })) === true;
  }

  async deleteEntries(ids: readonly string[]): Promise<string[]> {
    const removed: string[] = [];
    for (let from = 0; from < ids.length; from += DELETED_AT_ONCE) {
      const part = await this.#writer.call({ op: "deleteEntries", ids: ids.slice(from, from + DELETED_AT_ONCE) });
      for (const id of part as string[]) removed.push(id);
    }
    return removed;
  }

  async clearSession(sessionId: string): Promise<void> {
    await this.#writer.clearSession(sessionId, this.#options.clock.now());
  }

  async exportHar(
    filter: TrafficFilter,
    ids: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<DocumentExport> {
    return await this.#export(filter, ids, undefined, signal);
  }

  async exportSession(id: string, signal: AbortSignal): Promise<DocumentExport | undefined> {
    const session = await this.getSession(id);
    return session === undefined ? undefined : await this.#export({ session_id: id }, undefined, session, signal);
  }

  async importHar(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult> {
    return await this.#imports.run("har", source, options);
  }

  async importSession(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult> {
    return await this.#imports.run("session", source, options);
  }

  async close(): Promise<void> {
    await this.#readers.close();
    await this.#writer.close();
    this.#unlock();
  }

  async #createSession(name: string | null, notes: string | null, isProvisional: boolean): Promise<SessionRecord> {
    const nowMs = this.#options.clock.now();
    const id = randomUUID();
    return (await this.#writer.call({ op: "createSession", id, name, notes, nowMs, isProvisional })) as SessionRecord;
  }

  async #export(
    filter: TrafficFilter,
    ids: readonly string[] | undefined,
    session: CaptureSession | undefined,
    signal: AbortSignal,
  ): Promise<DocumentExport> {
    const readers = this.#readers;
    const request = () =>
      ({
        op: "exportOpen",
        scope: this.#scope(filter.session_id),
        filter,
        ids,
        sessions: this.#writer.sessions,
        session,
        exportedAt: new Date(this.#options.clock.now()).toISOString(),
      }) as const;
    const { handle, total } = await readers.read<{ handle: number; total: number }>("scan", request, signal);
    const source = {
      next: async () => {
        const part = await readers.readMore<{ bytes?: Uint8Array }>("scan", { op: "exportNext", handle }, signal);
        return part.bytes;
      },
      close: async () => await readers.readMore<void>("scan", { op: "exportClose", handle }),
    };
    return { total, chunks: exportChunks(source, signal) };
  }

  prepareReading(): void {
    this.#readers.start();
  }

  get #writer(): WriterClient {
    if (this.#openWriter === undefined) throw new Error("The store is not open");
    return this.#openWriter;
  }

  get #readers(): ReaderPool {
    if (this.#openReaders === undefined) throw new Error("The store is not open");
    return this.#openReaders;
  }

  get #activeSession(): SessionRecord {
    const session = this.#writer.sessions.get(this.#writer.activeSession);
    if (session === undefined) throw new Error("There is no active session");
    return session;
  }

  #changed(change: StoreChange): void {
    this.#openReaders?.note(change);
    this.#imports.pruned(change.prunedForSize);
    this.#reportSwitch();
    if (change.prunedIds.length === 0) return;
    for (const listener of this.#listeners.pruned) listener(change.prunedIds, change.prunedForSize);
  }

  #reportSwitch(): void {
    if (this.#reportedSession === undefined) return;
    const before = this.#reportedSession;
    const now = this.#activeSession;
    if (now.number === before.number) return;
    this.#reportedSession = now;
    for (const listener of this.#listeners.sessionSwitched) listener(sessionName(before), sessionName(now));
  }

  #sessionById(id: string): SessionRecord | undefined {
    for (const session of this.#writer.sessions.values()) if (session.id === id) return session;
    return undefined;
  }

  /** An unknown session has no entries. */
  #scope(sessionId: string | undefined): SessionScope {
    const session = sessionId === undefined ? this.#activeSession : this.#sessionById(sessionId);
    if (session === undefined) return { number: -1, id: sessionId ?? "", floorSeq: 0, entryCount: 0 };
    return { number: session.number, id: session.id, floorSeq: session.floorSeq, entryCount: session.entryCount };
  }

  #shownSession(session: SessionRecord): CaptureSession {
    return shownSession(session, session.number === this.#writer.activeSession);
  }
}

/** The proxy thread's side of the stream tables. */
class ThreadedStreamStore implements StreamStore {
  readonly #writer: WriterClient;
  readonly #readers: ReaderPool;

  constructor(writer: WriterClient, readers: ReaderPool) {
    this.#writer = writer;
    this.#readers = readers;
  }

  open(exchange: ExchangeView, kind: StreamKind): StreamRecorder {
    return this.#writer.frames.open(exchange, kind);
  }

  async listStreams(query: StreamQuery, signal?: AbortSignal): Promise<{ streams: StreamRow[]; total: number }> {
    return await this.#readers.read("quick", () => ({ op: "streams", query, sessions: this.#sessions }), signal);
  }

  async listGroups(query: StreamGroupQuery, signal?: AbortSignal): Promise<{ groups: StreamGroup[]; total: number }> {
    return await this.#readers.read("scan", () => ({ op: "streamGroups", query, sessions: this.#sessions }), signal);
  }

  async getStream(id: string): Promise<StreamRow | undefined> {
    return await this.#readers.read("quick", () => ({ op: "stream", id, sessions: this.#sessions }));
  }

  async listFrames(query: FrameQuery, signal?: AbortSignal): Promise<{ frames: StoredFrame[]; total: number }> {
    const reader = query.search === undefined || query.search === "" ? "quick" : "scan";
    return await this.#readers.read(reader, () => ({ op: "frames", query, sessions: this.#sessions }), signal);
  }

  async frameBytes(streamId: string, ordinal: number): Promise<Buffer | undefined> {
    const request = () => ({ op: "frameBytes", id: streamId, ordinal, sessions: this.#sessions }) as const;
    const { bytes } = await this.#readers.read<{ bytes?: Uint8Array }>("quick", request);
    return bytes === undefined ? undefined : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  async clear(kind: StreamKind): Promise<void> {
    await this.#writer.call({ op: "clearStreams", kind: STREAM_KINDS.indexOf(kind) });
  }

  async stats(kind: StreamKind): Promise<StreamStats> {
    return await this.#readers.read("quick", () => ({ op: "streamStats", kind, sessions: this.#sessions }));
  }

  onOpened(listener: (exchange: ExchangeView) => void): void {
    this.#writer.frames.openedListeners.push(listener);
  }

  onFrame(listener: FrameListener): void {
    this.#writer.frames.frameListeners.push(listener);
  }

  get #sessions(): WriterClient["sessions"] {
    return this.#writer.sessions;
  }
}

interface PieceSource {
  /** Undefined after the last piece. */
  next(): Promise<Uint8Array | undefined>;
  /** Called once. */
  close(): Promise<void>;
}

/** Iterates the pieces of a document on demand; closes the source at the end or on abort. */
function exportChunks(source: PieceSource, signal: AbortSignal): AsyncIterableIterator<Uint8Array, undefined> {
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    signal.removeEventListener("abort", onAbort);
    closing ??= source.close();
    await closing;
  };
  // Closing fails only if the thread is gone, and the source with it.
  const onAbort = (): void => void close().catch(() => undefined);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  const chunks: AsyncIterableIterator<Uint8Array, undefined> = {
    next: async () => {
      signal.throwIfAborted();
      if (closing !== undefined) return { done: true, value: undefined };
      try {
        const value = await source.next();
        if (value !== undefined) return { done: false, value };
      } catch (error) {
        await close().catch(() => undefined);
        throw error;
      }
      await close();
      return { done: true, value: undefined };
    },
    return: async () => {
      await close();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => chunks,
  };
  return chunks;
}
