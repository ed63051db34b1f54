import { WorkerFault, WorkerHost } from "@headworks/worker-host";

/** A value that crosses the border of a guest. Buffers are copied. */
export type GuestValue = string | Uint8Array | null;

/** Source code that runs in an interpreter of its own. */
export interface GuestProgram {
  /** Identifies the guest; a program with the same key replaces it. */
  readonly key: string;
  readonly source: string;
  /** Shown in stack traces. */
  readonly filename: string;
  /** Names of the functions that may be called. */
  readonly functions: readonly string[];
  /** Limit of all memory that the interpreter allocates. */
  readonly memoryLimitBytes: number;
  /** Values of the guest's store, by key; JSON texts. */
  readonly values: Readonly<Record<string, string>>;
  /** Milliseconds for the top level of the source. */
  readonly timeoutMs: number;
}

/** Why a guest did not return. After anything but `error`, the next call starts a fresh interpreter. */
export interface GuestFault {
  readonly kind: "error" | "timeout" | "memory" | "crash";
  /** `TypeError: x is not a function (line 3, column 5)` */
  readonly message: string;
  /** Position in the source, from 1. */
  readonly line?: number;
  readonly column?: number;
}

export interface GuestOutcome {
  /** Milliseconds inside the interpreter. */
  readonly durationMs: number;
  /** The results of the function; empty with a fault. */
  readonly values: readonly GuestValue[];
  readonly fault?: GuestFault;
  /** Lines of `console`, capped. */
  readonly console: readonly string[];
  /** Changes of the guest's store; null removes a key. */
  readonly changedValues?: Readonly<Record<string, string | null>>;
}

export interface SourceFacts {
  readonly fault?: GuestFault;
  readonly functions: readonly string[];
}

/** Runs guests in threads. Each guest has an interpreter of its own and sees no other. */
export interface Sandbox {
  /** Adds or replaces a guest, and runs the top level of its source. */
  load(program: GuestProgram): Promise<GuestFault | undefined>;
  unload(key: string): void;
  /** Compiles a source without running it. Returns its syntax error, or which of the functions it declares. */
  inspect(source: string, filename: string, functions: readonly string[]): Promise<SourceFacts>;
  /**
   * Calls a function of a guest and never rejects. `timeoutMs` includes waiting for the thread; a call that waits for
   * longer is not begun.
   */
  call(key: string, name: string, args: readonly GuestValue[], timeoutMs: number): Promise<GuestOutcome>;
  close(): Promise<void>;
}

export interface SandboxOptions {
  /**
   * JavaScript that evaluates to `(host) => ({ invoke, settled })`, run in each guest before its source.
   * `invoke(fn, name, ...args)` calls a function of the guest and returns a string, bytes, null or an array of these, or
   * undefined while its promise is pending; `settled()` returns the result of that promise, or throws.
   */
  readonly prelude: string;
  /** Guests are spread over at most so many threads, which start when needed. */
  readonly maxThreads: number;
  readonly threadName: string;
}

/** A request to a sandbox thread. */
export type SandboxRequest =
  | {
      readonly kind: "load";
      readonly program: GuestProgram;
      /** Start the guest with its first call. */
      readonly isDeferred?: boolean;
    }
  | { readonly kind: "unload"; readonly key: string }
  | {
      readonly kind: "inspect";
      readonly source: string;
      readonly filename: string;
      readonly functions: readonly string[];
    }
  | {
      readonly kind: "call";
      readonly key: string;
      readonly name: string;
      readonly args: readonly GuestValue[];
      readonly timeoutMs: number;
      /** By `Date.now()`. */
      readonly deadlineMs: number;
    };

export type SandboxReply = GuestOutcome | SourceFacts | { readonly fault: GuestFault | undefined };

/** Time beyond the deadline after which a thread that cannot be interrupted is terminated. */
const GRACE_MS = 250;
/** After the thread is terminated, whose fault says more. */
const WAIT_MS = GRACE_MS + 100;
/** Sources are only parsed, which ends; starting a thread may take seconds on a busy machine. */
const INSPECT_MS = 30_000;
/** The threads hold interpreters, whose memory is outside the JavaScript heap. */
const THREAD_HEAP_MB = 64;

interface Thread {
  readonly host: WorkerHost<SandboxRequest, SandboxReply>;
  readonly guests: Map<string, GuestProgram>;
}

export function createSandbox(options: SandboxOptions): Sandbox {
  const threads: Thread[] = [];
  const homes = new Map<string, Thread>();
  let isClosed = false;

  const startThread = (): Thread => {
    const guests = new Map<string, GuestProgram>();
    const host = new WorkerHost<SandboxRequest, SandboxReply>({
      module: new URL("./sandbox-thread.ts", import.meta.url),
      name: options.threadName,
      maxHeapMb: THREAD_HEAP_MB,
      workerData: { prelude: options.prelude },
      // A source that blocked the last thread must not block this one before another guest's call.
      firstRequests: () => [...guests.values()].map((program) => ({ kind: "load", program, isDeferred: true })),
    });
    const thread = { host, guests };
    threads.push(thread);
    return thread;
  };
  const leastLoaded = (): Thread => {
    const free = threads.find(({ guests }) => guests.size === 0);
    if (free !== undefined) return free;
    if (threads.length < options.maxThreads) return startThread();
    return threads.reduce((best, thread) => (thread.guests.size < best.guests.size ? thread : best));
  };

  return {
    load: async (program) => {
      if (isClosed) return CLOSED;
      const thread = homes.get(program.key) ?? leastLoaded();
      homes.set(program.key, thread);
      // Not yet part of `firstRequests`: starting the thread with this request would load it twice.
      const loaded = thread.host.request({ kind: "load", program }, { timeoutMs: program.timeoutMs + GRACE_MS });
      thread.guests.set(program.key, program);
      return await faultOf(loaded);
    },
    unload: (key) => {
      const thread = homes.get(key);
      if (thread === undefined) return;
      homes.delete(key);
      thread.guests.delete(key);
      thread.host.request({ kind: "unload", key }).catch(() => undefined);
    },
    inspect: async (source, filename, functions) => {
      if (isClosed) return { fault: CLOSED, functions: [] };
      const thread = threads[0] ?? startThread();
      const request = { kind: "inspect", source, filename, functions } as const;
      try {
        return (await thread.host.request(request, { timeoutMs: INSPECT_MS })) as SourceFacts;
      } catch (error) {
        return { fault: threadFault(error), functions: [] };
      }
    },
    call: async (key, name, args, timeoutMs) => {
      const thread = homes.get(key);
      if (thread === undefined) return faulty({ kind: "crash", message: "The guest is not loaded" });
      const program = thread.guests.get(key);
      if (program !== undefined && sizeOf(args) > program.memoryLimitBytes) return faulty(tooLarge(program));
      const deadlineMs = Date.now() + timeoutMs;
      const request = { kind: "call", key, name, args, timeoutMs, deadlineMs } as const;
      const reply = thread.host.request(request, { timeoutMs: timeoutMs + GRACE_MS });
      const outcome = await inTime(reply as Promise<GuestOutcome>, timeoutMs + WAIT_MS);
      const current = thread.guests.get(key);
      if (outcome.changedValues !== undefined && current !== undefined) {
        thread.guests.set(key, { ...current, values: withChanges(current.values, outcome.changedValues) });
      }
      return outcome;
    },
    close: async () => {
      isClosed = true;
      await Promise.all(threads.map(({ host }) => host.close()));
    },
  };
}

const CLOSED: GuestFault = { kind: "crash", message: "The sandbox is closed" };

function sizeOf(args: readonly GuestValue[]): number {
  return args.reduce((size, arg) => size + (arg?.length ?? 0), 0);
}

function tooLarge({ memoryLimitBytes }: GuestProgram): GuestFault {
  const limit = `${Math.round(memoryLimitBytes / 1_048_576)} MiB`;
  return { kind: "memory", message: `The message is larger than the script's memory of ${limit}` };
}

function withChanges(
  values: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const changed = { ...values, ...changes };
  return Object.fromEntries(Object.entries(changed).filter((each): each is [string, string] => each[1] !== null));
}

function faulty(fault: GuestFault): GuestOutcome {
  return { durationMs: 0, values: [], fault, console: [] };
}

/** A reply that does not come in time is a timeout; the thread may still be busy with an earlier call. */
function inTime(reply: Promise<GuestOutcome>, timeoutMs: number): Promise<GuestOutcome> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve(faulty({ kind: "timeout", message: "The script's thread was busy until the timeout" }));
    }, timeoutMs);
    reply.then(
      (outcome) => {
        clearTimeout(timer);
        resolve(outcome);
      },
      (error: unknown) => {
        clearTimeout(timer);
        resolve(faulty(threadFault(error)));
      },
    );
  });
}

async function faultOf(reply: Promise<SandboxReply>): Promise<GuestFault | undefined> {
  try {
    return ((await reply) as { readonly fault: GuestFault | undefined }).fault;
  } catch (error) {
    return threadFault(error);
  }
}

function threadFault(error: unknown): GuestFault {
  if (!(error instanceof WorkerFault)) return { kind: "crash", message: String(error) };
  if (error.kind === "timeout") {
    return { kind: "timeout", message: "The script did not return in time and could not be interrupted" };
  }
  if (error.kind === "memory") return { kind: "memory", message: "The script's thread ran out of memory" };
  return { kind: "crash", message: error.message };
}
