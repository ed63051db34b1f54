/** What an import starts with. */
export interface ImportSetup {
  readonly format: "har" | "session";
  readonly sessionNumber: number;
  readonly maxBodyBytes: number;
}

export type ToImport = { readonly kind: "chunk"; readonly bytes: Uint8Array } | { readonly kind: "end" };

/** What the document says about itself. */
export interface ImportedSession {
  readonly name?: string;
  readonly notes?: string | null;
  readonly tags?: readonly string[];
  readonly switchSession?: boolean;
}

export type FromImport =
  | {
      readonly kind: "batch";
      readonly entries: number;
      readonly bytes: number;
      readonly text: string;
      readonly bodies: ArrayBuffer;
    }
  | { readonly kind: "taken"; readonly entries: number }
  | {
      readonly kind: "done";
      readonly imported: number;
      readonly skipped: number;
      readonly errors: readonly string[];
      readonly session: ImportedSession;
    }
  | { readonly kind: "refused"; readonly message: string };
