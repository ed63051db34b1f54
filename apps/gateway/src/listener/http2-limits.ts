import { environmentNumber } from "./environment-numbers.ts";

/** What one HTTP/2 client may take; the same on all listeners. */
export interface Http2Limits {
  /** Streams at a time. */
  readonly concurrentStreams: number;
  /** Bytes of one body that may be on their way, or wait unread. */
  readonly streamWindowBytes: number;
  /** The same of all bodies of a connection together, beyond the first window that each has by the protocol. */
  readonly connectionWindowBytes: number;
  /** Bytes of all answers of a connection that may wait for the client. */
  readonly sendBufferBytes: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The limits that the environment asks for. */
export function http2Limits(environment: Environment): Http2Limits {
  return {
    concurrentStreams: environmentNumber(environment, "GATEWAY_H2_MAX_CONCURRENT_STREAMS"),
    streamWindowBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_STREAM_WINDOW_KIB"),
    connectionWindowBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_CONNECTION_WINDOW_KIB"),
    sendBufferBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_MAX_SEND_BUF_KIB"),
  };
}
