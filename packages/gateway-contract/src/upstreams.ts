import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Authorization } from "./policies.ts";
import { FilePath, Ms, Name, NameList, Port, PositiveCount, PositiveMs, Token } from "./primitives.ts";

export const Endpoint = strictObject({
  address: Type.String({ minLength: 1 }),
  port: Port,
  weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, default: 1 })),
  /** Gets no new requests; those in progress complete. */
  drain: Type.Optional(Type.Boolean({ default: false })),
});
export type Endpoint = Static<typeof Endpoint>;

const Ratio = Type.Number({ exclusiveMinimum: 0, maximum: 1 });

/** Stops all traffic to a failing upstream. Absent: off. */
export const Breaker = strictObject({
  consecutive_failures: Type.Optional(PositiveCount),
  error_ratio: Type.Optional(Ratio),
  error_volume: Type.Optional(PositiveCount),
  window_ms: Type.Optional(PositiveMs),
  open_ms: Type.Optional(PositiveMs),
  half_open_probes: Type.Optional(PositiveCount),
});
export type Breaker = Static<typeof Breaker>;

/** Ejects failing endpoints based on live traffic. */
export const PassiveHealth = strictObject({
  consecutive_failures: Type.Optional(PositiveCount),
  failure_ratio: Type.Optional(Ratio),
  failure_min_volume: Type.Optional(PositiveCount),
  window_ms: Type.Optional(PositiveMs),
  eject_ms: Type.Optional(PositiveMs),
  half_open_probes: Type.Optional(PositiveCount),
  max_ejected_percent: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  eject_backoff: Type.Optional(Type.Number({ minimum: 1, maximum: 10 })),
});
export type PassiveHealth = Static<typeof PassiveHealth>;

export const ActiveHealth = strictObject({
  kind: Type.Optional(oneOf(["http", "tcp"])),
  host: Type.Optional(Type.String({ minLength: 1 })),
  path: Type.Optional(Type.String({ pattern: "^/[!-~]*$", "x-expects": "a path of visible ASCII that begins with /" })),
  interval_ms: Type.Optional(PositiveMs),
  timeout_ms: Type.Optional(PositiveMs),
  jitter_ms: Type.Optional(Ms),
  success_threshold: Type.Optional(PositiveCount),
  failure_threshold: Type.Optional(PositiveCount),
  expected_statuses: Type.Optional(
    Type.Array(
      Type.String({ pattern: "^([1-5]xx|[1-5][0-9][0-9])$", "x-expects": 'a status such as "204" or "2xx"' }),
      { minItems: 1 },
    ),
  ),
});
export type ActiveHealth = Static<typeof ActiveHealth>;

export const Retries = strictObject({
  attempts: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
  backoff_base_ms: Type.Optional(PositiveMs),
  backoff_cap_ms: Type.Optional(PositiveMs),
  retry_statuses: Type.Optional(Type.Array(Type.Integer({ minimum: 400, maximum: 599 }))),
  retry_transport: Type.Optional(Type.Boolean()),
  retry_post: Type.Optional(Type.Boolean()),
  budget_percent: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 100 })),
  buffer_max_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: 67_108_864 })),
  hedge: Type.Optional(
    strictObject({
      hedge_after_ms: Type.Integer({ minimum: 1, maximum: 300_000 }),
      hedge_max: Type.Optional(Type.Integer({ minimum: 1, maximum: 4 })),
    }),
  ),
});
export type Retries = Static<typeof Retries>;

export const UpstreamTimeouts = strictObject({
  /** Name lookup, TCP and TLS handshake together. */
  connect_ms: Type.Optional(PositiveMs),
  /** Per attempt, until the response header, including the wait for a connection. */
  read_ms: Type.Optional(PositiveMs),
  /** Between two chunks of the response body. */
  write_ms: Type.Optional(PositiveMs),
  /** All attempts together. */
  request_ms: Type.Optional(PositiveMs),
  happy_eyeballs_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 600_000 })),
});
export type UpstreamTimeouts = Static<typeof UpstreamTimeouts>;

export const UpstreamTls = strictObject({
  /** Replaces the public roots. */
  trusted_ca_file: Type.Optional(FilePath),
  client_cert_file: Type.Optional(FilePath),
  client_key_file: Type.Optional(FilePath),
  server_name: Type.Optional(Type.String({ minLength: 1 })),
});
export type UpstreamTls = Static<typeof UpstreamTls>;

export const LOAD_BALANCERS = [
  "round_robin",
  "least_requests",
  "random",
  "ip_hash",
  "header_hash",
  "peak_ewma",
] as const;

/** Default of `connection_cap`. */
export const DEFAULT_CONNECTION_CAP = 64;
/** Default of `stalled_connection_cap`, per active connection. */
export const STALLED_FOR_EACH = 16;
export const DEFAULT_MAX_PENDING = 1024;
export const DEFAULT_PENDING_MS = 30_000;
/** For endpoints with a name, so that DNS changes take effect within this time. */
export const DEFAULT_MAX_CONNECTION_AGE_MS = 60_000;
export const DEFAULT_REQUEST_BUFFER_BYTES = 65_536;
export const DEFAULT_RESPONSE_BUFFER_BYTES = 262_144;

/** Maximum buffered bytes of one message; larger bodies are streamed. */
const BufferBytes = Type.Integer({ minimum: 0, maximum: 16_777_216 });

/** A group of equivalent endpoints. */
export const Upstream = strictObject({
  name: Name,
  endpoints: Type.Optional(Type.Array(Endpoint)),
  load_balancer: Type.Optional(oneOf([...LOAD_BALANCERS])),
  /** Header used by `header_hash`. */
  hash_header: Type.Optional(Token),
  protocol: Type.Optional(oneOf(["http1", "https", "http2", "h2c"])),
  /** `preserve`, `endpoint` or a name. */
  upstream_host: Type.Optional(Type.String({ minLength: 1 })),
  timeouts: Type.Optional(UpstreamTimeouts),
  connection_cap: Type.Optional(PositiveCount),
  /** A connection gets no new requests after this time. */
  max_connection_age_ms: Type.Optional(Ms),
  /** Additional connections that are stalled by slow clients or idle streams. */
  stalled_connection_cap: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  max_pending: Type.Optional(PositiveCount),
  pending_timeout_ms: Type.Optional(PositiveMs),
  /** Request bodies up to this size are buffered before a connection is acquired. */
  request_buffer_bytes: Type.Optional(BufferBytes),
  /** Maximum bytes of a response buffered for its client before backpressure applies. */
  response_buffer_bytes: Type.Optional(BufferBytes),
  slow_start_ms: Type.Optional(Type.Integer({ minimum: 0, maximum: 600_000 })),
  health: Type.Optional(PassiveHealth),
  active_health: Type.Optional(ActiveHealth),
  breaker: Type.Optional(Breaker),
  retries: Type.Optional(Retries),
  tls: Type.Optional(UpstreamTls),
  /** Same as `tls.trusted_ca_file`. */
  trusted_ca_file: Type.Optional(FilePath),
  dns_discovery: Type.Optional(
    strictObject({
      hostname: Type.String({ minLength: 1 }),
      port: Port,
      record_type: Type.Optional(oneOf(["A", "AAAA", "SRV"])),
      refresh_interval_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 3600 })),
      min_endpoints: Type.Optional(PositiveCount),
      fail_open: Type.Optional(Type.Boolean()),
    }),
  ),
});
export type Upstream = Static<typeof Upstream>;

/** The target of routes: an upstream, or a split over several. */
export const Service = strictObject({
  name: Name,
  upstream: Type.Optional(Name),
  split: Type.Optional(
    strictObject({
      targets: Type.Array(
        strictObject({ upstream: Name, weight: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535 })) }),
        { minItems: 2, maxItems: 8 },
      ),
    }),
  ),
  sticky: Type.Optional(
    strictObject({ cookie: Token, ttl_s: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_592_000 })) }),
  ),
  /** Overrides the upstream's. */
  upstream_host: Type.Optional(Type.String({ minLength: 1 })),
  policies: Type.Optional(NameList),
  authorization: Type.Optional(Authorization),
  base_path: Type.Optional(Type.String()),
  version: Type.Optional(Type.String()),
});
export type Service = Static<typeof Service>;
