/** What one side may ask of the other, by name. */
export type Calls = Readonly<Record<string, { readonly input: unknown; readonly output: unknown }>>;

/** Answers to calls. What a handler throws, or rejects with, is what the asker gets: its message and its `code`. */
export type Handlers<C extends Calls> = {
  readonly [N in keyof C]: (input: C[N]["input"]) => C[N]["output"] | Promise<C[N]["output"]>;
};

/** Everything that was said within one turn of the event loop. Call 0 wants no answer. */
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
 * One end of a line between two processes: each may ask the other. Calls are handled in the order they were made;
 * what is said within one turn of the event loop goes as one message, since messages are what costs.
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

  /** Rejects with what the other side threw, and when the other side is gone. */
  async ask<N extends keyof Theirs & string>(name: N, input: Theirs[N]["input"]): Promise<Theirs[N]["output"]> {
    if (this.#lost !== undefined) throw new Error(this.#lost);
    const call = this.#next;
    this.#next += 1;
    const { promise, resolve, reject } = Promise.withResolvers<Theirs[N]["output"]>();
    this.#waiting.set(call, { resolve, reject });
    this.#open().calls.push([call, name, input]);
    return await promise;
  }

  /** Says something that needs no answer. */
  tell(name: keyof Theirs & string, input: Theirs[typeof name]["input"]): void {
    if (this.#lost === undefined) this.#open().calls.push([0, name, input]);
  }

  /** A message of the other side. */
  receive({ calls, responses }: Batch): void {
    for (const [call, isError, value] of responses) {
      const waiting = this.#waiting.get(call);
      this.#waiting.delete(call);
      if (isError) waiting?.reject(errorOf(value as Failure));
      else waiting?.resolve(value as never);
    }
    for (const [call, name, input] of calls) this.#handle(call, name, input);
  }

  /** The other side is gone: everything that waits for it fails, and so does what is asked later. */
  lost(why: string): void {
    this.#lost = why;
    this.#batch = undefined;
    for (const { reject } of this.#waiting.values()) reject(new Error(why));
    this.#waiting.clear();
  }

  /** The answer comes in the turn in which it is known: one that is known at once leaves with its neighbours. */
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
