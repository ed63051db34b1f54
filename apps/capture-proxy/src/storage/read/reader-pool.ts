import type { TrafficFilter } from "@headworks/capture-contract";
import { ReaderClient } from "./reader-client.ts";
import type { ReaderRequest, ReaderSetup } from "./reader-messages.ts";
import type { StoreChange } from "../write/writer-messages.ts";

/** Which thread answers: quick look-ups must not wait behind scans, and scans find their sets where they left them. */
export type ReaderKind = "quick" | "scan";

/** A filter that looks at more than the session may have to scan. */
export function readerOf(filter: TrafficFilter): ReaderKind {
  return Object.keys(filter).some((name) => name !== "session_id") ? "scan" : "quick";
}

/** What breaks the one thread for want of descriptors or memory breaks the other a moment later. */
const SAME_REASON_MS = 1000;

/** What a pool needs of its owner. */
export interface ReaderPoolOwner {
  /** Resolves when everything recorded so far is committed; undefined when it is already. */
  caughtUp(): Promise<void> | undefined;
  /** Told once of what both threads broke over within a second. */
  onBroken(reason: string): void;
}

/** The threads that read. Each starts with its first question, unless it was started before. */
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

  /** Loading their code takes a tenth of a second, which the first question then need not wait for. */
  start(): void {
    for (const reader of Object.values(this.#readers)) reader.start();
  }

  /**
   * Asks; rejects with the signal's reason when it aborts, with {@link ReaderError} when the thread cannot answer. The
   * answer knows everything that was recorded before: who heard of an entry and asks then must find it. `question` is
   * called when that holds, so that what it says of sessions holds too.
   */
  async ask<T>(reader: ReaderKind, question: () => ReaderRequest, signal?: AbortSignal): Promise<T> {
    await this.#owner.caughtUp();
    return (await this.#readers[reader].ask(question(), signal)) as T;
  }

  /** Asks for the next part of an answer. */
  async goOn<T>(reader: ReaderKind, request: ReaderRequest, signal?: AbortSignal): Promise<T> {
    return (await this.#readers[reader].ask(request, signal)) as T;
  }

  /** Caches follow the store. */
  note(change: StoreChange): void {
    const { changedSeqs, streamedSeqs, removedSeqs, reset } = change;
    if (changedSeqs.length + streamedSeqs.length + removedSeqs.length === 0 && !reset) return;
    const message = { kind: "change", changedSeqs, streamedSeqs, removedSeqs, reset } as const;
    for (const reader of Object.values(this.#readers)) reader.tell(message);
  }

  /** The database file is another one now. */
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
