import type { Exchange, ExchangeView } from "./exchange.ts";
import type { MessageControl, MessageFilter, MessageHandler, MessageVerdict, TappedMessage } from "./messages.ts";
import { CONTINUE, type Interceptor, type Observer, type Target, type Verdict } from "./phases.ts";

/** Reports an exception of a slice: its name, the phase and the error. */
export type SliceFault = (slice: string, phase: string, error: unknown) => void;
type Phase<T> = { readonly name: string; readonly run: (subject: T) => Verdict | Promise<Verdict> };

/**
 * The interceptors and observers of all slices, sorted into phases once; an empty phase costs one length check. The
 * first verdict other than `continue` ends a phase. An exception counts as `continue`, or aborts the exchange if the
 * slice fails closed.
 */
export class Pipeline {
  readonly #target: Phase<Target>[];
  readonly #requestHead: Phase<Exchange>[];
  readonly #responseHead: Phase<Exchange>[];
  readonly #messages: readonly Interceptor[];
  readonly #filters: readonly Interceptor[];
  readonly #observers: readonly Observer[];
  readonly #failClosed: ReadonlySet<string>;
  readonly #onFault: SliceFault;

  constructor(
    interceptors: readonly Interceptor[],
    observers: readonly Observer[],
    failClosed: ReadonlySet<string>,
    onFault: SliceFault,
  ) {
    this.#target = interceptors.flatMap((slice) =>
      slice.onTarget ? [{ name: slice.name, run: slice.onTarget.bind(slice) }] : [],
    );
    this.#requestHead = interceptors.flatMap((slice) =>
      slice.onRequestHead ? [{ name: slice.name, run: slice.onRequestHead.bind(slice) }] : [],
    );
    this.#responseHead = interceptors.flatMap((slice) =>
      slice.onResponseHead ? [{ name: slice.name, run: slice.onResponseHead.bind(slice) }] : [],
    );
    this.#messages = interceptors.filter((slice) => slice.onMessages !== undefined);
    this.#filters = interceptors.filter((slice) => slice.filterMessages !== undefined);
    this.#observers = observers;
    this.#failClosed = failClosed;
    this.#onFault = onFault;
  }

  /** Runs the target phase before a tunnel is opened. */
  target(target: Target): Verdict | Promise<Verdict> {
    return this.#run(this.#target, target, "onTarget", 0);
  }

  requestHead(exchange: Exchange): Verdict | Promise<Verdict> {
    return this.#run(this.#requestHead, exchange, "onRequestHead", 0);
  }

  responseHead(exchange: Exchange): Verdict | Promise<Verdict> {
    return this.#run(this.#responseHead, exchange, "onResponseHead", 0);
  }

  /** The handler of an exchange that became a connection of messages, behind the filters of the slices. */
  messages(exchange: ExchangeView, control: MessageControl): MessageHandler | undefined {
    const filters = this.#filters.flatMap((slice) => {
      try {
        return slice.filterMessages?.(exchange) ?? [];
      } catch (error) {
        this.#onFault(slice.name, "filterMessages", error);
        return [];
      }
    });
    const handler = this.#messageHandler(exchange, control);
    return filters.length === 0 ? handler : filtered(filters, handler);
  }

  #messageHandler(exchange: ExchangeView, control: MessageControl): MessageHandler | undefined {
    for (const slice of this.#messages) {
      try {
        const handler = slice.onMessages?.(exchange, control);
        if (handler !== undefined) return handler;
      } catch (error) {
        this.#onFault(slice.name, "onMessages", error);
      }
    }
    return undefined;
  }

  started(exchange: ExchangeView): void {
    for (const observer of this.#observers) {
      try {
        observer.onStarted?.(exchange);
      } catch (error) {
        this.#onFault(observer.name, "onStarted", error);
      }
    }
  }

  responding(exchange: ExchangeView): void {
    for (const observer of this.#observers) {
      try {
        observer.onResponding?.(exchange);
      } catch (error) {
        this.#onFault(observer.name, "onResponding", error);
      }
    }
  }

  /** GOAWAY was sent or received on a client's connection, or on one to an origin. */
  closing(...[client, origin]: Parameters<NonNullable<Observer["onClosing"]>>): void {
    for (const observer of this.#observers) {
      try {
        observer.onClosing?.(client, origin);
      } catch (error) {
        this.#onFault(observer.name, "onClosing", error);
      }
    }
  }

  finished(exchange: ExchangeView): void {
    for (const observer of this.#observers) {
      try {
        observer.onFinished?.(exchange);
      } catch (error) {
        this.#onFault(observer.name, "onFinished", error);
      }
    }
  }

  #run<T>(phases: readonly Phase<T>[], subject: T, phase: string, from: number): Verdict | Promise<Verdict> {
    for (let index = from; index < phases.length; index += 1) {
      const step = phases[index] as Phase<T>;
      let verdict: Verdict | Promise<Verdict>;
      try {
        verdict = step.run(subject);
      } catch (error) {
        verdict = this.#faulted(step.name, phase, error);
      }
      if (verdict instanceof Promise) return this.#runRest(verdict, phases, subject, phase, index);
      if (verdict.kind !== "continue") return verdict;
    }
    return CONTINUE;
  }

  async #runRest<T>(
    pending: Promise<Verdict>,
    phases: readonly Phase<T>[],
    subject: T,
    phase: string,
    index: number,
  ): Promise<Verdict> {
    let verdict: Verdict;
    try {
      verdict = await pending;
    } catch (error) {
      verdict = this.#faulted(phases[index]?.name ?? "", phase, error);
    }
    return verdict.kind === "continue" ? this.#run(phases, subject, phase, index + 1) : verdict;
  }

  #faulted(slice: string, phase: string, error: unknown): Verdict {
    this.#onFault(slice, phase, error);
    return this.#failClosed.has(slice) ? { kind: "abort", reason: `The rule engine of ${slice} failed` } : CONTINUE;
  }
}

/** A handler that decides about messages as the filters let them pass. */
function filtered(filters: readonly MessageFilter[], handler: MessageHandler | undefined): MessageHandler {
  const deciding = handler === undefined ? filters : [...filters, handler];
  return {
    gates: (direction) => deciding.some((each) => each.gates(direction)),
    decide: (message) => decideFrom(deciding, 0, message, message.payload),
    frame: (frame) => handler?.frame(frame),
    broken: (direction, reason) => handler?.broken(direction, reason),
    closed: (failure) => handler?.closed(failure),
  };
}

function decideFrom(
  filters: readonly MessageFilter[],
  start: number,
  message: TappedMessage,
  original: Buffer,
): MessageVerdict | Promise<MessageVerdict> {
  let current = message;
  for (let index = start; index < filters.length; index += 1) {
    const filter = filters[index];
    if (filter?.gates(message.direction) !== true) continue;
    const verdict = filter.decide(current);
    if (verdict instanceof Promise) {
      return verdict.then((decided) => {
        const next = applied(decided, current);
        return next === undefined ? decided : decideFrom(filters, index + 1, next, original);
      });
    }
    const next = applied(verdict, current);
    if (next === undefined) return verdict;
    current = next;
  }
  return current.payload === original ? { kind: "pass" } : { kind: "replace", payload: current.payload };
}

/** The message after a verdict; undefined if it was dropped. */
function applied(verdict: MessageVerdict, message: TappedMessage): TappedMessage | undefined {
  if (verdict.kind === "drop") return undefined;
  return verdict.kind === "pass" ? message : { ...message, payload: verdict.payload };
}

/**
 * Continues with the verdict of an asynchronous rule. Errors of `proceed` also go to `failed`: nothing awaits this
 * promise, so a rejection would end the process.
 */
export function whenDecided<T>(
  verdict: Promise<T>,
  proceed: (verdict: T) => void,
  failed: (error: unknown) => void,
): void {
  void verdict.then(proceed).catch(failed);
}
