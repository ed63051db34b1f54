import type { AutoSaveStatus, CaptureSession, Settings, SnapshotResult } from "@headworks/capture-contract";
import type { SliceHost } from "#slice.ts";
import { pruneSnapshots, removeLeftovers, writeSnapshot } from "./snapshot-files.ts";
import type { WrittenSnapshot } from "./snapshot-files.ts";

/** Snapshots of sessions from this size on report their progress. */
const LARGE_ENTRIES = 1000;
const LARGE_BYTES = 33_554_432;
const LINE_END = 0x0a;

type Outcome = Pick<
  AutoSaveStatus,
  | "running"
  | "saving"
  | "next_snapshot"
  | "last_snapshot"
  | "last_snapshot_path"
  | "last_snapshot_bytes"
  | "last_snapshot_entries"
  | "last_error"
  | "last_error_at"
  | "snapshots_written"
  | "snapshots_failed"
  | "last_rotation"
  | "cycles_missed"
>;

interface Failure {
  readonly atMs: number;
  readonly text: string;
}

type Parts = Pick<SliceHost, "store" | "settings" | "clock" | "log" | "events"> & {
  readonly defaultDir: string;
};

/**
 * Saves the active session at intervals and on request, one snapshot at a time. A cycle that is due during a snapshot
 * is skipped and counted. A session that rotation replaced before it was saved is owed: each cycle retries one owed
 * session, then saves the active one in any case.
 */
export class AutoSaveTask {
  readonly #parts: Parts;
  readonly #stop = new AbortController();
  #current: Promise<SnapshotResult> | undefined;
  /** The next snapshot, shared by all requests that arrive during the current one. */
  #following: Promise<SnapshotResult> | undefined;
  #intervalMs: number | undefined;
  #nextDueMs = 0;
  #written = 0;
  #failed = 0;
  #missed = 0;
  #last: { readonly atMs: number; readonly result: SnapshotResult } | undefined;
  #rotatedMs: number | undefined;
  /** The last failure that does not concern an owed session. */
  #failure: Failure | undefined;
  /** Sessions to be retried, the next one first; null before the first attempt. */
  readonly #owed = new Map<string, Failure | null>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** `enabled` and the interval are read once; changes apply after a restart. */
  start(signal: AbortSignal): void {
    const { settings, clock } = this.#parts;
    const { enabled, interval_seconds: intervalSeconds } = settings.running.auto_save;
    signal.addEventListener("abort", () => this.#stop.abort(new Error("Weir stops")), { once: true });
    if (!enabled) return;
    const intervalMs = intervalSeconds * 1000;
    this.#intervalMs = intervalMs;
    this.#nextDueMs = clock.monotonic() + intervalMs;
    const stopTimer = clock.every(intervalMs, () => this.#cycle());
    signal.addEventListener("abort", stopTimer, { once: true });
  }

  /** Resolves when the current snapshot has ended and its temporary file is removed. */
  async stopped(): Promise<void> {
    while (this.#current !== undefined) await this.#current.catch(() => undefined);
  }

  /** Saves the active session; rejects with the reason for a failure. */
  async saveNow(): Promise<SnapshotResult> {
    if (this.#current === undefined) return await this.#begin(async () => await this.#saveActive());
    this.#following ??= this.#afterCurrent(this.#current);
    return await this.#following;
  }

  status(): Outcome {
    const { clock } = this.#parts;
    const last = this.#last;
    const failure = this.#newestFailure();
    const next = this.#intervalMs === undefined ? null : clock.now() + this.#nextDueMs - clock.monotonic();
    return {
      running: this.#intervalMs !== undefined,
      saving: this.#current !== undefined,
      next_snapshot: next === null ? null : timestamp(next),
      last_snapshot: last === undefined ? null : timestamp(last.atMs),
      last_snapshot_path: last?.result.path ?? null,
      last_snapshot_bytes: last?.result.size_bytes ?? null,
      last_snapshot_entries: last?.result.entries ?? null,
      last_error: failure?.text ?? null,
      last_error_at: failure ? timestamp(failure.atMs) : null,
      snapshots_written: this.#written,
      snapshots_failed: this.#failed,
      last_rotation: this.#rotatedMs === undefined ? null : timestamp(this.#rotatedMs),
      cycles_missed: this.#missed,
    };
  }

  #newestFailure(): Failure | undefined {
    return [...this.#owed.values(), this.#failure]
      .filter((failure) => failure !== null && failure !== undefined)
      .toSorted((one, other) => one.atMs - other.atMs)
      .at(-1);
  }

  #cycle(): void {
    this.#nextDueMs = this.#parts.clock.monotonic() + (this.#intervalMs ?? 0);
    if (this.#current !== undefined) {
      this.#missed += 1;
      return;
    }
    // The status and the log report the failure.
    this.#begin(async () => await this.#saveDue()).catch(() => undefined);
  }

  async #afterCurrent(current: Promise<SnapshotResult>): Promise<SnapshotResult> {
    await current.catch(() => undefined);
    this.#following = undefined;
    return await this.saveNow();
  }

  async #begin(save: () => Promise<SnapshotResult>): Promise<SnapshotResult> {
    const current = save();
    this.#current = current;
    this.#parts.events.changed("autosave");
    try {
      return await current;
    } finally {
      this.#current = undefined;
      this.#parts.events.changed("autosave");
    }
  }

  async #saveActive(): Promise<SnapshotResult> {
    return await this.#attempt(async () => await this.#activeSession());
  }

  /** Saves one owed session, then the active one. */
  async #saveDue(): Promise<SnapshotResult> {
    // A store that does not respond also fails the active session's snapshot, which reports it.
    const owed = await this.#nextOwed().catch(() => undefined);
    if (owed !== undefined) await this.#attempt(() => owed).catch(() => undefined);
    this.#stop.signal.throwIfAborted();
    return await this.#attempt(async () => await this.#rotated());
  }

  /** The owed session with the oldest attempt. An owed session that is active again is saved as the active one. */
  async #nextOwed(): Promise<CaptureSession | undefined> {
    const { store } = this.#parts;
    for (const id of this.#owed.keys()) {
      if (id === store.activeSessionId) continue;
      const session = await store.getSession(id);
      if (session !== undefined) return session;
      this.#owed.delete(id);
    }
    return undefined;
  }

  /** Saves the session that `choose` returns and records the outcome for the status and the log. */
  async #attempt(choose: () => CaptureSession | Promise<CaptureSession>): Promise<SnapshotResult> {
    const { clock, settings } = this.#parts;
    let session: CaptureSession | undefined;
    try {
      session = await choose();
      const result = await this.#save(session, settings.running.auto_save);
      this.#written += 1;
      this.#last = { atMs: clock.now(), result };
      this.#settle(result);
      return result;
    } catch (error) {
      this.#failed += 1;
      if (session !== undefined && this.#owed.has(session.id)) this.#owe(session, error);
      else this.#fail(error);
      throw error;
    }
  }

  /** Clears the failures that this snapshot disproves. */
  #settle({ session_id: session, path }: SnapshotResult): void {
    const { log } = this.#parts;
    const owed = this.#owed.get(session);
    this.#owed.delete(session);
    if (owed) {
      // The active session may still fail.
      log.info({ session, path }, "A replaced session is saved now");
      return;
    }
    if (this.#failure !== undefined) log.info({ path }, "Snapshots are saved again");
    this.#failure = undefined;
  }

  /** Logs the first failure only, until a snapshot succeeds; the status holds the latest. */
  #fail(error: unknown): void {
    const { clock, log } = this.#parts;
    if (this.#failure === undefined) log.warn({ err: error }, "A snapshot could not be saved");
    this.#failure = { atMs: clock.now(), text: failureSentence(error) };
  }

  /** Logs the first failure of each session and moves the session to the end of the retries. */
  #owe({ id, name }: CaptureSession, error: unknown): void {
    const { clock, log } = this.#parts;
    if (!this.#owed.get(id)) {
      log.warn({ err: error, session: id }, "A replaced session could not be saved; it will be retried");
    }
    this.#owed.delete(id);
    const text = `The replaced session “${name}” is not saved: ${failureSentence(error)}`;
    this.#owed.set(id, { atMs: clock.now(), text });
  }

  async #save(session: CaptureSession, settings: Settings["auto_save"]): Promise<SnapshotResult> {
    const { store, clock, defaultDir } = this.#parts;
    const { signal } = this.#stop;
    const directory = settings.output_dir ?? defaultDir;
    const problem = this.#parts.settings.outputProblem(directory, "snapshots");
    if (problem !== undefined) throw new Error(`auto_save.output_dir ${problem}`);
    const format = settings.export_format;
    await removeLeftovers(directory, clock.now());
    await store.flush();
    const document =
      format === "har"
        ? await store.exportHar({ session_id: session.id }, undefined, signal)
        : await store.exportSession(session.id, signal);
    if (document === undefined) throw new Error("The session was removed before it was saved");
    const { total, chunks } = document;
    const target = { atMs: clock.now(), format };
    const write = async (pieces: AsyncIterable<Uint8Array>) => await writeSnapshot(directory, target, pieces, signal);
    let written: WrittenSnapshot;
    try {
      written = await this.#withProgress(session, total, chunks, write);
    } catch (error) {
      // A document that is not read to its end would stay open in the reader thread.
      await chunks[Symbol.asyncIterator]().return?.();
      throw error;
    }
    const pruned = await pruneSnapshots(directory, settings.max_backups, written.name);
    return {
      success: true,
      message: "Snapshot saved",
      output_dir: directory,
      path: written.path,
      size_bytes: written.sizeBytes,
      entries: total,
      session_id: session.id,
      pruned,
    };
  }

  /** Reports the progress of large snapshots; small ones finish too soon. */
  async #withProgress<T>(
    session: CaptureSession,
    total: number,
    chunks: AsyncIterable<Uint8Array>,
    write: (chunks: AsyncIterable<Uint8Array>) => Promise<T>,
  ): Promise<T> {
    if (total < LARGE_ENTRIES && session.total_size_bytes < LARGE_BYTES) return await write(chunks);
    let written: T | undefined;
    const start = { id: undefined, kind: "snapshot", contentLength: undefined, totalEntries: total } as const;
    await this.#parts.events.task(start, async (report) => {
      written = await write(counted(chunks, total, report));
      return { completed: total };
    });
    return written as T;
  }

  async #activeSession(): Promise<CaptureSession> {
    const { store } = this.#parts;
    const session = await store.getSession(store.activeSessionId);
    if (session === undefined) throw new Error("There is no active session");
    return session;
  }

  /** The active session; a new session replaces it when it is large or old enough. */
  async #rotated(): Promise<CaptureSession> {
    const { store, clock, settings, events, log } = this.#parts;
    // Includes entries that are still queued.
    await store.flush();
    const session = await this.#activeSession();
    if (!isDue(session, settings.running.auto_save, clock.now())) return session;
    const next = await store.createSession(`Session ${timestamp(clock.now()).slice(0, 19)}Z`, null);
    await store.switchSession(next.id);
    if (!this.#owed.has(session.id)) this.#owed.set(session.id, null);
    this.#rotatedMs = clock.now();
    events.changed("sessions");
    log.info({ from: session.id, to: next.id }, "The session is saved and replaced by a new one");
    return session;
  }
}

/** An empty session is never rotated. */
function isDue(session: CaptureSession, settings: Settings["auto_save"], nowMs: number): boolean {
  const { rotate_after_requests: requests, rotate_after_minutes: minutes } = settings;
  if (session.request_count === 0) return false;
  if (requests !== null && requests > 0 && session.request_count >= requests) return true;
  return minutes !== null && minutes > 0 && nowMs - Date.parse(session.created_at) >= minutes * 60_000;
}

/** Counts entries: both formats put a line end before each entry and none inside. */
async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  total: number,
  report: (soFar: { bytes: number; entries: number }) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let entries = 0;
  for await (const chunk of chunks) {
    yield chunk;
    bytes += chunk.length;
    for (let at = chunk.indexOf(LINE_END); at >= 0; at = chunk.indexOf(LINE_END, at + 1)) entries += 1;
    report({ bytes, entries: Math.min(entries, total) });
  }
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "The disk is full",
  EDQUOT: "The disk quota is used up",
  EROFS: "The file system is read-only",
  EACCES: "This user may not write there",
  EPERM: "This user may not write there",
  ENOTDIR: "A part of the path is a file",
  EEXIST: "A file has the name of the directory",
};

export function failureSentence(error: unknown): string {
  const { code, message, path } = error as NodeJS.ErrnoException;
  const reason = code === undefined ? undefined : REASONS[code];
  return reason === undefined ? message : `${reason}${path === undefined ? "" : `: ${path}`}`;
}
