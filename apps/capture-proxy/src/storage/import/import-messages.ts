import type { FrameBatch } from "../streams/stream-message.ts";
import type { RecordBatch } from "../write/writer-messages.ts";

export interface ImportSetup {
  readonly format: "har" | "session";
  readonly sessionNumber: number;
  /** First number for files of large bodies. */
  readonly firstFile: number;
  /** First stream number. */
  readonly firstStream: number;
  /** Bodies of other programs are truncated here like captured ones; native sessions are restored completely. */
  readonly maxBodyBytes: number;
  /** For long strings while their entry is read; created on demand, removed after the import. */
  readonly textsFolder: string;
}

/** File numbers reserved per import. */
export const FILES_OF_AN_IMPORT = 1_000_000;

/** Stream numbers reserved per import. */
export const STREAMS_OF_AN_IMPORT = 1_000_000;

/** Maximum reported sentences per import. */
export const MAX_ERRORS = 100;

export type ToImport =
  | { readonly kind: "chunk"; readonly bytes: Uint8Array<ArrayBuffer> }
  /** Body bytes written to files. */
  | { readonly kind: "written"; readonly bytes: number }
  | { readonly kind: "end" };

/** Session facts of the document. */
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
  /** Files of a rejected entry. */
  | { readonly kind: "discard"; readonly files: readonly number[] }
  | { readonly kind: "taken"; readonly entries: number }
  | {
      readonly kind: "done";
      readonly imported: number;
      readonly skipped: number;
      /** At most {@link MAX_ERRORS}. */
      readonly errors: readonly string[];
      /** Number of further errors. */
      readonly moreErrors: number;
      readonly session: ImportedSession;
    }
  | { readonly kind: "refused"; readonly message: string };
