import type { StoreLimits } from "../capture-store.ts";
import type { FrameBatch } from "../streams/stream-message.ts";

/** A session as the writer keeps it. */
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
  /** Entries up to this number were cleared. */
  readonly floorSeq: number;
}

/** What the writer thread starts with. */
export interface WriterSetup {
  readonly path: string;
  readonly bodiesFolder: string;
  readonly limits: StoreLimits;
}

/** Entries that must be committed together. */
export interface RecordBatch {
  readonly kind: "batch";
  readonly entries: number;
  /** Of text and bodies. */
  readonly bytes: number;
  /** As `BatchMemory` fills it. */
  readonly memory: ArrayBuffer;
  /** Imported entries are numbered here: the first gets this number, the others follow. */
  readonly firstSeq?: number;
}

/** Changes that are answered when they are on disk. */
export type WriterCall =
  | {
      readonly op: "createSession";
      readonly id: string;
      readonly name: string | null;
      readonly notes: string | null;
      readonly nowMs: number;
      /** It goes at the next start unless it is kept: an import that is cut off leaves nothing behind. */
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
  /** One step of what the limits demand; gives whether there is more to do. */
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
  /** Entries and streams up to these numbers go, those too that wait to be stored. */
  | {
      readonly op: "clearSession";
      readonly id: string;
      readonly nowMs: number;
      readonly upToSeq: number;
      readonly upToStream: number;
    }
  | { readonly op: "setNote"; readonly id: string; readonly note: string | null }
  | { readonly op: "deleteEntries"; readonly ids: readonly string[] }
  /** Frames of a kind, by its code, and its streams that are closed. */
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

/** What changed in the database, for caches elsewhere. */
export interface StoreChange {
  /** Sessions whose facts changed, as they are now. */
  readonly sessions: readonly SessionRecord[];
  readonly removedSessions: readonly number[];
  readonly activeSession: number;
  /** Entries rewritten, or inserted below a number that was committed before. */
  readonly changedSeqs: readonly number[];
  /** Entries whose streams went on, while their rows stayed as they were. */
  readonly streamedSeqs: readonly number[];
  readonly removedSeqs: readonly number[];
  /** Removed to keep limits; a part of the removed ones. */
  readonly prunedIds: readonly string[];
  /** So many of those because the bodies of all sessions are too large. */
  readonly prunedForSize: number;
  /** A session was cleared: cached lists are void. */
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
  /** It cannot be opened; `isStorageError` as of `callFailed`. */
  | { readonly kind: "refused"; readonly error: string; readonly tooNew: boolean; readonly isStorageError: boolean }
  | { readonly kind: "change"; readonly change: StoreChange }
  | {
      readonly kind: "committed";
      readonly entries: number;
      readonly bytes: number;
      readonly written: number;
      readonly lost: number;
      readonly bodiesNotStored: number;
      readonly ms: number;
      /** That of the batch. */
      readonly memory: ArrayBuffer;
    }
  | { readonly kind: "framesCommitted"; readonly bytes: number }
  | { readonly kind: "pieceDone"; readonly bytes: number }
  /** `refusal` is the end of a sentence that says why, where it is to be said. */
  | { readonly kind: "fileFailed"; readonly file: number; readonly refusal: string | null }
  | { readonly kind: "size"; readonly bytes: number }
  | { readonly kind: "problem"; readonly problem: string | null }
  | { readonly kind: "reopened"; readonly movedAside: string }
  | { readonly kind: "response"; readonly call: number; readonly value: unknown }
  | {
      readonly kind: "callFailed";
      readonly call: number;
      readonly error: string;
      /** It is the disk that refuses, or the file: nobody's defect. */
      readonly isStorageError: boolean;
    }
  /** `refusal` is the end of a sentence that says why something was not stored. */
  | { readonly kind: "closed"; readonly refusal: string | null };
