import { Worker } from "node:worker_threads";
import type { Logger } from "pino";
import type { Clock } from "#slice.ts";
import { QuotaLedger } from "./quota-ledger.ts";
import { StateStoreError, type StoreErrorKind } from "./state-store-error.ts";
import type {
  FromStore,
  GroupOutcome,
  StoreCallName,
  StoreCalls,
  StoreResponses,
  StoreSetup,
  ToStore,
} from "./store-messages.ts";

/** A group waits for more no longer than so many turns: under load some hundred microseconds. */
const MAX_TURNS = 8;

/** A disk that does not answer for so long fails the charges that wait for it. */
const STUCK_MS = 5000;
const WATCH_MS = 500;
/** A thread that broke is started again after that. */
const RESTART_MS = 1000;
/** On the way out, a disk that does not answer is not waited for longer. */
const CLOSE_MS = 10_000;

/** What the client needs besides the file. */
export interface StoreScope {
  readonly setup: Omit<StoreSetup, "nowMs">;
  readonly log: Logger;
  readonly clock: Clock;
}

interface Call {
  readonly resolve: (value: StoreResponses[StoreCallName]) => void;
  readonly reject: (error: Error) => void;
}

/** The gateway's side of the store's thread: starts it, asks it, watches it. */
export class StoreClient {
  readonly ledger: QuotaLedger;
  readonly #scope: StoreScope;
  readonly #calls = new Map<number, Call>();
  #worker: Worker | undefined;
  #nextCall = 1;
  #sentAtMs: number | undefined;
  #problem: string | undefined;
  /** A start of the thread that is under way. */
  #restarting: Promise<void> | undefined;
  #closing: PromiseWithResolvers<void> | undefined;
  readonly #watch: NodeJS.Timeout;

  private constructor(scope: StoreScope) {
    this.#scope = scope;
    this.ledger = new QuotaLedger({
      send: (group) => {
        this.#sentAtMs = performance.now();
        this.#post(group);
      },
      nowMs: () => scope.clock.now(),
      soon: (flush) => atQuietTurn(() => this.ledger.charges, flush, setImmediate),
    });
    this.#watch = setInterval(() => this.#look(), WATCH_MS);
    this.#watch.unref();
  }

  /** Starts the thread. Rejects with {@link StateStoreError} when the file cannot be opened. */
  static async start(scope: StoreScope): Promise<StoreClient> {
    const client = new StoreClient(scope);
    try {
      await client.#startThread();
      return client;
    } catch (error) {
      clearInterval(client.#watch);
      throw error;
    }
  }

  /** Asks for something besides charging. Rejects when it fails or the store is closed. */
  async call<N extends StoreCallName>(name: N, input: StoreCalls[N]): Promise<StoreResponses[N]> {
    if (this.#worker === undefined || this.#closing !== undefined) throw new Error(this.#absence);
    const call = this.#nextCall++;
    const { promise, resolve, reject } = Promise.withResolvers<StoreResponses[StoreCallName]>();
    this.#calls.set(call, { resolve, reject });
    this.#post({ kind: "call", call, request: { name, input } as ToStoreRequest });
    return (await promise) as StoreResponses[N];
  }

  get #absence(): string {
    return this.#closing === undefined ? (this.#problem ?? "The state store is starting") : "The state store is closed";
  }

  /** Lets everything that was asked for come to its end, then lets the file go. */
  async close(): Promise<void> {
    if (this.#closing !== undefined) return await this.#closing.promise;
    this.#closing = Promise.withResolvers<void>();
    const timer = setTimeout(() => void this.#worker?.terminate(), CLOSE_MS);
    // A thread on its way would hold the file, and the process, afterwards.
    await this.#restarting;
    if (this.#worker === undefined) this.#closing.resolve();
    else this.#closeWhenIdle();
    await this.#closing.promise;
    clearTimeout(timer);
    clearInterval(this.#watch);
    this.ledger.lost("The state store is closed");
  }

  /** True while nothing new is taken. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  #closeWhenIdle(): void {
    if (this.#closing !== undefined && this.ledger.isIdle) this.#post({ kind: "close" });
  }

  #post(message: ToStore): void {
    this.#worker?.postMessage(message);
  }

  async #startThread(): Promise<void> {
    const setup: StoreSetup = { ...this.#scope.setup, nowMs: this.#scope.clock.now() };
    const worker = new Worker(new URL("./store.worker.ts", import.meta.url), {
      workerData: setup,
      name: "sluice-state",
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    worker.on("message", (message: FromStore) => {
      if (message.kind === "ready") {
        this.#worker = worker;
        resolve();
      } else if (message.kind === "refused") {
        reject(new StateStoreError(message.errorKind as StoreErrorKind, message.error));
      } else this.#receive(message);
    });
    worker.on("error", (error: Error) => {
      this.#note(`The thread of the state store broke: ${error.message}`);
      reject(error);
    });
    worker.on("exit", () => {
      reject(new Error("The thread of the state store ended"));
      if (this.#worker === worker) this.#threadEnded();
    });
    await promise;
  }

  #receive(message: Exclude<FromStore, { kind: "ready" | "refused" }>): void {
    switch (message.kind) {
      case "settled":
        return this.#settled(message);
      case "response":
        this.#calls.get(message.call)?.resolve(message.value);
        this.#calls.delete(message.call);
        return;
      case "failed":
        this.#calls.get(message.call)?.reject(new Error(message.error));
        this.#calls.delete(message.call);
    }
  }

  #settled(outcome: GroupOutcome): void {
    this.#sentAtMs = undefined;
    this.#note(outcome.error);
    this.ledger.settled(outcome);
    if (this.#closing !== undefined) this.#closeWhenIdle();
  }

  /** One line when trouble begins and one when it is over. */
  #note(problem: string | undefined): void {
    if (problem === this.#problem) return;
    const { log } = this.#scope;
    if (problem === undefined) log.warn({ code: "state_store_recovered" }, "The state store works again");
    else if (this.#problem === undefined) log.error({ code: "state_store_failed" }, problem);
    this.#problem = problem;
  }

  #look(): void {
    if (this.#sentAtMs === undefined || performance.now() - this.#sentAtMs < STUCK_MS) return;
    const problem = `The disk of the state store has not answered for ${STUCK_MS / 1000} s`;
    this.#note(problem);
    this.ledger.giveUp(problem);
  }

  #threadEnded(): void {
    this.#worker = undefined;
    this.#sentAtMs = undefined;
    for (const { reject } of this.#calls.values()) reject(new Error("The thread of the state store ended"));
    this.#calls.clear();
    if (this.#closing !== undefined) {
      this.#closing.resolve();
      return;
    }
    this.#note(this.#problem ?? "The thread of the state store ended");
    this.ledger.lost(this.#absence);
    this.#restartLater();
  }

  #restartLater(): void {
    setTimeout(() => {
      if (this.#closing !== undefined) return;
      this.#restarting = this.#startThread().then(
        () => {
          this.#note(undefined);
          this.ledger.resumed();
        },
        () => this.#restartLater(),
      );
    }, RESTART_MS).unref();
  }
}

type ToStoreRequest = (ToStore & { kind: "call" })["request"];

/**
 * Calls `run` at the end of the first turn of the event loop in which `count` did not grow, and of the eighth in any case.
 * What is alone leaves with its own turn; what comes in numbers leaves together, and a commit costs the same for all of it:
 * with 64 connections a request with two budgets took a sixth less processor time than where each turn made a group.
 */
export function atQuietTurn(count: () => number, run: () => void, later: (turn: () => void) => void): void {
  let known = count();
  let turns = 0;
  const turn = (): void => {
    const now = count();
    turns += 1;
    if (now === known || turns === MAX_TURNS) return run();
    known = now;
    later(turn);
  };
  later(turn);
}
