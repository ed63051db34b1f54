import { MAX_MS } from "@headworks/gateway-contract";

type Environment = Readonly<Record<string, string | undefined>>;

interface NumberRange {
  readonly minimum: number;
  readonly maximum: number;
  readonly default: number;
  /** Fractions are allowed. */
  readonly isShare?: true;
}

const MAX_WINDOW_KIB = 1_048_576;

const NUMBERS = {
  GATEWAY_ACCESS_LOG_SAMPLE: { minimum: 0, maximum: 1, default: 1, isShare: true },
  GATEWAY_ADMIN_DEV: { minimum: 0, maximum: 1, default: 0 },
  GATEWAY_SHUTDOWN_DELAY_MS: { minimum: 0, maximum: MAX_MS, default: 3000 },
  GATEWAY_SHUTDOWN_TIMEOUT_SECS: { minimum: 0, maximum: MAX_MS / 1000, default: 10 },
  GATEWAY_HTTP1_MAX_HEADERS: { minimum: 1, maximum: 100_000, default: 100 },
  GATEWAY_HTTP1_MAX_HEADER_BYTES: { minimum: 256, maximum: 16_777_216, default: 65_536 },
  GATEWAY_HTTP1_HEADER_TIMEOUT_MS: { minimum: 1, maximum: MAX_MS, default: 10_000 },
  GATEWAY_REQUEST_BODY_TIMEOUT_MS: { minimum: 1, maximum: MAX_MS, default: 30_000 },
  GATEWAY_H2_MAX_CONCURRENT_STREAMS: { minimum: 1, maximum: 1_000_000, default: 128 },
  // The client could use up the protocol's initial window before a smaller one was announced.
  GATEWAY_H2_STREAM_WINDOW_KIB: { minimum: 64, maximum: MAX_WINDOW_KIB, default: 1024 },
  GATEWAY_H2_CONNECTION_WINDOW_KIB: { minimum: 64, maximum: MAX_WINDOW_KIB, default: 4096 },
  GATEWAY_H2_MAX_SEND_BUF_KIB: { minimum: 16, maximum: MAX_WINDOW_KIB, default: 1024 },
} as const satisfies Record<string, NumberRange>;

/** The number of an environment variable; the default if it is unset or empty. Throws for any other text. */
export function environmentNumber(environment: Environment, name: keyof typeof NUMBERS): number {
  const problem = problemOf(environment, name);
  if (problem !== undefined) throw new Error(problem);
  const text = environment[name]?.trim() ?? "";
  return text === "" ? NUMBERS[name].default : Number(text);
}

/** All errors in the numbers of an environment, a sentence each. */
export function environmentProblems(environment: Environment): readonly string[] {
  return Object.keys(NUMBERS).flatMap((name) => problemOf(environment, name as keyof typeof NUMBERS) ?? []);
}

function problemOf(environment: Environment, name: keyof typeof NUMBERS): string | undefined {
  const text = environment[name]?.trim() ?? "";
  const { minimum, maximum, isShare }: NumberRange = NUMBERS[name];
  const isNumber = isShare === true ? /^(?:[0-9]+\.?|[0-9]*\.[0-9]+)$/.test(text) : /^[0-9]{1,16}$/.test(text);
  if (text === "" || (isNumber && Number(text) >= minimum && Number(text) <= maximum)) return undefined;
  const kind = isShare === true ? "number" : "whole number";
  return `${name} must be a ${kind} from ${minimum} to ${maximum}; it is ${JSON.stringify(environment[name])}`;
}

/** Limits of each HTTP/2 client; the same on all listeners. */
export interface Http2Limits {
  readonly concurrentStreams: number;
  /** Bytes of one body in flight or unread. */
  readonly streamWindowBytes: number;
  /** Bytes of all bodies of a connection in flight or unread, beyond the initial window of each stream. */
  readonly connectionWindowBytes: number;
  /** Limit of response bytes buffered per connection. */
  readonly sendBufferBytes: number;
}

/** The limits from environment variables. */
export function http2Limits(environment: Environment): Http2Limits {
  return {
    concurrentStreams: environmentNumber(environment, "GATEWAY_H2_MAX_CONCURRENT_STREAMS"),
    streamWindowBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_STREAM_WINDOW_KIB"),
    connectionWindowBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_CONNECTION_WINDOW_KIB"),
    sendBufferBytes: 1024 * environmentNumber(environment, "GATEWAY_H2_MAX_SEND_BUF_KIB"),
  };
}
