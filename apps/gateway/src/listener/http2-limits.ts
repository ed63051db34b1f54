import { environmentNumber } from "./environment-numbers.ts";

/** Limits of each HTTP/2 client; the same on all listeners. */
export interface Http2Limits {
  /** Concurrent streams. */
  readonly concurrentStreams: number;
  /** Bytes of one body in flight or unread. */
  readonly streamWindowBytes: number;
  /** Bytes of all bodies of a connection in flight or unread, beyond the initial window of each stream. */
  readonly connectionWindowBytes: number;
  /** Limit of response bytes buffered per connection. */
  readonly sendBufferBytes: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The limits from environment variables. */
export function http2Limits(environment: Environment): Http2Limits {
  return {
    concurrentStreams: environmentNumber(environment, "GATEWAY_H2_MAX_CONCURRENT_STREAMS"),
    streamWindowBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_STREAM_WINDOW_KIB"),
    connectionWindowBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_CONNECTION_WINDOW_KIB"),
    sendBufferBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_MAX_SEND_BUF_KIB"),
  };
}
