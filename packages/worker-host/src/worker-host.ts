import { type Transferable, Worker } from "node:worker_threads";
import type { SentReply, SentRequest } from "./serve-requests.ts";

export interface WorkerHostOptions<Request> {
  /** The thread's module; it calls `serveRequests`. */
  readonly module: URL;
  /** Name of the thread in process lists and profiles. */
  readonly name: string;
  /** Maximum JavaScript heap of the thread. Buffers are not part of it. */
  readonly maxHeapMb: number;
  readonly workerData?: unknown;
  /** Requests that each new thread handles before all others; their replies are ignored. */
  readonly firstRequests?: () => readonly Request[];
}

/** How a thread failed a request: with an error of its own, or by its end. */
export class WorkerFault extends Error {
  override readonly name = "WorkerFault";
  readonly kind: "error" | "timeout" | "memory" | "crash" | "closed";

  constructor(kind: WorkerFault["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

interface Pending<Request> {
  readonly id: number;
  readonly request: Request;
  readonly transfer: readonly Transferable[];
  readonly timeoutMs: number | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (fault: WorkerFault) => void;
}

/**
 * A thread that starts with its first request and handles requests in order. When it ends early, only the request that
 * it was handling fails, unless buffers of later requests were transferred to it; a new thread handles the others. An
 * idle thread does not keep the process alive.
 */
export class WorkerHost<Request, Reply> {
  readonly #options: WorkerHostOptions<Request>;
  /** In the order sent; the first is being handled. */
  readonly #pending = new Map<number, Pending<Request>>();
  #worker: Worker | undefined;
  #lastId = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: WorkerHostOptions<Request>) {
    this.#options = options;
  }

  /** Number of requests without a reply. */
  get pending(): number {
    return this.#pending.size;
  }

  /**
   * Rejects with a {@link WorkerFault}. `timeoutMs` counts from when the thread can begin with the request; after it,
   * the thread is terminated.
   */
  request(
    request: Request,
    { transfer = [], timeoutMs }: { readonly transfer?: readonly Transferable[]; readonly timeoutMs?: number } = {},
  ): Promise<Reply> {
    if (this.#isClosed) return Promise.reject(new WorkerFault("closed", "The thread is closed"));
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const id = (this.#lastId += 1);
    const pending = { id, request, transfer, timeoutMs, resolve: resolve as (value: unknown) => void, reject };
    try {
      this.#worker ??= this.#start();
    } catch (error) {
      // The system cannot start a thread.
      reject(new WorkerFault("crash", (error as Error).message));
      return promise;
    }
    this.#pending.set(id, pending);
    this.#send(this.#worker, pending);
    if (this.#pending.size === 1) this.#watch();
    return promise;
  }

  /** Terminates the thread; pending and later requests are rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#failAll("closed", "The thread is closed");
    await worker?.terminate();
  }

  #start(): Worker {
    const { module, name, maxHeapMb, workerData, firstRequests } = this.#options;
    const worker = new Worker(module, { name, workerData, resourceLimits: { maxOldGenerationSizeMb: maxHeapMb } });
    worker.on("message", (reply: SentReply) => this.#replied(worker, reply));
    worker.on("error", (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      this.#ended(worker, isMemory ? "memory" : "crash", isMemory ? "The thread ran out of memory" : error.message);
    });
    worker.on("exit", () => this.#ended(worker, "crash", "The thread ended"));
    worker.unref();
    for (const request of firstRequests?.() ?? []) worker.postMessage({ id: 0, request } satisfies SentRequest);
    return worker;
  }

  #send(worker: Worker, { id, request, transfer }: Pending<Request>): void {
    worker.postMessage({ id, request } satisfies SentRequest, transfer);
    // A pending request keeps the process alive.
    if (this.#pending.size === 1) worker.ref();
  }

  #replied(worker: Worker, reply: SentReply): void {
    if (worker !== this.#worker) return;
    const pending = this.#pending.get(reply.id);
    if (pending === undefined) return;
    this.#pending.delete(reply.id);
    this.#watch();
    if (this.#pending.size === 0) worker.unref();
    if ("error" in reply) pending.reject(new WorkerFault("error", reply.error.message));
    else pending.resolve(reply.value);
  }

  /** Limits the time of the request that is being handled. */
  #watch(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = undefined;
    const [first] = this.#pending.values();
    if (first?.timeoutMs === undefined) return;
    const worker = this.#worker;
    this.#timer = setTimeout(() => {
      if (worker === undefined) return;
      void worker.terminate();
      this.#ended(worker, "timeout", `The thread took longer than ${String(first.timeoutMs)} ms`);
    }, first.timeoutMs);
  }

  #ended(worker: Worker, kind: WorkerFault["kind"], message: string): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    const [first, ...others] = this.#pending.values();
    if (first === undefined) return;
    this.#pending.delete(first.id);
    first.reject(new WorkerFault(kind, message));
    for (const other of others.filter(({ transfer }) => transfer.length > 0)) {
      this.#pending.delete(other.id);
      other.reject(new WorkerFault(kind, message));
    }
    this.#resend();
  }

  #resend(): void {
    if (this.#pending.size === 0) return this.#watch();
    try {
      const worker = this.#start();
      this.#worker = worker;
      worker.ref();
      for (const pending of this.#pending.values()) this.#send(worker, pending);
      this.#watch();
    } catch (error) {
      this.#failAll("crash", (error as Error).message);
    }
  }

  #failAll(kind: WorkerFault["kind"], message: string): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    this.#watch();
    for (const { reject } of pending) reject(new WorkerFault(kind, message));
  }
}
