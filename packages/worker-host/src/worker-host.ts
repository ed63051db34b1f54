import { type Transferable, Worker } from "node:worker_threads";
import type { SentError, SentReply, SentRequest } from "./serve-requests.ts";

/** Time for loading the module and handling the first requests. */
const MAX_START_MS = 30_000;
/**
 * Node raises the limit of a full heap by 16 MB to end its thread. A young generation of V8's default, 192 MB,
 * can exceed that within one collection, which ends the whole process.
 */
const MAX_YOUNG_HEAP_MB = 16;

export interface WorkerHostOptions<Request> {
  /** The thread's module; it calls `serveRequests`. */
  readonly module: URL;
  /** Name of the thread in process lists and profiles. */
  readonly name: string;
  /**
   * Maximum JavaScript heap of the thread. Buffers are not part of it. A single value far beyond it can still end the
   * process, so the size of the input needs a limit, too.
   */
  readonly maxHeapMb: number;
  readonly workerData?: unknown;
  /**
   * Requests that each new thread handles before all others, within the 30 seconds of its start; their replies are
   * ignored.
   */
  readonly firstRequests?: () => readonly Request[];
  /** False for a thread with state: after its end, all requests fail. */
  readonly restarts?: boolean;
  /** Limits times; replaceable in tests. */
  readonly clock?: TimeoutClock;
}

interface TimeoutClock {
  /** Returns the function that stops it. */
  after(delayMs: number, callback: () => void): () => void;
}

const systemClock: TimeoutClock = {
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** How a thread failed a request: with an error of its own, or by its end. */
export class WorkerFault extends Error {
  override readonly name = "WorkerFault";
  readonly kind: "error" | "timeout" | "memory" | "crash" | "closed";
  /** The error thrown in the thread, with its name. */
  override readonly cause: Error | undefined;

  constructor(kind: WorkerFault["kind"], message: string, cause?: Error) {
    super(message);
    this.kind = kind;
    this.cause = cause;
  }
}

interface Pending<Request> {
  readonly id: number;
  readonly request: Request;
  readonly transfer: readonly Transferable[];
  readonly timeoutMs: number | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (fault: WorkerFault) => void;
  /** The transferred buffers belong to a thread. */
  isSent: boolean;
}

interface Thread {
  readonly worker: Worker;
  /** Replies until the thread has started: of its module and of each first request. */
  startReplies: number;
  /** Set between an uncaught error and the exit: replies may still arrive, but the thread reads no more requests. */
  fault: WorkerFault | undefined;
}

/**
 * A thread that starts with its first request and handles requests in order. When it ends early, only the request that
 * it was handling fails, unless buffers of later requests were transferred to it; a new thread handles the others. When
 * it ends before it has started, all pending requests fail, and the next request starts a new thread. An idle thread
 * does not keep the process alive.
 */
export class WorkerHost<Request, Reply> {
  readonly #options: WorkerHostOptions<Request>;
  /** In the order sent; the first is being handled. */
  readonly #pending = new Map<number, Pending<Request>>();
  /** Until their exit, also those that were replaced. */
  readonly #workers = new Set<Worker>();
  #thread: Thread | undefined;
  #lastId = 0;
  #stopTimer: (() => void) | undefined;
  /** Of all later requests. */
  #endFault: WorkerFault | undefined;

  constructor(options: WorkerHostOptions<Request>) {
    this.#options = options;
  }

  /** Number of requests without a reply. */
  get pending(): number {
    return this.#pending.size;
  }

  /**
   * Rejects with a {@link WorkerFault}. `timeoutMs` counts once the thread has started and replied to all earlier
   * requests; after it, the thread is terminated.
   */
  request(
    request: Request,
    { transfer = [], timeoutMs }: { readonly transfer?: readonly Transferable[]; readonly timeoutMs?: number } = {},
  ): Promise<Reply> {
    if (this.#endFault !== undefined) return Promise.reject(this.#endFault);
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const id = (this.#lastId += 1);
    const pending: Pending<Request> = {
      id,
      request,
      transfer,
      timeoutMs,
      resolve: resolve as (value: unknown) => void,
      reject,
      isSent: false,
    };
    this.#pending.set(id, pending);
    const thread = this.#thread;
    if (thread === undefined) {
      this.#startThread();
      return promise;
    }
    if (thread.fault === undefined) this.#send(thread, pending);
    if (this.#pending.size === 1) this.#watch();
    return promise;
  }

  /** Terminates the thread; pending and later requests are rejected. */
  async close(): Promise<void> {
    this.#endFault = new WorkerFault("closed", "The thread is closed");
    this.#thread = undefined;
    this.#failAll(this.#endFault);
    await Promise.all(Array.from(this.#workers, async (worker) => await worker.terminate()));
  }

  /** Starts a thread with all pending requests. */
  #startThread(): void {
    let thread: Thread;
    try {
      thread = this.#createThread();
    } catch (error) {
      // The system cannot start a thread, or a first request cannot be sent.
      return this.#failAll(crashOf(error));
    }
    this.#thread = thread;
    for (const pending of this.#pending.values()) this.#send(thread, pending);
    this.#watch();
  }

  #createThread(): Thread {
    const { module, name, maxHeapMb, workerData, firstRequests } = this.#options;
    const worker = new Worker(module, {
      name,
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: MAX_YOUNG_HEAP_MB },
    });
    this.#workers.add(worker);
    const thread: Thread = { worker, startReplies: 1, fault: undefined };
    worker.on("message", (reply: SentReply) => this.#replied(thread, reply));
    worker.on("messageerror", (error) => this.#terminate(thread, crashOf(error)));
    worker.on("error", (error: unknown) => {
      thread.fault = crashOf(error);
      if (thread === this.#thread) this.#watch();
    });
    // All replies were received before.
    worker.on("exit", () => {
      this.#workers.delete(worker);
      this.#ended(thread, thread.fault ?? new WorkerFault("crash", "The thread ended"));
    });
    worker.unref();
    try {
      for (const request of firstRequests?.() ?? []) {
        worker.postMessage({ id: 0, request } satisfies SentRequest);
        thread.startReplies += 1;
      }
    } catch (error) {
      void worker.terminate();
      throw error;
    }
    return thread;
  }

  #send({ worker }: Thread, pending: Pending<Request>): void {
    const { id, request, transfer } = pending;
    try {
      worker.postMessage({ id, request } satisfies SentRequest, transfer);
      pending.isSent = true;
    } catch (error) {
      // The request cannot be cloned or transferred.
      this.#fail(pending, new WorkerFault("error", (error as Error).message, error as Error));
      if (this.#pending.size === 0) this.#watch();
    }
  }

  #replied(thread: Thread, reply: SentReply): void {
    if (thread !== this.#thread) return;
    if (reply.id === 0) {
      thread.startReplies -= 1;
      if (thread.startReplies === 0) this.#watch();
      return;
    }
    const pending = this.#pending.get(reply.id);
    if (pending === undefined) return;
    this.#pending.delete(reply.id);
    this.#watch();
    if ("error" in reply) pending.reject(new WorkerFault("error", reply.error.message, thrownError(reply.error)));
    else pending.resolve(reply.value);
  }

  /** Limits the time of the start or of the request that is being handled; an idle thread is not waited for. */
  #watch(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const thread = this.#thread;
    if (thread === undefined) return;
    const [first] = this.#pending.values();
    if (first === undefined) return thread.worker.unref();
    thread.worker.ref();
    const isStarting = thread.startReplies > 0;
    const limitMs = isStarting ? MAX_START_MS : first.timeoutMs;
    if (limitMs === undefined || thread.fault !== undefined) return;
    let isStopped = false;
    const stopTimer = (this.#options.clock ?? systemClock).after(limitMs, () => {
      // If this thread was busy, the reply may have arrived in time: it is received first.
      setImmediate(() => {
        if (isStopped) return;
        const text = `The thread took longer than ${String(limitMs)} ms${isStarting ? " to start" : ""}`;
        this.#terminate(thread, new WorkerFault("timeout", text));
      });
    });
    this.#stopTimer = () => {
      isStopped = true;
      stopTimer();
    };
  }

  /** Its replies are ignored from now on. A request that it began meanwhile is handled again by the next thread. */
  #terminate(thread: Thread, fault: WorkerFault): void {
    void thread.worker.terminate();
    this.#ended(thread, fault);
  }

  #ended(thread: Thread, fault: WorkerFault): void {
    if (thread !== this.#thread) return;
    this.#thread = undefined;
    if (this.#options.restarts === false) this.#endFault = fault;
    // Before the end of the start, no single request is the cause, and the next thread would probably fail, too.
    if (this.#endFault !== undefined || thread.startReplies > 0) return this.#failAll(fault);
    const [first] = this.#pending.values();
    if (first !== undefined) this.#fail(first, fault);
    for (const other of this.#pending.values()) {
      if (!other.isSent || other.transfer.length === 0) continue;
      this.#fail(other, new WorkerFault("crash", "The thread ended before it handled the request", fault));
    }
    if (this.#pending.size > 0) this.#startThread();
    else this.#watch();
  }

  #fail(pending: Pending<Request>, fault: WorkerFault): void {
    this.#pending.delete(pending.id);
    pending.reject(fault);
  }

  #failAll(fault: WorkerFault): void {
    for (const pending of this.#pending.values()) this.#fail(pending, fault);
    this.#watch();
  }
}

function crashOf(error: unknown): WorkerFault {
  if (!(error instanceof Error)) return new WorkerFault("crash", String(error));
  const isMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
  return isMemory
    ? new WorkerFault("memory", "The thread ran out of memory", error)
    : new WorkerFault("crash", error.message, error);
}

function thrownError({ name, message, stack }: SentError): Error {
  const error = new Error(message);
  error.name = name;
  if (stack !== "") error.stack = stack;
  return error;
}
