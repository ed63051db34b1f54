import type { SharedBytes } from "@headworks/sockets";
import type { UpstreamTimeouts } from "@headworks/gateway-contract";
import type { RawFields, ResponseHead } from "@headworks/http1";
import type {
  ResponseHandler,
  CancelWait,
  EndpointPool,
  ExchangeWaiter,
  UpstreamExchange,
  UpstreamFailure,
} from "#upstream/upstream-exchange.ts";
import type { Endpoint } from "#upstream/endpoint.ts";
import type { UpstreamGroup } from "#upstream/upstream-registry.ts";
import type { AttemptTrace } from "./context.ts";

/** Why an attempt came to nothing; `stale`: its connection was closed before it, and it can be made again for nothing. */
export type AttemptFailure = UpstreamFailure | "stale";

/** The request that an attempt belongs to. A discarded or abandoned attempt makes no further calls. */
export interface AttemptOwner {
  /** A connection was acquired; send the request. */
  send(attempt: Attempt, exchange: UpstreamExchange): void;
  /** Whether this failure (closed before use, stream refused) may be retried without counting as an attempt. */
  canRetrySilently(failure: UpstreamFailure): boolean;
  /** `detail` describes the failure in words. */
  failed(attempt: Attempt, failure: AttemptFailure, detail: string): void;
  informed(head: ResponseHead): void;
  /** The response head arrived. The rest follows unless the attempt is discarded in this call. */
  answered(attempt: Attempt, head: ResponseHead): void;
  readonly data: (piece: SharedBytes) => void;
  trailers(fields: RawFields): void;
  batch(): void;
  ended(): void;
  /** The answer will not be complete; `detail` says why. */
  broke(detail: string): void;
  drained(): void;
  /** The client was too slow while others were queued for a connection. */
  evicted(): void;
  switched(attempt: Attempt): void;
}

/** Where an attempt goes, and what let it pass. */
export interface AttemptParts {
  readonly owner: AttemptOwner;
  readonly group: UpstreamGroup;
  readonly endpoint: Endpoint;
  /** Epoch of the breaker's pass. */
  readonly passEpoch: number;
  readonly timeouts: UpstreamTimeouts | undefined;
  readonly trace: AttemptTrace | undefined;
}

/** A discarded response is read up to this size to keep its connection reusable; beyond it the connection is closed. */
const MAX_DISCARDED_BYTES = 65_536;
const MAX_DISCARDED_MS = 1000;

/** One attempt to get a response from one endpoint. It is settled exactly once with the breaker and the endpoint. */
export class Attempt implements ResponseHandler, ExchangeWaiter {
  readonly endpoint: Endpoint;
  readonly trace: AttemptTrace | undefined;
  readonly #parts: AttemptParts;
  readonly #endpointEpoch: number;
  readonly #startedMs = performance.now();
  #phase: "open" | "responding" | "discarding" | "over" = "open";
  #exchange: UpstreamExchange | undefined;
  #cancelWait: CancelWait | undefined;
  #timer: NodeJS.Timeout | undefined;
  #discardedBytes = 0;
  #progressMs = 0;
  /** The head reported success; the rest of the response may still fail. */
  #isGood = false;
  #isHeld = false;

  constructor(parts: AttemptParts) {
    this.#parts = parts;
    this.endpoint = parts.endpoint;
    this.trace = parts.trace;
    this.#endpointEpoch = parts.endpoint.dispatched();
  }

  start(pool: EndpointPool): void {
    const readMs = this.#parts.timeouts?.read_ms;
    if (readMs !== undefined) this.#timer = setTimeout(() => this.#headTimedOut(), readMs);
    const cancel = pool.acquire(this);
    if (this.#phase === "open" && this.#exchange === undefined) this.#cancelWait = cancel;
  }

  /** Pauses or resumes the response. */
  hold(): void {
    this.#isHeld = true;
    this.#exchange?.hold();
  }

  release(): void {
    this.#isHeld = false;
    this.#progressMs = performance.now();
    this.#exchange?.release();
  }

  /** Drops the response but keeps its connection. */
  discard(): void {
    this.#phase = "discarding";
    this.trace?.ended();
    this.#timer = setTimeout(() => this.abandon(), MAX_DISCARDED_MS).unref();
  }

  /** Cancels the attempt. It counts against the upstream only if the upstream, not our queue, used up all the time. */
  abandon(hadItsTime = false): void {
    const phase = this.#phase;
    if (phase === "over") return;
    const cancel = this.#cancelWait;
    const exchange = this.#exchange;
    this.#end(hadItsTime ? "response-timeout" : "abandoned");
    const wasQueued = cancel?.() === false;
    exchange?.abandon();
    if (phase === "open") this.#settle(hadItsTime && !wasQueued ? "failed" : "unknown");
  }

  takeOver(): ReturnType<UpstreamExchange["takeOver"]> | undefined {
    const exchange = this.#exchange;
    this.#end();
    return exchange?.takeOver();
  }

  onExchange(exchange: UpstreamExchange): void {
    this.#cancelWait = undefined;
    if (this.#phase !== "open") return exchange.abandon();
    this.#exchange = exchange;
    this.#parts.owner.send(this, exchange);
  }

  onUnavailable(failure: UpstreamFailure, detail: string): void {
    this.#fail(failure, detail);
  }

  onInformational(head: ResponseHead): void {
    if (this.#phase === "open") this.#parts.owner.informed(head);
  }

  onResponseHead(head: ResponseHead): void {
    if (this.#phase !== "open") return;
    clearTimeout(this.#timer);
    this.#phase = "responding";
    this.#isGood = head.status < 500;
    this.trace?.answered(head.status);
    const { group, owner, passEpoch, timeouts } = this.#parts;
    this.endpoint.answered(this.#endpointEpoch, head.status, performance.now() - this.#startedMs);
    group.settle(passEpoch, this.#isGood);
    owner.answered(this, head);
    const gapMs = timeouts?.write_ms;
    if (gapMs !== undefined && this.#isAnswering && head.status !== 101) this.#watchGaps(gapMs);
  }

  onResponseData(piece: SharedBytes): void {
    if (this.#phase === "responding") this.#parts.owner.data(piece);
    else this.#discardedBytes += piece.length;
  }

  onResponseTrailers(fields: RawFields): void {
    if (this.#phase === "responding") this.#parts.owner.trailers(fields);
  }

  onResponseBatch(): void {
    if (this.#parts.timeouts?.write_ms !== undefined) this.#progressMs = performance.now();
    if (this.#phase === "responding") this.#parts.owner.batch();
    else if (this.#discardedBytes > MAX_DISCARDED_BYTES) this.abandon();
  }

  onResponseEnd(): void {
    const isWanted = this.#phase === "responding";
    this.#end();
    if (isWanted) this.#parts.owner.ended();
  }

  onUpstreamLost(failure: UpstreamFailure, stale: boolean, detail: string): void {
    this.#fail(stale && this.#parts.owner.canRetrySilently(failure) ? "stale" : failure, detail);
  }

  onEvicted(): void {
    const phase = this.#phase;
    this.#end("abandoned");
    if (phase === "open") this.#settle("unknown");
    if (phase === "open" || phase === "responding") this.#parts.owner.evicted();
  }

  onUpstreamDrain(): void {
    if (this.#phase === "open" || this.#phase === "responding") this.#parts.owner.drained();
  }

  onSwitched(): void {
    if (this.#phase === "responding") this.#parts.owner.switched(this);
  }

  get #isAnswering(): boolean {
    return this.#phase === "responding";
  }

  /** `wasQueued`: the request never left the connection queue, so the endpoint did not see it. */
  #fail(failure: AttemptFailure, detail: string, wasQueued = false): void {
    const phase = this.#phase;
    this.#end(failure);
    if (phase === "responding") return this.#broke(detail);
    if (phase !== "open") return;
    const isOurs = wasQueued || failure === "saturated" || failure === "misconfigured" || failure === "stale";
    this.#settle(isOurs ? "unknown" : "failed");
    this.#parts.owner.failed(this, failure, detail);
  }

  #broke(detail: string): void {
    this.endpoint.bodyBroke();
    this.#parts.owner.broke(detail);
  }

  #headTimedOut(): void {
    const exchange = this.#exchange;
    const cancel = this.#cancelWait;
    const wasQueued = cancel?.() === false;
    exchange?.abandon();
    this.#fail("response-timeout", `no response within ${this.#parts.timeouts?.read_ms} ms`, wasQueued);
  }

  /** One timer checks periodically, so that a piece of the body costs no timer of its own. */
  #watchGaps(gapMs: number): void {
    this.#progressMs = performance.now();
    const look = (): void => {
      const leftMs = this.#isHeld ? gapMs : this.#progressMs + gapMs - performance.now();
      if (leftMs > 0) {
        this.#timer = setTimeout(look, leftMs);
        return;
      }
      const exchange = this.#exchange;
      this.#end("response-timeout");
      exchange?.abandon();
      this.#broke(`no further response bytes within ${gapMs} ms`);
    };
    this.#timer = setTimeout(look, gapMs);
  }

  #settle(result: "failed" | "unknown"): void {
    const { group, passEpoch } = this.#parts;
    if (result === "failed") this.endpoint.failed(this.#endpointEpoch);
    else this.endpoint.abandoned(this.#endpointEpoch);
    group.settle(passEpoch, result === "failed" ? false : undefined);
  }

  #end(failure?: string): void {
    this.#phase = "over";
    if (this.#isGood && (failure === undefined || failure === "abandoned")) {
      this.endpoint.completed(this.#endpointEpoch);
    }
    this.trace?.ended(failure);
    clearTimeout(this.#timer);
    this.#exchange = undefined;
    this.#cancelWait = undefined;
  }
}
