/** A body to edit, without content coding. */
export interface TextJob {
  readonly id: number;
  /** JSON text, since structured cloning would lose the digits of numbers. */
  readonly action: string;
  readonly bytes: Uint8Array;
  readonly contentType: string | undefined;
}

/** The edited body and its charset when that changed, or the reason why it is unchanged. */
export type EditedBytes =
  | { readonly bytes: Uint8Array<ArrayBuffer>; readonly newCharset: string | undefined; readonly words: string }
  | { readonly problem: string };

export interface TextReply {
  readonly id: number;
  readonly edited: EditedBytes;
}
