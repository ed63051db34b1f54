import type { ErrorCode } from "@headworks/gateway-contract";
import type { Limits, RawFields, RequestHead } from "@headworks/http1";
import type { DeadlineSweep } from "@headworks/sockets";
import type { ClientStream, ListenerFacts, Peer } from "#request/client-stream.ts";

/** Limits of time for the connections of one listener; 0 is none. */
export interface ListenerTimeouts {
  readonly headMs: number;
  readonly idleMs: number;
  /** From the head of a request to the end of its answer. */
  readonly requestMs: number;
  /** Between two pieces of a request body. */
  readonly bodyMs: number;
}

/** What a client connection needs from the rest of the gateway. */
export interface ConnectionServices {
  readonly timeouts: ListenerTimeouts;
  readonly limits: Partial<Limits>;
  readonly deadlines: DeadlineSweep;
  /** A head was read. */
  request(head: RequestHead, listener: ListenerFacts, peer: Peer, nowMs: number, stream: ClientStream): void;
  /** The answer to bytes that are no request. */
  refusal(
    code: ErrorCode,
    message: string | undefined,
    listener: ListenerFacts,
  ): { readonly status: number; readonly reason: string; readonly fields: RawFields; readonly body: string };
  /** The connection is gone, or somebody else's. */
  closed(connection: { drain(): void; destroy(): void }): void;
}
