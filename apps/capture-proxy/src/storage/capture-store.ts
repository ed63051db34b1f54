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
import type { ExchangeFacts } from "#exchange/exchange.ts";
import type { StreamStore } from "./streams/stream-store.ts";

export interface StorageStatus {
  readonly ok: boolean;
  /** Message while storage fails (disk full, read-only), else null. */
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

export interface SessionName {
  readonly id: string;
  readonly name: string | null;
}

export interface StoreEvents {
  /** Entries were removed for limits, `countForSize` of them for `max_total_size_mb`. */
  pruned(ids: readonly string[], countForSize: number): void;
  /** Another session became the active one. */
  sessionSwitched(before: SessionName, now: SessionName): void;
  /** Storage failed or recovered. */
  statusChanged(status: StorageStatus): void;
}

export interface RowWindow {
  readonly filter: TrafficFilter;
  readonly sort: string;
  readonly order: "asc" | "desc";
  readonly offset: number;
  readonly limit: number;
}

export interface MatchPreviewQuery {
  readonly condition: Condition;
  /** Matches in any of these. */
  readonly phases: readonly ("request" | "response")[];
  readonly sessionId: string | undefined;
  /** Maximum number of entries tried. */
  readonly limit: number;
  /** Maximum number of matching entries returned. */
  readonly sample: number;
  /** Entry that the condition is explained for; no explanation if it is not in the session. */
  readonly explain: string | undefined;
}

export interface BodyPart {
  /** Size of the whole body in the requested form. */
  readonly totalBytes: number;
  readonly start: number;
  readonly bytes: Uint8Array;
  readonly contentType: string | null;
  /** Bytes are missing: the input was truncated or is damaged. */
  readonly partial: boolean;
  /** A content coding could not be removed completely. Unless `partial`, `bytes` are the received ones. */
  readonly undecodable: boolean;
}

export interface StoreLimits {
  readonly maxRequests: number;
  readonly maxTotalSizeMb: number | null;
  readonly maxBodyBytes: number;
}

export interface EntryQuery {
  readonly filter: TrafficFilter;
  readonly limit: number;
  readonly offset: number;
  readonly cursor: string | undefined;
  readonly includeBodies: boolean;
  readonly signal: AbortSignal;
}

/** List rows as JSON text. */
export interface RowPage {
  readonly json: Uint8Array;
  readonly total: number;
}

/** Entries as JSON text; `isComplete` is false if the search stopped early. */
export interface EntryPage extends RowPage {
  readonly isComplete: boolean;
  /** Entries whose bodies were requested but exceeded the size budget. */
  readonly bodiesOmitted: number;
}

/** A document in chunks with its entry count. */
export interface DocumentExport {
  readonly total: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The captured traffic. `record` never blocks; a writer thread commits within 250 ms. */
export interface CaptureStore {
  readonly spool: BodySpool;
  readonly streams: StreamStore;
  /** Allocates an entry number; ascending across restarts. */
  nextSeq(): number;
  /** The list row as a reader would return it. */
  snapshotOf(seq: number, exchange: ExchangeFacts): TrafficSnapshot;
  /** Inserts or replaces an entry. `seq` is from nextSeq; called at the end, and once before for long exchanges. */
  record(seq: number, exchange: ExchangeFacts): void;
  /** Resolves when all records so far are committed. */
  flush(): Promise<void>;
  setLimits(limits: StoreLimits): void;
  status(): StorageStatus;
  on<K extends keyof StoreEvents>(event: K, listener: StoreEvents[K]): void;

  /** Session of new entries. */
  readonly activeSessionId: string;
  sessionIdOf(exchange: ExchangeFacts): string;
  /** Creates a session for clients that carry its number. `maxRequests` applies until it is closed. */
  openSession(name: string | null): Promise<{ readonly session: CaptureSession; readonly number: number }>;
  closeSession(number: number): Promise<void>;
  listSessions(): Promise<CaptureSession[]>;
  getSession(id: string): Promise<CaptureSession | undefined>;
  createSession(name: string | null, notes: string | null): Promise<CaptureSession>;
  updateSession(
    id: string,
    change: { name?: string; notes?: string | null; tags?: string[] },
  ): Promise<CaptureSession | undefined>;
  /** "active": the active session cannot be deleted. */
  deleteSession(id: string): Promise<"deleted" | "unknown" | "active">;
  /** Returns how many of the session's oldest entries exceed `maxRequests`; undefined if it does not exist. */
  switchSession(id: string): Promise<number | undefined>;

  /** JSON text, serialized on a reader thread. */
  listEntries(query: EntryQuery): Promise<EntryPage>;
  listRows(window: RowWindow, signal: AbortSignal): Promise<RowPage>;
  /** Newest matching rows of the active session. */
  latestRows(limit: number, filter: TrafficFilter, signal: AbortSignal): Promise<TrafficSnapshot[]>;
  count(filter: TrafficFilter, signal: AbortSignal): Promise<number>;
  summarize(filter: TrafficFilter, signal: AbortSignal): Promise<TrafficSummary>;
  /** Tries a condition on the newest entries of a session (undefined: the active one). */
  previewMatches(preview: MatchPreviewQuery, signal: AbortSignal): Promise<MatchPreview>;
  tree(filter: TrafficFilter, ofHost: string | undefined, signal: AbortSignal): Promise<TreeNode[]>;
  values(
    field: string,
    prefix: string,
    sessionId: string | undefined,
    limit: number,
  ): Promise<{ value: string; count: number }[]>;
  getEntry(id: string, options: { includeBodies: boolean; decompressed: boolean }): Promise<TrafficEntry | undefined>;
  getRow(id: string): Promise<TrafficSnapshot | undefined>;
  /** A range of a body; `end` is exclusive, undefined means to the end. At most 16 MiB per call. */
  readBody(
    id: string,
    side: "request" | "response",
    options: { decoded: boolean; utf8: boolean; start: number; end: number | undefined },
  ): Promise<BodyPart | undefined>;
  setNote(id: string, notes: string | null): Promise<boolean>;
  /** Returns the ids that existed. */
  deleteEntries(ids: readonly string[]): Promise<string[]>;
  clearSession(sessionId: string): Promise<void>;

  /** Oldest first, with raw bodies. */
  exportHar(filter: TrafficFilter, ids: readonly string[] | undefined, signal: AbortSignal): Promise<DocumentExport>;
  exportSession(id: string, signal: AbortSignal): Promise<DocumentExport | undefined>;
  importHar(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult>;
  importSession(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult>;

  /** Starts the reader threads early; otherwise the first read starts them and waits. */
  prepareReading(): void;
  /** Commits the queue and ends the threads. */
  close(): Promise<void>;
}

export interface ImportOptions {
  readonly sessionName: string | undefined;
  readonly switchSession: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: { bytes: number; entries: number }) => void;
}

const MIB = 1_048_576;

/** Number of entries above `maxRequests`. */
export function beyondLimit(entries: number, { maxRequests }: StoreLimits): number {
  return maxRequests === 0 ? 0 : Math.max(0, entries - maxRequests);
}

/** Size limit for the bodies of all sessions. */
export function maxBytes({ maxTotalSizeMb }: StoreLimits): number {
  return maxTotalSizeMb === null ? Number.POSITIVE_INFINITY : maxTotalSizeMb * MIB;
}
