import type { ConfigDocument } from "@headworks/gateway-contract";
import { Queue } from "@headworks/sockets";
import type { DryRunReport, Generation, Refusal, RequestContext } from "./context.ts";

/** Requests of this priority or above may use the reserve. */
const HIGH_PRIORITY = 8;
const DEFAULT_QUEUE_SIZE = 100;
const DEFAULT_QUEUE_TIMEOUT_MS = 1000;
const SATURATED: Refusal = { code: "gateway_saturated" };

export interface AdmissionParts {
  readonly report: DryRunReport;
  /** Starts a timer and returns a function that cancels it; default: the system's timers. */
  readonly after?: (delayMs: number, run: () => void) => () => void;
}

/** Counts of the admission queue since the start. */
export interface QueueCounts {
  readonly admitted: number;
  readonly timeout: number;
  readonly queueFull: number;
  /** Queued now. */
  readonly depth: number;
}

interface Rules {
  readonly generation: number;
  readonly cap: number;
  /** The part of `cap` that ordinary requests may use. */
  readonly ordinaryCap: number;
  readonly isDryRun: boolean;
  readonly queue:
    | {
        readonly size: number;
        readonly ordinarySize: number;
        readonly timeoutMs: number;
        readonly isByPriority: boolean;
      }
    | undefined;
}

interface Waiting {
  readonly request: RequestContext;
  /** Sequence number of arrival. */
  readonly order: number;
  readonly decide: (verdict: true | Refusal) => void;
}

/**
 * Bounds the number of requests that are in their actions at a time. A tenth of the permits is reserved for requests
 * of priority 8 and above, if the document has any; other requests are shed at once, or wait in a bounded queue for a
 * bounded time.
 */
export class AdmissionControl {
  readonly #report: DryRunReport;
  readonly #after: NonNullable<AdmissionParts["after"]>;
  readonly #high = new Queue<Waiting>();
  readonly #ordinary = new Queue<Waiting>();
  #rules: Rules = { generation: 0, cap: Infinity, ordinaryCap: Infinity, isDryRun: false, queue: undefined };
  /** Counted even without a limit, so that a reload that sets one starts from the true number. */
  #active = 0;
  #arrivals = 0;
  #admitted = 0;
  #timeout = 0;
  #queueFull = 0;

  constructor({ report, after = startTimer }: AdmissionParts) {
    this.#report = report;
    this.#after = after;
  }

  /** Permits in use. */
  get active(): number {
    return this.#active;
  }

  get queueCounts(): QueueCounts {
    const depth = this.#high.size + this.#ordinary.size;
    return { admitted: this.#admitted, timeout: this.#timeout, queueFull: this.#queueFull, depth };
  }

  /** `true`: call `release` once. A refusal: the request is shed. */
  admit(request: RequestContext): true | Refusal | Promise<true | Refusal> {
    const rules = this.#rulesOf(request.generation);
    const isHigh = priorityOf(request) >= HIGH_PRIORITY;
    if (this.#active < (isHigh ? rules.cap : rules.ordinaryCap)) {
      this.#active += 1;
      return true;
    }
    if (rules.isDryRun) {
      this.#report(request, 503, `${this.#active} requests are under way, at most ${rules.cap} are allowed`);
      this.#active += 1;
      return true;
    }
    return this.#enqueue(request, rules, isHigh);
  }

  release(): void {
    this.#active -= 1;
    this.#grant();
  }

  /** The rules of the newest generation, whatever the request's own: all requests share the permits. */
  #rulesOf(generation: Generation): Rules {
    if (generation.number > this.#rules.generation) {
      this.#rules = rulesOf(generation);
      this.#grant();
    }
    return this.#rules;
  }

  #enqueue(request: RequestContext, { queue }: Rules, isHigh: boolean): Refusal | Promise<true | Refusal> {
    if (queue === undefined) return SATURATED;
    const line = isHigh ? this.#high : this.#ordinary;
    const isFull = this.#high.size + this.#ordinary.size >= queue.size;
    if (isFull || (!isHigh && line.size >= queue.ordinarySize)) {
      this.#queueFull += 1;
      return SATURATED;
    }
    const { promise, resolve } = Promise.withResolvers<true | Refusal>();
    this.#arrivals += 1;
    const entry = line.push({ request, order: this.#arrivals, decide: resolve });
    const cancelTimer = this.#after(queue.timeoutMs, () => {
      leave();
      this.#timeout += 1;
      resolve({ ...SATURATED, fields: ["Retry-After", String(Math.ceil(queue.timeoutMs / 1000))] });
    });
    const leave = (): void => {
      cancelTimer();
      line.leave(entry);
      request.leaveAdmission = undefined;
    };
    request.leaveAdmission = leave;
    return promise;
  }

  /** Grants free permits to queued requests. */
  #grant(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      next.request.leaveAdmission?.();
      this.#admitted += 1;
      this.#active += 1;
      next.decide(true);
    }
  }

  /** The next queued request that a free permit suits. */
  #next(): Waiting | undefined {
    if (this.#high.size + this.#ordinary.size === 0) return undefined;
    const { cap, ordinaryCap, queue } = this.#rules;
    const high = this.#active < cap ? this.#high.first : undefined;
    const ordinary = this.#active < ordinaryCap ? this.#ordinary.first : undefined;
    if (high === undefined || ordinary === undefined) return high ?? ordinary;
    return queue?.isByPriority === false && ordinary.order < high.order ? ordinary : high;
  }
}

function priorityOf({ consumer, route }: RequestContext): number {
  return consumer?.priority ?? route?.priority ?? 0;
}

function rulesOf({ number, document }: Generation): Rules {
  const { max_concurrent_requests: cap = Infinity, load_shed_dry_run: isDryRun = false } = document.gateway;
  const { admission_queue: queue } = document.gateway;
  // A reserve of everything would shut out ordinary requests.
  const reserve =
    cap !== Infinity && hasHighPriority(document) ? Math.min(cap - 1, Math.max(1, Math.floor(cap / 10))) : 0;
  const size = queue?.max_queue_size ?? DEFAULT_QUEUE_SIZE;
  const isByPriority = queue?.per_priority ?? true;
  return {
    generation: number,
    cap,
    ordinaryCap: cap - reserve,
    isDryRun,
    queue:
      queue?.enabled === true
        ? {
            size,
            ordinarySize: isByPriority ? Math.max(1, Math.floor(size / 2)) : size,
            timeoutMs: queue.queue_timeout_ms ?? DEFAULT_QUEUE_TIMEOUT_MS,
            isByPriority,
          }
        : undefined,
  };
}

function hasHighPriority({ routes, consumers }: ConfigDocument): boolean {
  return [...routes, ...consumers].some(({ priority = 0 }) => priority >= HIGH_PRIORITY);
}

function startTimer(delayMs: number, run: () => void): () => void {
  const timer = setTimeout(run, delayMs);
  return () => clearTimeout(timer);
}
