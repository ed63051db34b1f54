import { Worker } from "node:worker_threads";
import type { TextAction } from "./text-edits.ts";
import type { EditedBytes, TextJob, TextReply } from "./text-thread-messages.ts";

/** An edited body; see {@link EditedBytes}. */
type Edited =
  | { readonly bytes: Buffer; readonly newCharset: string | undefined; readonly words: string }
  | { readonly problem: string };

/** Edits large bodies one after the other in a thread of its own, which begins with the first of them. */
export interface TextThread {
  /** Never rejects: a thread that breaks leaves the body as it is, and the next body begins another one. */
  edit(action: TextAction, bytes: Uint8Array, contentType: string | undefined): Promise<Edited>;
  close(): void;
}

/** Bodies of 128 MiB as text take a gigabyte; more is nonsense that must not take the process with it. */
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
      if (worker === started) end(`the body could not be changed: ${reason}`);
    };
    started.on("error", (error) => failed(error instanceof Error ? error.message : String(error)));
    started.on("exit", () => failed("the thread ended"));
    // It waits for bodies as long as there are connections; alone it is no reason to go on.
    started.unref();
    return started;
  };
  return {
    edit: async (action, bytes, contentType) => {
      try {
        worker ??= start();
      } catch (error) {
        // The system gives no thread.
        return { problem: `the body could not be changed: ${(error as Error).message}` };
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
      end("Weir is ending");
      void ended?.terminate();
    },
  };
}
