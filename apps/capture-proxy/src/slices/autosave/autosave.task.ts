import type { AutoSaveStatus, CaptureSession, Settings, SnapshotResult } from "@headworks/capture-contract";
import type { SliceHost } from "#slice.ts";
import { pruneSnapshots, removeLeftovers, writeSnapshot } from "./snapshot-files.ts";
import type { WrittenSnapshot } from "./snapshot-files.ts";

/** Sessions from here on tell how far their snapshot is. */
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
  /** One sentence for people. */
  readonly text: string;
}

type Parts = Pick<SliceHost, "store" | "settings" | "clock" | "log" | "events"> & {
  readonly defaultDir: string;
};

/**
 * Saves the active session: by the clock, and when somebody asks. Never two at a time; a cycle that is due while one is
 * being written is missed, and counted. A session that was followed by a new one and could not be saved is owed: each
 * cycle tries one of those first, and saves the active one whatever came of that.
 */
export class AutoSaveTask {
  readonly #parts: Parts;
  readonly #stop = new AbortController();
  #current: Promise<SnapshotResult> | undefined;
  /** The one that begins when the current one is over, for everybody who asked meanwhile. */
  #following: Promise<SnapshotResult> | undefined;
  #intervalMs: number | undefined;
  #nextDueMs = 0;
  #written = 0;
  #failed = 0;
  #missed = 0;
  #last: { readonly atMs: number; readonly result: SnapshotResult } | undefined;
  #rotatedMs: number | undefined;
  /** Why no session that is not owed was saved when that was last tried. */
  #failure: Failure | undefined;
  /** Sessions that a new one follows already and that are not saved, the next to be tried first; null was never tried. */
  readonly #owed = new Map<string, Failure | null>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Whether and how often there are cycles is decided here, for as long as the process runs. */
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

  /** Resolves when nothing is being written any more. What was half written is gone then. */
  async stopped(): Promise<void> {
    while (this.#current !== undefined) await this.#current.catch(() => undefined);
  }

  /** Saves the active session as it is now. Throws what kept it from being saved. */
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
    // What fails is in the status and in the log.
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

  /** One owed session, and then the active one. */
  async #saveDue(): Promise<SnapshotResult> {
    // A store that does not answer is told by the active one.
    const owed = await this.#nextOwed().catch(() => undefined);
    if (owed !== undefined) await this.#attempt(() => owed).catch(() => undefined);
    this.#stop.signal.throwIfAborted();
    return await this.#attempt(async () => await this.#rotated());
  }

  /** The owed session that was not tried for the longest time. One that is active again is saved as that. */
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

  /** Saves the session that `choose` gives, and keeps what came of it for the status and the log. */
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

  /** Ends what was told of failures, as far as this snapshot is proof of it. */
  #settle({ session_id: session, path }: SnapshotResult): void {
    const { log } = this.#parts;
    const owed = this.#owed.get(session);
    this.#owed.delete(session);
    if (owed) {
      // It says nothing of the active one, which may still fail.
      log.info({ session, path }, "A session that a new one follows is saved now");
      return;
    }
    if (this.#failure !== undefined) log.info({ path }, "Snapshots are saved again");
    this.#failure = undefined;
  }

  /** Said once until one is saved again; each failure is in the status. */
  #fail(error: unknown): void {
    const { clock, log } = this.#parts;
    if (this.#failure === undefined) log.warn({ err: error }, "A snapshot could not be saved");
    this.#failure = { atMs: clock.now(), text: failureSentence(error) };
  }

  /** Said once for each session; it is the last to be tried again. */
  #owe({ id, name }: CaptureSession, error: unknown): void {
    const { clock, log } = this.#parts;
    if (!this.#owed.get(id)) {
      log.warn({ err: error, session: id }, "A session that a new one follows is not saved; it is tried again");
    }
    this.#owed.delete(id);
    const text = `The session “${name}”, which a new one follows, is not saved: ${failureSentence(error)}`;
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
      written = await this.#told(session, total, chunks, write);
    } catch (error) {
      // A document nobody read to its end stays open in the thread that reads.
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

  /** Tells listeners how far a large snapshot is; small ones are over before anybody could look. */
  async #told<T>(
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

  /** The active session; a new one takes its place when it is large or old enough. */
  async #rotated(): Promise<CaptureSession> {
    const { store, clock, settings, events, log } = this.#parts;
    // What was recorded a moment ago counts.
    await store.flush();
    const session = await this.#activeSession();
    if (!isDue(session, settings.running.auto_save, clock.now())) return session;
    const next = await store.createSession(`Session ${timestamp(clock.now()).slice(0, 19)}Z`, null);
    await store.switchSession(next.id);
    if (!this.#owed.has(session.id)) this.#owed.set(session.id, null);
    this.#rotatedMs = clock.now();
    events.changed("sessions");
    log.info({ from: session.id, to: next.id }, "A new session follows the one that is saved now");
    return session;
  }
}

/** An empty session is never due: there is nothing that a new one would keep apart. */
function isDue(session: CaptureSession, settings: Settings["auto_save"], nowMs: number): boolean {
  const { rotate_after_requests: requests, rotate_after_minutes: minutes } = settings;
  if (session.request_count === 0) return false;
  if (requests !== null && requests > 0 && session.request_count >= requests) return true;
  return minutes !== null && minutes > 0 && nowMs - Date.parse(session.created_at) >= minutes * 60_000;
}

/** Both formats put a line end before each entry, and none inside of one. */
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

/** One sentence for people. */
export function failureSentence(error: unknown): string {
  const { code, message, path } = error as NodeJS.ErrnoException;
  const reason = code === undefined ? undefined : REASONS[code];
  return reason === undefined ? message : `${reason}${path === undefined ? "" : `: ${path}`}`;
}
