import type { ErrorCode } from "@headworks/gateway-contract";
import type { Limits, RawFields, RequestHead } from "@headworks/http1";
import type { BufferBudget, DeadlineSweep, RateRule } from "@headworks/sockets";
import type { ClientStream, ListenerFacts, Peer } from "#request/client-stream.ts";
import type { Http2Limits } from "./http2-limits.ts";

/** A client that ended its side may still read, or be gone: without a byte for so long it counts as gone. */
export const HALF_CLOSED_MS = 5000;

/** Limits of time for the connections of one listener; 0 is none. */
export interface ListenerTimeouts {
  readonly headMs: number;
  readonly idleMs: number;
  /** From the head of a request to the end of its answer. */
  readonly requestMs: number;
  /** Between two pieces of a request body. */
  readonly bodyMs: number;
  /** With which the body of a request arrives while it is waited for. */
  readonly requestRate: RateRule;
  /** With which a response that waits for its client is taken. */
  readonly responseRate: RateRule;
}

/** Clients of a listener that were too slow, by what was. */
export interface SlowClients {
  requests: number;
  responses: number;
}

/** The head of a request, whatever the protocol; its version is that of its stream. */
export type ReceivedHead = Pick<
  RequestHead,
  "method" | "target" | "targetForm" | "authority" | "fields" | "framing" | "upgrade"
>;

/** What a client connection needs from the rest of the gateway. */
export interface ConnectionServices {
  readonly timeouts: ListenerTimeouts;
  readonly limits: Partial<Limits>;
  readonly http2: Http2Limits;
  readonly deadlines: DeadlineSweep;
  /** For responses that wait for slow clients. */
  readonly buffers: BufferBudget;
  readonly slowClients: SlowClients;
  /** A defect of ours ended a connection, not the process. */
  readonly onDefect: (error: unknown) => void;
  /** A head was read. */
  request(head: ReceivedHead, listener: ListenerFacts, peer: Peer, nowMs: number, stream: ClientStream): void;
  /** The answer to bytes that are no request; it is noted like those to requests. */
  refusal(
    code: ErrorCode,
    message: string | undefined,
    listener: ListenerFacts,
    peer: Peer,
  ): { readonly status: number; readonly reason: string; readonly fields: RawFields; readonly body: string };
}

/** A connection as the listener keeps it, to end it. */
export interface OpenConnection {
  /** The present requests are the last ones; an idle connection closes at once. */
  drain(): void;
  destroy(): void;
}
