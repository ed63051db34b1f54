import type { FrameBatch } from "../streams/stream-message.ts";
import type { RecordBatch } from "../write/writer-messages.ts";

/** What an import starts with. */
export interface ImportSetup {
  readonly format: "har" | "session";
  readonly sessionNumber: number;
  /** Large bodies are given files from this number on. */
  readonly firstFile: number;
  /** Streams are numbered from this number on. */
  readonly firstStream: number;
  /** Bodies of other programs are cut here, as captured ones are; what this one exported as a session is restored whole. */
  readonly maxBodyBytes: number;
  /** For long strings of the document while their entry is read; made when it is needed, removed when the import is over. */
  readonly textsFolder: string;
}

/** So many numbers of files are set aside for an import. */
export const FILES_OF_AN_IMPORT = 1_000_000;

/** So many numbers of streams are set aside for an import. */
export const STREAMS_OF_AN_IMPORT = 1_000_000;

/** So many sentences are told of an import. */
export const MAX_ERRORS = 100;

export type ToImport =
  | { readonly kind: "chunk"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** Bytes of bodies that have reached their files. */
  | { readonly kind: "written"; readonly bytes: number }
  | { readonly kind: "end" };

/** What the document says about itself. */
export interface ImportedSession {
  readonly name?: string;
  readonly notes?: string | null;
  readonly tags?: readonly string[];
  readonly switchSession?: boolean;
}

export type FromImport =
  | { readonly kind: "frames"; readonly batch: FrameBatch }
  | RecordBatch
  | { readonly kind: "body"; readonly file: number; readonly bytes: Uint8Array<ArrayBuffer>; readonly isLast: boolean }
  /** Files of an entry that cannot be used after all. */
  | { readonly kind: "discard"; readonly files: readonly number[] }
  | { readonly kind: "taken"; readonly entries: number }
  | {
      readonly kind: "done";
      readonly imported: number;
      readonly skipped: number;
      /** At most {@link MAX_ERRORS}. */
      readonly errors: readonly string[];
      /** How many sentences there were besides. */
      readonly moreErrors: number;
      readonly session: ImportedSession;
    }
  | { readonly kind: "refused"; readonly message: string };
