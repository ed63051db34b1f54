import type { Logger } from "pino";
import type { Settings } from "@headworks/capture-contract";
import { compileHostPatterns, isLoopback } from "@headworks/host-patterns";
import type { DeadlineSweep } from "@headworks/sockets";
import type { BodySpool } from "#exchange/body.ts";
import type { MutableGauges } from "#exchange/gauges.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { Pipeline } from "#exchange/pipeline.ts";
import type { Dialer } from "#upstream/dial.ts";
import type { IdleOrigins } from "#upstream/idle-origins.ts";
import type { OriginConnection } from "#upstream/origin-connection.ts";
import type { OriginSession } from "#upstream/origin-session.ts";
import type { HeadLimits } from "#upstream/origin.ts";
import type { CertificateRefusals, LeafContexts } from "./client-tls.ts";

/** The settings that the data path needs, compiled once per change and replaced as a whole. */
export interface TrafficPolicy {
  readonly interceptsTls: boolean;
  /** Whether intercepted clients are offered HTTP/2. */
  readonly offersHttp2: boolean;
  /** Whether exchanges with this host are recorded. */
  records(host: string): boolean;
  /** Whether TLS with this host is relayed instead of intercepted. */
  passesThrough(host: string): boolean;
  /** Whether a client may use the proxy. */
  allowsClient(address: string): boolean;
  readonly maxBodyBytes: number;
  readonly capturesRequestBodies: boolean;
  readonly capturesResponseBodies: boolean;
  readonly idleTimeoutMs: number;
  readonly headTimeoutMs: number;
  /** For requests and responses; a connection keeps the limits it started with. */
  readonly headLimits: HeadLimits;
}

/** Everything shared by client connections. */
export interface ProxyServices {
  readonly pipeline: Pipeline;
  readonly dialer: Dialer;
  readonly idleOrigins: IdleOrigins<OriginConnection | OriginSession>;
  readonly leafContexts: LeafContexts;
  readonly refusals: CertificateRefusals;
  readonly deadlines: DeadlineSweep;
  readonly gauges: MutableGauges;
  readonly log: Logger;
  readonly spool: BodySpool;
  /** The current policy; read again for every exchange. */
  readonly policy: () => TrafficPolicy;
  /** Responds to requests for the set-up host and the proxy's own address. */
  readonly ownPages: (request: { method: string; path: string; secure: boolean }) => SyntheticResponse;
}

/** Host name of the set-up page. */
export const MAGIC_HOST = "weir";

/** Compiles the settings that the data path reads for every exchange. */
export function compileTrafficPolicy(settings: Settings): TrafficPolicy {
  const ignored = compileHostPatterns(settings.ignored_domains, "ignored");
  const passed = compileHostPatterns(settings.passthrough_domains, "ignored");
  const allowed = compileHostPatterns(settings.allowed_ips, "ignored");
  const records = settings.capture_enabled;
  const ignoresSome = settings.ignored_domains.length > 0;
  const passesSome = settings.passthrough_domains.length > 0;
  const allowsAll = settings.allowed_ips.length === 0;
  return {
    interceptsTls: settings.intercept_https,
    offersHttp2: settings.enable_h2_downstream,
    records: (host) => records && !(ignoresSome && ignored.matches(host)),
    passesThrough: (host) => passesSome && passed.matches(host),
    allowsClient: (address) => allowsAll || isLoopback(address) || allowed.matches(address),
    maxBodyBytes: settings.max_body_size,
    capturesRequestBodies: settings.capture_request_bodies,
    capturesResponseBodies: settings.capture_response_bodies,
    idleTimeoutMs: settings.idle_timeout_ms,
    headTimeoutMs: settings.head_timeout_ms,
    headLimits: { headBytes: settings.max_header_bytes, fieldCount: settings.max_header_fields },
  };
}
