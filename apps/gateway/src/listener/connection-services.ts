import type { ErrorCode } from "@headworks/gateway-contract";
import type { Limits, RawFields, RequestHead } from "@headworks/http1";
import { type BufferBudget, type DeadlineSweep, MinimumRate, type RateRule, turnMs } from "@headworks/sockets";
import type { ClientStream, ListenerFacts, Peer } from "#request/context.ts";
import type { Http2Limits } from "./environment-numbers.ts";

/** A half-closed client that sends and takes no byte for this long counts as gone. */
export const HALF_CLOSED_MS = 5000;

/** Timeouts of the connections of one listener; 0 is none. */
export interface ListenerTimeouts {
  readonly headMs: number;
  readonly idleMs: number;
  /** From the request head to the end of the response. */
  readonly requestMs: number;
  /** Between two pieces of a request body. */
  readonly bodyMs: number;
  /** Minimum rate of an awaited request body. */
  readonly requestRate: RateRule;
  /** Minimum rate at which a client takes its buffered response. */
  readonly responseRate: RateRule;
}

/** Number of clients that were too slow, by cause. */
export interface SlowClients {
  requests: number;
  responses: number;
}

/** The head of a request, independent of the protocol; its version is that of its stream. */
export type ReceivedHead = Pick<
  RequestHead,
  "method" | "target" | "targetForm" | "authority" | "fields" | "framing" | "upgrade"
>;

/** The gateway's parts that a client connection uses. */
export interface ConnectionServices {
  readonly timeouts: ListenerTimeouts;
  readonly limits: Partial<Limits>;
  readonly http2: Http2Limits;
  readonly deadlines: DeadlineSweep;
  /** Memory for responses to slow clients. */
  readonly buffers: BufferBudget;
  readonly slowClients: SlowClients;
  /** An internal error ended a connection, not the process. */
  readonly onDefect: (error: unknown) => void;
  request(head: ReceivedHead, listener: ListenerFacts, peer: Peer, nowMs: number, stream: ClientStream): void;
  /** The response to a malformed request, observed like those to requests. */
  refusal(
    code: ErrorCode,
    message: string | undefined,
    listener: ListenerFacts,
    peer: Peer,
  ): { readonly status: number; readonly reason: string; readonly fields: RawFields; readonly body: string };
}

/** A connection as the listener sees it. */
export interface OpenConnection {
  /** The current requests are the last ones; an idle connection closes at once. */
  drain(): void;
  destroy(): void;
}

/** Timing of one HTTP/1 client or HTTP/2 stream: deadlines, minimum rates and buffer memory. */
export class ClientPace {
  /** Bytes of request bodies received so far. */
  bodyBytes = 0;
  /** Deadline for the next progress. */
  stillDeadlineMs = Number.POSITIVE_INFINITY;
  readonly #services: ConnectionServices;
  readonly #takenBytesNow: () => number;
  /** Created for the first awaited body. */
  #requestRate: MinimumRate | undefined;
  /** Created for the first buffered response. */
  #responseRate: MinimumRate | undefined;
  /** Bytes that the client had taken at the last check. */
  #takenBytes = 0;
  #bufferedBytes = 0;

  constructor(services: ConnectionServices, takenBytesNow: () => number) {
    this.#services = services;
    this.#takenBytesNow = takenBytesNow;
  }

  /** When the next check is due. */
  get deadlineMs(): number {
    return Math.min(
      this.stillDeadlineMs,
      this.#requestRate?.deadlineMs ?? Number.POSITIVE_INFINITY,
      this.#responseRate?.deadlineMs ?? Number.POSITIVE_INFINITY,
    );
  }

  waitForBody(): void {
    const { requestRate } = this.#services.timeouts;
    if (requestRate.bytesPerS === 0) return;
    this.#requestRate ??= new MinimumRate(requestRate);
    this.#requestRate.wait(turnMs(), this.bodyBytes);
  }

  /** No body bytes are awaited now. */
  bodyRests(): void {
    this.#requestRate?.rest(turnMs());
  }

  /** The body is complete, or it is unknown whether more of it will be read. */
  bodyEnds(): void {
    this.#requestRate?.end();
  }

  /** Whether the body arrived below its minimum rate, which is counted. */
  isBodyTooSlow(nowMs: number): boolean {
    if (this.#requestRate?.isTooSlow(nowMs, this.bodyBytes) !== true) return false;
    this.#services.slowClients.requests += 1;
    return true;
  }

  /** Response bytes are buffered for the client. */
  waitForTaking(): void {
    const { responseRate } = this.#services.timeouts;
    if (responseRate.bytesPerS === 0) return;
    this.#responseRate ??= new MinimumRate(responseRate);
    if (this.#responseRate.deadlineMs !== Number.POSITIVE_INFINITY) return;
    this.#takenBytes = this.#takenBytesNow();
    this.#responseRate.wait(turnMs(), this.#takenBytes);
  }

  /** Nothing is buffered for the client any more. */
  taken(): void {
    this.release();
    this.#responseRate?.rest(turnMs());
  }

  /** How the client takes its buffered response; `slow` is counted. */
  taking(nowMs: number): "moving" | "still" | "slow" {
    const takenBytes = this.#takenBytesNow();
    const isMoving = takenBytes !== this.#takenBytes;
    this.#takenBytes = takenBytes;
    if (this.#responseRate?.isTooSlow(nowMs, takenBytes) === true) {
      this.#services.slowClients.responses += 1;
      return "slow";
    }
    return isMoving ? "moving" : "still";
  }

  /** Whether all waiting bytes may be buffered here, so that the endpoint need not be paused. */
  mayBuffer(waitingBytes: number, maxBytes: number): boolean {
    if (waitingBytes >= maxBytes) return false;
    if (waitingBytes <= this.#bufferedBytes) return true;
    if (!this.#services.buffers.reserve(waitingBytes - this.#bufferedBytes)) return false;
    this.#bufferedBytes = waitingBytes;
    return true;
  }

  /** Releases memory; must be called at the end of the connection or stream. */
  release(): void {
    if (this.#bufferedBytes === 0) return;
    this.#services.buffers.release(this.#bufferedBytes);
    this.#bufferedBytes = 0;
  }
}
