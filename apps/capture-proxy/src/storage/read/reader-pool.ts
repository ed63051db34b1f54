import type { TrafficFilter } from "@headworks/capture-contract";
import { ReaderClient } from "./reader-client.ts";
import type { ReaderRequest, ReaderSetup } from "./reader-messages.ts";
import type { StoreChange } from "../write/writer-messages.ts";

/** Quick look-ups do not queue behind scans; scans reuse the sets cached in their thread. */
export type ReaderKind = "quick" | "scan";

/** Filters beyond the session may need a scan. */
export function readerOf(filter: TrafficFilter): ReaderKind {
  return Object.keys(filter).some((name) => name !== "session_id") ? "scan" : "quick";
}

/** Failures of both threads within this time have one cause, such as missing descriptors or memory. */
const SAME_REASON_MS = 1000;

export interface ReaderPoolOwner {
  /** Resolves when all records so far are committed; undefined if they are. */
  caughtUp(): Promise<void> | undefined;
  /** Called once when both threads fail within {@link SAME_REASON_MS}. */
  onBroken(reason: string): void;
}

/** Two reader threads, started early or with their first request. */
export class ReaderPool {
  readonly #readers: Readonly<Record<ReaderKind, ReaderClient>>;
  readonly #owner: ReaderPoolOwner;
  #lastReason = { text: "", atMs: Number.NEGATIVE_INFINITY };

  constructor(setup: ReaderSetup, owner: ReaderPoolOwner) {
    const onBroken = (reason: string): void => this.#onBroken(reason);
    this.#owner = owner;
    this.#readers = {
      quick: new ReaderClient({ ...setup, index: undefined }, "weir-reader-quick", onBroken),
      scan: new ReaderClient(setup, "weir-reader-scan", onBroken),
    };
  }

  /** Loads the code (about 100 ms) before the first request. */
  start(): void {
    for (const reader of Object.values(this.#readers)) reader.start();
  }

  /**
   * Rejects with the signal's reason on abort and with {@link ReaderError} on failure. A request sees everything
   * recorded before it. `question` is called after those commits, so that its session scope is current.
   */
  async ask<T>(reader: ReaderKind, question: () => ReaderRequest, signal?: AbortSignal): Promise<T> {
    await this.#owner.caughtUp();
    return (await this.#readers[reader].ask(question(), signal)) as T;
  }

  /** Requests the next part of a result. */
  async goOn<T>(reader: ReaderKind, request: ReaderRequest, signal?: AbortSignal): Promise<T> {
    return (await this.#readers[reader].ask(request, signal)) as T;
  }

  /** Invalidates caches. */
  note(change: StoreChange): void {
    const { changedSeqs, streamedSeqs, removedSeqs, reset } = change;
    if (changedSeqs.length + streamedSeqs.length + removedSeqs.length === 0 && !reset) return;
    const message = { kind: "change", changedSeqs, streamedSeqs, removedSeqs, reset } as const;
    for (const reader of Object.values(this.#readers)) reader.tell(message);
  }

  /** The database was replaced by a new file. */
  reopen(): void {
    for (const reader of Object.values(this.#readers)) reader.tell({ kind: "reopen" });
  }

  #onBroken(text: string): void {
    const atMs = performance.now();
    if (text === this.#lastReason.text && atMs - this.#lastReason.atMs < SAME_REASON_MS) return;
    this.#lastReason = { text, atMs };
    this.#owner.onBroken(text);
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#readers).map(async (reader) => await reader.close()));
  }
}
