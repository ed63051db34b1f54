import { WorkerFault, WorkerHost } from "@headworks/worker-host";
import type { TextAction } from "./text-edits.ts";

/** A body to edit, without content coding. */
export interface TextJob {
  /** JSON text, since structured cloning would lose the digits of numbers. */
  readonly action: string;
  readonly bytes: Uint8Array;
  readonly contentType: string | undefined;
}

/** The edited body and its charset when that changed, or the reason why it is unchanged. */
export type EditedBytes =
  | { readonly bytes: Uint8Array<ArrayBuffer>; readonly newCharset: string | undefined; readonly words: string }
  | { readonly problem: string };

type Edited =
  | { readonly bytes: Buffer; readonly newCharset: string | undefined; readonly words: string }
  | { readonly problem: string };

/** Edits large bodies one after another in a thread, which starts with the first of them. */
export interface TextThread {
  /** Never rejects: a thread that ends leaves the body unchanged, and the next body starts a new one. */
  edit(action: TextAction, bytes: Uint8Array, contentType: string | undefined): Promise<Edited>;
  close(): void;
}

/** Bodies of 128 MiB take a gigabyte as text; more must not take the process down. */
const MAX_HEAP_MB = 1024;

export function createTextThread(): TextThread {
  const host = new WorkerHost<TextJob, EditedBytes>({
    module: new URL("./rewrites-thread.ts", import.meta.url),
    name: "weir-rewrites",
    maxHeapMb: MAX_HEAP_MB,
  });
  return {
    edit: async (action, bytes, contentType) => {
      try {
        const edited = await host.request({ action: JSON.stringify(action), bytes, contentType });
        return "problem" in edited ? edited : { ...edited, bytes: Buffer.from(edited.bytes.buffer) };
      } catch (error) {
        if (!(error instanceof WorkerFault)) throw error;
        if (error.kind === "closed") return { problem: "Weir is shutting down" };
        return { problem: `the body could not be edited: ${error.cause?.message ?? "the thread ended"}` };
      }
    },
    close: () => void host.close(),
  };
}
