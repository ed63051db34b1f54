import { StorageError } from "../storage-error.ts";
import type { FromWriter } from "./writer-messages.ts";

/** Changes that were asked of the writer thread and wait for its answer. */
export class WriterCalls {
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #next = 1;

  /** The number that a call's message carries, and the promise of its answer. */
  begin(): { readonly call: number; readonly response: Promise<unknown> } {
    const call = this.#next++;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(call, waiting);
    return { call, response: waiting.promise };
  }

  answered({ call, value }: FromWriter & { kind: "answer" }): void {
    this.#waiting.get(call)?.resolve(value);
    this.#waiting.delete(call);
  }

  failed({ call, error, isStorageError }: FromWriter & { kind: "callFailed" }): void {
    this.#waiting.get(call)?.reject(isStorageError ? new StorageError(error) : new Error(error));
    this.#waiting.delete(call);
  }

  /** The thread ended: nobody will answer what was asked of it. */
  abandon(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error("The storage thread ended"));
    this.#waiting.clear();
  }
}
