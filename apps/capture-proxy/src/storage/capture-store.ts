import type {
  CaptureSession,
  Condition,
  ImportResult,
  MatchPreview,
  TrafficEntry,
  TrafficFilter,
  TrafficSnapshot,
  TrafficSummary,
  TreeNode,
} from "@headworks/capture-contract";
import type { BodySpool } from "#exchange/body.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { StreamStore } from "./streams/stream-store.ts";

/** How storage is doing. */
export interface StorageStatus {
  readonly ok: boolean;
  /** One sentence while something is wrong (disk full, read-only), else null. */
  readonly problem: string | null;
  readonly entryCount: number;
  readonly totalSizeBytes: number;
  readonly storeSizeBytes: number;
  readonly bodiesNotStored: number;
  readonly entriesLost: number;
  readonly backlogBytes: number;
  readonly backlogEntries: number;
  readonly writtenEntries: number;
  readonly lastBatchMs: number;
}

/** What the store tells the proxy thread unasked. */
export interface StoreEvents {
  /** Entries were removed to keep limits; so many of them for `max_total_size_mb`. */
  pruned(ids: readonly string[], countForSize: number): void;
  /** Storage stopped or started working. */
  statusChanged(status: StorageStatus): void;
}

export interface RowWindow {
  readonly filter: TrafficFilter;
  readonly sort: string;
  readonly order: "asc" | "desc";
  readonly offset: number;
  readonly limit: number;
}

export interface MatchQuestion {
  readonly condition: Condition;
  readonly phases: readonly ("request" | "response")[];
  readonly sessionId: string | undefined;
  /** Entries that are tried at most. */
  readonly limit: number;
  /** Matching entries that are given at most. */
  readonly sample: number;
  /** Id of an entry that the condition is explained for; without it in the session, the answer has no explanation. */
  readonly explain: string | undefined;
}

export interface BodyPart {
  /** Bytes of the whole body in the asked form. */
  readonly totalBytes: number;
  readonly start: number;
  readonly bytes: Uint8Array;
  readonly contentType: string | null;
  /** Bytes are missing: input was cut, or is damaged beyond some byte. */
  readonly partial: boolean;
  /** A coding could not be removed, or not beyond some byte. Unless `partial`, `bytes` are those that came. */
  readonly undecodable: boolean;
}

export interface StoreLimits {
  readonly maxRequests: number;
  readonly maxTotalSizeMb: number | null;
  readonly maxBodyBytes: number;
}

/** Entries that are asked for whole. */
export interface EntryQuery {
  readonly filter: TrafficFilter;
  readonly limit: number;
  readonly offset: number;
  readonly cursor: string | undefined;
  readonly includeBodies: boolean;
  readonly signal: AbortSignal;
}

/** List rows as JSON text, and how many there are in all. */
export interface RowPage {
  readonly json: Uint8Array;
  readonly total: number;
}

/** Entries as JSON text; `isComplete` false: not everything was looked at. */
export interface EntryPage extends RowPage {
  readonly isComplete: boolean;
  /** Entries whose bodies were asked for and found no room. */
  readonly bodiesOmitted: number;
}

/** A document in pieces, and how many entries it has. */
export interface DocumentExport {
  readonly total: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/**
 * The captured traffic. Writing never waits: `record` hands over and returns; a writer thread commits batches
 * (an exchange is on disk within 250 ms of its end). Reading happens on reader threads and never holds up the proxy thread.
 */
export interface CaptureStore {
  readonly spool: BodySpool;
  /** Frames of everything that streams. */
  readonly streams: StreamStore;
  /** Number of the next entry; ascending over restarts. */
  nextSeq(): number;
  /** The list row of an exchange as the store will give it. */
  snapshotOf(seq: number, exchange: ExchangeView): TrafficSnapshot;
  /** Stores or replaces an entry. `seq` from nextSeq; called once at the end, and once before for exchanges that take long. */
  record(seq: number, exchange: ExchangeView): void;
  /** Resolves when everything recorded so far is committed. */
  flush(): Promise<void>;
  setLimits(limits: StoreLimits): void;
  status(): StorageStatus;
  on<K extends keyof StoreEvents>(event: K, listener: StoreEvents[K]): void;

  /** Id of the session that new entries belong to. */
  readonly activeSessionId: string;
  /** Id of the session that an exchange belongs to. */
  sessionIdOf(exchange: ExchangeView): string;
  /**
   * Makes a session for exchanges whose clients carry its number; the active one stays. Until it is closed it keeps `maxRequests`
   * as the active one does.
   */
  openSession(name: string | null): Promise<{ readonly session: CaptureSession; readonly number: number }>;
  closeSession(number: number): Promise<void>;
  listSessions(): Promise<CaptureSession[]>;
  getSession(id: string): Promise<CaptureSession | undefined>;
  createSession(name: string | null, notes: string | null): Promise<CaptureSession>;
  updateSession(
    id: string,
    change: { name?: string; notes?: string | null; tags?: string[] },
  ): Promise<CaptureSession | undefined>;
  /** "active": it is the active one and stays. */
  deleteSession(id: string): Promise<"deleted" | "unknown" | "active">;
  /** Makes a session the active one; gives how many of its oldest entries `maxRequests` takes, undefined when there is none. */
  switchSession(id: string): Promise<number | undefined>;

  /** Entries as JSON text already, so that large lists cost the proxy thread nothing. */
  listEntries(query: EntryQuery): Promise<EntryPage>;
  listRows(window: RowWindow, signal: AbortSignal): Promise<RowPage>;
  /** The newest rows of the active session that a filter finds. */
  latestRows(limit: number, filter: TrafficFilter, signal: AbortSignal): Promise<TrafficSnapshot[]>;
  count(filter: TrafficFilter, signal: AbortSignal): Promise<number>;
  summarize(filter: TrafficFilter, signal: AbortSignal): Promise<TrafficSummary>;
  /** Tries a condition on the newest entries of a session (the active one when undefined), in any of the phases. */
  previewMatches(preview: MatchQuestion, signal: AbortSignal): Promise<MatchPreview>;
  tree(filter: TrafficFilter, ofHost: string | undefined, signal: AbortSignal): Promise<TreeNode[]>;
  values(
    field: string,
    prefix: string,
    sessionId: string | undefined,
    limit: number,
  ): Promise<{ value: string; count: number }[]>;
  getEntry(id: string, options: { includeBodies: boolean; decompressed: boolean }): Promise<TrafficEntry | undefined>;
  /** The list row of an entry. */
  getRow(id: string): Promise<TrafficSnapshot | undefined>;
  /** A range of a body: `end` exclusive, undefined to the end (bounded to 16 MiB a call). */
  readBody(
    id: string,
    side: "request" | "response",
    options: { decoded: boolean; utf8: boolean; start: number; end: number | undefined },
  ): Promise<BodyPart | undefined>;
  setNote(id: string, notes: string | null): Promise<boolean>;
  /** Removes entries; gives the ids that existed. */
  deleteEntries(ids: readonly string[]): Promise<string[]>;
  clearSession(sessionId: string): Promise<void>;

  /** Streams entries oldest first, full with raw bodies, in pieces of JSON-free records for exporters. */
  exportHar(filter: TrafficFilter, ids: readonly string[] | undefined, signal: AbortSignal): Promise<DocumentExport>;
  exportSession(id: string, signal: AbortSignal): Promise<DocumentExport | undefined>;
  importHar(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult>;
  importSession(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult>;

  /** Starts the threads that read; the first question does so otherwise, and waits for them. */
  prepareReading(): void;
  /** Commits what is queued and ends the threads. */
  close(): Promise<void>;
}

export interface ImportOptions {
  readonly sessionName: string | undefined;
  readonly switchSession: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: { bytes: number; entries: number }) => void;
}
