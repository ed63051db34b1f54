import { Worker } from "node:worker_threads";
import type { TextAction } from "./text-edits.ts";

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

type Edited =
  | { readonly bytes: Buffer; readonly newCharset: string | undefined; readonly words: string }
  | { readonly problem: string };

/** Edits large bodies one after another in a thread, which starts with the first of them. */
export interface TextThread {
  /** Never rejects: a crashed thread leaves the body unchanged, and the next body starts a new one. */
  edit(action: TextAction, bytes: Uint8Array, contentType: string | undefined): Promise<Edited>;
  close(): void;
}

/** Bodies of 128 MiB take a gigabyte as text; more must not take the process down. */
const LIMITS = { maxOldGenerationSizeMb: 1024 };

export function createTextThread(): TextThread {
  const waiting = new Map<number, (edited: EditedBytes) => void>();
  let worker: Worker | undefined;
  let lastId = 0;
  const end = (problem: string): void => {
    worker = undefined;
    for (const resolve of waiting.values()) resolve({ problem });
    waiting.clear();
  };
  const start = (): Worker => {
    const started = new Worker(new URL("./rewrites-thread.ts", import.meta.url), {
      name: "weir-rewrites",
      resourceLimits: LIMITS,
    });
    started.on("message", ({ id, edited }: TextReply) => {
      waiting.get(id)?.(edited);
      waiting.delete(id);
    });
    const failed = (reason: string): void => {
      if (worker === started) end(`the body could not be edited: ${reason}`);
    };
    started.on("error", (error) => failed(error instanceof Error ? error.message : String(error)));
    started.on("exit", () => failed("the thread ended"));
    // An idle thread must not keep the process alive.
    started.unref();
    return started;
  };
  return {
    edit: async (action, bytes, contentType) => {
      try {
        worker ??= start();
      } catch (error) {
        // The system cannot start a thread.
        return { problem: `the body could not be edited: ${(error as Error).message}` };
      }
      const job: TextJob = { id: (lastId += 1), action: JSON.stringify(action), bytes, contentType };
      const { promise, resolve } = Promise.withResolvers<EditedBytes>();
      waiting.set(job.id, resolve);
      worker.postMessage(job);
      const edited = await promise;
      return "problem" in edited ? edited : { ...edited, bytes: Buffer.from(edited.bytes.buffer) };
    },
    close: () => {
      const ended = worker;
      end("Weir is shutting down");
      void ended?.terminate();
    },
  };
}
