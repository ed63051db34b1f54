import type { StoreLimits } from "../capture-store.ts";
import type { FrameBatch } from "../streams/stream-store.ts";

export interface SessionRecord {
  readonly number: number;
  readonly id: string;
  readonly name: string | null;
  readonly notes: string | null;
  readonly tags: readonly string[];
  readonly createdMs: number;
  readonly updatedMs: number;
  readonly entryCount: number;
  readonly storedBytes: number;
  /** Highest number of a cleared entry. */
  readonly floorSeq: number;
}

export interface WriterSetup {
  readonly path: string;
  readonly bodiesFolder: string;
  readonly limits: StoreLimits;
}

/** Entries committed in one transaction. */
export interface RecordBatch {
  readonly kind: "batch";
  readonly entries: number;
  /** Size of text and bodies. */
  readonly bytes: number;
  /** Layout: `BatchMemory`. */
  readonly memory: ArrayBuffer;
  /** Imported entries only: number of the first, the others follow. */
  readonly firstSeq?: number;
}

/** Requests that are answered once the change is durable. */
export type WriterCall =
  | {
      readonly op: "createSession";
      readonly id: string;
      readonly name: string | null;
      readonly notes: string | null;
      readonly nowMs: number;
      /** Removed at the next start unless kept, so an aborted import leaves nothing behind. */
      readonly isProvisional: boolean;
    }
  | {
      readonly op: "updateSession";
      readonly id: string;
      readonly name?: string;
      readonly notes?: string | null;
      readonly tags?: readonly string[];
      readonly nowMs: number;
    }
  | { readonly op: "keepSession"; readonly id: string }
  /** One retention step; returns whether more is to do. */
  | { readonly op: "tidy" }
  | {
      readonly op: "appendBody";
      readonly file: number;
      readonly bytes: Uint8Array<ArrayBuffer>;
      readonly isLast: boolean;
    }
  | { readonly op: "deleteSession"; readonly id: string }
  | { readonly op: "receive"; readonly session: number; readonly isReceiving: boolean }
  | { readonly op: "switchSession"; readonly id: string; readonly nowMs: number }
  /** Clears entries and streams up to these numbers, queued ones included. */
  | {
      readonly op: "clearSession";
      readonly id: string;
      readonly nowMs: number;
      readonly upToSeq: number;
      readonly upToStream: number;
    }
  | { readonly op: "setNote"; readonly id: string; readonly note: string | null }
  | { readonly op: "deleteEntries"; readonly ids: readonly string[] }
  /** Clears the frames of a kind, by code, and its closed streams. */
  | { readonly op: "clearStreams"; readonly kind: number };

export type ToWriter =
  | RecordBatch
  | FrameBatch
  | { readonly kind: "piece"; readonly file: number; readonly bytes: Uint8Array }
  | { readonly kind: "fileEnd"; readonly file: number }
  | { readonly kind: "fileDiscard"; readonly file: number }
  | { readonly kind: "limits"; readonly limits: StoreLimits }
  | { readonly kind: "call"; readonly call: number; readonly request: WriterCall }
  | { readonly kind: "close" };

/** A committed change, for caches. */
export interface StoreChange {
  /** Sessions with changed fields, in their new state. */
  readonly sessions: readonly SessionRecord[];
  readonly removedSessions: readonly number[];
  readonly activeSession: number;
  /** Entries rewritten, or inserted below an already committed number. */
  readonly changedSeqs: readonly number[];
  /** Entries with new stream data and unchanged rows. */
  readonly streamedSeqs: readonly number[];
  readonly removedSeqs: readonly number[];
  /** Removed for limits; a subset of `removedSeqs`. */
  readonly prunedIds: readonly string[];
  /** How many of `prunedIds` were removed for the size limit. */
  readonly prunedForSize: number;
  /** A session was cleared: cached lists are invalid. */
  readonly reset: boolean;
}

export type FromWriter =
  | {
      readonly kind: "ready";
      readonly change: StoreChange;
      readonly nextSeq: number;
      readonly nextFile: number;
      readonly nextStream: number;
      readonly movedAside: string | null;
    }
  /** The database cannot be opened. */
  | { readonly kind: "openFailed"; readonly error: string; readonly tooNew: boolean; readonly isStorageError: boolean }
  | { readonly kind: "change"; readonly change: StoreChange }
  | {
      readonly kind: "committed";
      readonly entries: number;
      readonly bytes: number;
      readonly written: number;
      readonly lost: number;
      readonly bodiesNotStored: number;
      readonly ms: number;
      /** Returned for reuse. */
      readonly memory: ArrayBuffer;
    }
  | { readonly kind: "framesCommitted"; readonly bytes: number }
  | { readonly kind: "pieceDone"; readonly bytes: number }
  /** `failureReason` completes a message with the reason; null if it was reported before. */
  | { readonly kind: "fileFailed"; readonly file: number; readonly failureReason: string | null }
  | { readonly kind: "size"; readonly bytes: number }
  | { readonly kind: "problem"; readonly problem: string | null }
  | { readonly kind: "reopened"; readonly movedAside: string }
  | { readonly kind: "response"; readonly call: number; readonly value: unknown }
  | {
      readonly kind: "callFailed";
      readonly call: number;
      readonly error: string;
      /** Caused by the disk or the file, not by a defect. */
      readonly isStorageError: boolean;
    }
  /** `failureReason` completes a message with the reason why data was not stored. */
  | { readonly kind: "closed"; readonly failureReason: string | null };
