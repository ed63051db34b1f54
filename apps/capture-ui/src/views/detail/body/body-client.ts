import type { BodyProgress, BodyLocation } from "./body-document.ts";
import type { BodyCallName, BodyCalls, WorkerRequest, WorkerResponse } from "./body-worker-client.ts";

/** The used part of a Worker, so that tests can replace it. */
export interface BodyWorker {
  postMessage(message: WorkerRequest): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<WorkerResponse>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

type Response<N extends BodyCallName> = Awaited<ReturnType<BodyCalls[N]>>;

/** A call exceeded its timeout. The worker was terminated, since a running pattern cannot be interrupted. */
export class CallTimeout extends Error {}

/** One body held by its own worker. Replies arrive in call order. */
export class BodyClient {
  readonly #worker: BodyWorker;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (reason: Error) => void }>();
  #lastId = 0;

  /** `onFailure` is called when the worker fails; it sends no more replies. */
  constructor(
    worker: BodyWorker,
    source: BodyLocation,
    onProgress: (progress: BodyProgress) => void,
    onFailure: (reason: Error) => void,
  ) {
    this.#worker = worker;
    worker.onmessage = ({ data }) => {
      if (data.kind === "progress") onProgress(data.progress);
      else this.#settle(data);
    };
    worker.onerror = (event) => {
      const reason = new Error(event.message || "The viewer stopped working");
      this.#end(reason);
      onFailure(reason);
    };
    worker.postMessage({ kind: "open", source });
  }

  /** Calls the worker. With `timeoutMs` the worker is terminated if no reply arrives in time. */
  call<N extends BodyCallName>(
    name: N,
    parameters: Parameters<BodyCalls[N]>,
    timeoutMs?: number,
  ): Promise<Response<N>> {
    const id = ++this.#lastId;
    return new Promise<Response<N>>((resolve, reject) => {
      const timer =
        timeoutMs === undefined
          ? undefined
          : setTimeout(() => this.#end(new CallTimeout("The operation timed out")), timeoutMs);
      this.#waiting.set(id, {
        resolve: (value) => {
          clearTimeout(timer);
          resolve(value);
        },
        reject: (reason) => {
          clearTimeout(timer);
          reject(reason);
        },
      });
      this.#worker.postMessage({ kind: "call", id, name, parameters });
    });
  }

  /** Terminates the worker; pending calls are rejected. */
  close(): void {
    this.#end(new Error("The body was closed"));
  }

  #settle(response: Exclude<WorkerResponse, { kind: "progress" }>): void {
    const waiting = this.#waiting.get(response.id);
    this.#waiting.delete(response.id);
    if (response.kind === "result") waiting?.resolve(response.value as never);
    else waiting?.reject(new Error(response.message));
  }

  #end(reason: Error): void {
    this.#worker.terminate();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(reason);
  }
}

let spare: Worker | null = null;

function startWorker(): Worker {
  return new Worker(new URL("./body-worker.ts", import.meta.url), { type: "module" });
}

/** Starts a worker for the next body ahead of time, since startup takes as long as showing a small body. */
export function prepareWorker(): void {
  if (spare !== null) return;
  const worker = startWorker();
  spare = worker;
  // A worker that failed to load must not be used: its body would never open.
  worker.onerror = () => {
    if (spare === worker) spare = null;
  };
}

/** Hands over the prepared worker, or a new one; the caller terminates it. */
export function takeWorker(): Worker {
  const worker = spare ?? startWorker();
  spare = null;
  return worker;
}
