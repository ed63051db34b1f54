// Tested by ../../test/http2-floods.test.ts
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

/** The limits that the environment asks for; a value out of its range is the default. */
export function http2Limits(environment: Environment): Http2Limits {
  const inRange = (name: string, least: number, most: number, otherwise: number): number => {
    const text = environment[name];
    const value = text !== undefined && /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    return value >= least && value <= most ? value : otherwise;
  };
  // A window below the protocol's initial one could not be announced before the client used it up.
  const windowKib = (name: string, otherwise: number): number => 1024 * inRange(name, 64, 1_048_576, otherwise);
  return {
    concurrentStreams: inRange("GATEWAY_H2_MAX_CONCURRENT_STREAMS", 1, 1_000_000, 128),
    streamWindowBytes: windowKib("GATEWAY_H2_STREAM_WINDOW_KIB", 1024),
    connectionWindowBytes: windowKib("GATEWAY_H2_CONNECTION_WINDOW_KIB", 4096),
    sendBufferBytes: 1024 * inRange("GATEWAY_H2_MAX_SEND_BUF_KIB", 16, 1_048_576, 1024),
  };
}
