import { parentPort, type Transferable } from "node:worker_threads";

/** A reply whose buffers move to the other thread instead of being copied. */
export interface ThreadReply<Reply> {
  readonly value: Reply;
  readonly transfer: readonly Transferable[];
}

/** A request on its way to a thread. Its id is 0 if the new thread's start depends on it. */
export interface SentRequest {
  readonly id: number;
  readonly request: unknown;
}

/** A reply on its way back. Each thread sends one with id 0 when its module is loaded. */
export type SentReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: SentError };

/** Structured cloning would lose the names of errors. */
export interface SentError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

/**
 * Serves the requests of a {@link WorkerHost} inside its thread, one after another in the order sent. An error that
 * `handle` throws rejects that request alone. Does nothing outside a thread.
 */
export function serveRequests<Request, Reply>(
  handle: (request: Request) => ThreadReply<Reply> | Promise<ThreadReply<Reply>>,
): void {
  const port = parentPort;
  if (port === null) return;
  const serve = async ({ id, request }: SentRequest): Promise<void> => {
    try {
      const { value, transfer } = await handle(request as Request);
      port.postMessage({ id, value } satisfies SentReply, transfer);
    } catch (error) {
      // Of `handle`, or about a value that cannot be cloned.
      port.postMessage({ id, error: sentError(error) } satisfies SentReply);
    }
  };
  let last = Promise.resolve();
  port.on("message", (message: SentRequest) => {
    last = last.then(async () => await serve(message));
  });
  // The request cannot be named in a reply, so the thread fails with it.
  port.on("messageerror", (error) => {
    throw error;
  });
  port.postMessage({ id: 0, value: undefined } satisfies SentReply);
}

function sentError(error: unknown): SentError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error), stack: "" };
  return { name: error.name, message: error.message, stack: error.stack ?? "" };
}
