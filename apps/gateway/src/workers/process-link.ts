/** The calls that one side handles, by name. */
export type Calls = Readonly<Record<string, { readonly input: unknown; readonly output: unknown }>>;

/** Handlers of calls. An error of a handler reaches the caller with its message and `code`. */
export type Handlers<C extends Calls> = {
  readonly [N in keyof C]: (input: C[N]["input"]) => C[N]["output"] | Promise<C[N]["output"]>;
};

/** All messages of one turn of the event loop. Call 0 has no reply. */
export interface Batch {
  readonly calls: (readonly [call: number, name: string, input: unknown])[];
  readonly responses: (readonly [call: number, isError: boolean, value: unknown])[];
}

interface Failure {
  readonly message: string;
  readonly code: string | undefined;
}

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * One end of a link between two processes: each may call the other. Calls are handled in order; all messages of one
 * turn of the event loop are sent as one, since the number of messages is what costs.
 */
export class ProcessLink<Theirs extends Calls, Ours extends Calls> {
  readonly #send: (batch: Batch) => void;
  readonly #handlers: Handlers<Ours>;
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  #batch: Batch | undefined;
  #lost: string | undefined;

  constructor(send: (batch: Batch) => void, handlers: Handlers<Ours>) {
    this.#send = send;
    this.#handlers = handlers;
  }

  /** Rejects with the other side's error, or when the other side is gone. */
  async call<N extends keyof Theirs & string>(name: N, input: Theirs[N]["input"]): Promise<Theirs[N]["output"]> {
    if (this.#lost !== undefined) throw new Error(this.#lost);
    const call = this.#next;
    this.#next += 1;
    const { promise, resolve, reject } = Promise.withResolvers<Theirs[N]["output"]>();
    this.#waiting.set(call, { resolve, reject });
    this.#open().calls.push([call, name, input]);
    return await promise;
  }

  /** Sends a notification without a reply. */
  tell(name: keyof Theirs & string, input: Theirs[typeof name]["input"]): void {
    if (this.#lost === undefined) this.#open().calls.push([0, name, input]);
  }

  receive({ calls, responses }: Batch): void {
    for (const [call, isError, value] of responses) {
      const waiting = this.#waiting.get(call);
      this.#waiting.delete(call);
      if (isError) waiting?.reject(errorOf(value as Failure));
      else waiting?.resolve(value as never);
    }
    for (const [call, name, input] of calls) this.#handle(call, name, input);
  }

  /** The other side is gone: fails pending and later calls. */
  lost(why: string): void {
    this.#lost = why;
    this.#batch = undefined;
    for (const { reject } of this.#waiting.values()) reject(new Error(why));
    this.#waiting.clear();
  }

  /** A reply is sent in the turn in which it is known: one that is known at once joins the others. */
  #handle(call: number, name: string, input: unknown): void {
    try {
      const handler = this.#handlers[name];
      if (handler === undefined) throw new Error(`There is no call ${name}`);
      const output = handler(input);
      if (output instanceof Promise) {
        output.then(
          (value: unknown) => this.#response(call, false, value),
          (error: unknown) => this.#response(call, true, failureOf(error)),
        );
      } else this.#response(call, false, output);
    } catch (error) {
      this.#response(call, true, failureOf(error));
    }
  }

  #response(call: number, isError: boolean, value: unknown): void {
    if (call !== 0 && this.#lost === undefined) this.#open().responses.push([call, isError, value]);
  }

  #open(): Batch {
    if (this.#batch === undefined) {
      this.#batch = { calls: [], responses: [] };
      setImmediate(() => this.#flush());
    }
    return this.#batch;
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = undefined;
    if (batch !== undefined) this.#send(batch);
  }
}

function failureOf(error: unknown): Failure {
  const { message, code } = (error instanceof Error ? error : new Error(String(error))) as NodeJS.ErrnoException;
  return { message, code };
}

function errorOf({ message, code }: Failure): Error {
  return code === undefined ? new Error(message) : Object.assign(new Error(message), { code });
}
