import type { ErrorCode } from "@headworks/gateway-contract";
import type { Limits, RawFields, RequestHead } from "@headworks/http1";
import type { BufferBudget, DeadlineSweep, RateRule } from "@headworks/sockets";
import type { ClientStream, ListenerFacts, Peer } from "#request/client-stream.ts";
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

/** What a client connection needs from the gateway. */
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
