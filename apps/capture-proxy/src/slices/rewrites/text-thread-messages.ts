/** A body to be edited, content codings undone. */
export interface TextJob {
  readonly id: number;
  /** The action as JSON text, which keeps the digits of its numbers; a copy of the object would not. */
  readonly action: string;
  readonly bytes: Uint8Array;
  readonly contentType: string | undefined;
}

/** The edited body, and the charset it is in when it is another one than before; or why it stays as it is. */
export type EditedBytes =
  | { readonly bytes: Uint8Array<ArrayBuffer>; readonly newCharset: string | undefined; readonly words: string }
  | { readonly problem: string };

export interface TextReply {
  readonly id: number;
  readonly edited: EditedBytes;
}
