import { parentPort, type Transferable } from "node:worker_threads";

/** A reply whose buffers move to the other thread instead of being copied. */
export interface ThreadReply<Reply> {
  readonly value: Reply;
  readonly transfer: readonly Transferable[];
}

/** A request on its way to a thread. */
export interface SentRequest {
  readonly id: number;
  readonly request: unknown;
}

/** A reply on its way back. */
export type SentReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: { readonly name: string; readonly message: string } };

/**
 * Serves the requests of a {@link WorkerHost} inside its thread, one after another in the order sent. An error that
 * `handle` throws rejects that request alone. Does nothing outside a thread.
 */
export function serveRequests<Request, Reply>(
  handle: (request: Request) => ThreadReply<Reply> | Promise<ThreadReply<Reply>>,
): void {
  const port = parentPort;
  if (port === null) return;
  let last: Promise<void> | undefined;
  const reply = async (id: number, handled: Promise<ThreadReply<Reply>>): Promise<void> => {
    try {
      const { value, transfer } = await handled;
      port.postMessage({ id, value } satisfies SentReply, transfer);
    } catch (error) {
      port.postMessage({ id, error: shownError(error) } satisfies SentReply);
    }
  };
  const run = ({ id, request }: SentRequest): Promise<void> | undefined => {
    try {
      const handled = handle(request as Request);
      if (handled instanceof Promise) return reply(id, handled);
      port.postMessage({ id, value: handled.value } satisfies SentReply, handled.transfer);
    } catch (error) {
      port.postMessage({ id, error: shownError(error) } satisfies SentReply);
    }
    return undefined;
  };
  port.on("message", (message: SentRequest) => {
    if (last === undefined) last = run(message);
    else last = last.then(() => run(message));
    const current = last;
    void current?.then(() => {
      if (last === current) last = undefined;
    });
  });
}

function shownError(error: unknown): { readonly name: string; readonly message: string } {
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: "Error", message: String(error) };
}
