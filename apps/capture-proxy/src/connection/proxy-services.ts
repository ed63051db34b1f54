import type { Logger } from "pino";
import type { BodySpool } from "#exchange/body.ts";
import type { MutableGauges } from "#exchange/gauges.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import type { Pipeline } from "#exchange/pipeline.ts";
import type { HeadLimits } from "#upstream/origin.ts";
import type { Dialer } from "#upstream/dial.ts";
import type { IdleOrigins } from "#upstream/idle-origins.ts";
import type { OriginConnection } from "#upstream/origin-connection.ts";
import type { OriginSession } from "#upstream/origin-session.ts";
import type { DeadlineSweep } from "@headworks/sockets";
import type { CertificateRefusals } from "./certificate-refusals.ts";
import type { LeafContexts } from "./leaf-contexts.ts";

/** What the data path needs of the settings, compiled once per change and replaced whole. */
export interface TrafficPolicy {
  readonly interceptsTls: boolean;
  /** Whether clients whose TLS is intercepted are offered HTTP/2. */
  readonly offersHttp2: boolean;
  /** Whether exchanges with this host are stored and shown. */
  records(host: string): boolean;
  /** Whether TLS with this host is relayed instead of intercepted. */
  passesThrough(host: string): boolean;
  /** Whether a client may use the proxy at all. */
  allowsClient(address: string): boolean;
  readonly maxBodyBytes: number;
  readonly capturesRequestBodies: boolean;
  readonly capturesResponseBodies: boolean;
  readonly idleTimeoutMs: number;
  readonly headTimeoutMs: number;
  /** Of requests and responses; a connection keeps those that it began with. */
  readonly headLimits: HeadLimits;
}

/** Everything client connections share. */
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
  /** The policy in force; read it anew for every exchange. */
  readonly policy: () => TrafficPolicy;
  /** Answers requests to the set-up host and to the proxy's own address. */
  readonly ownPages: (request: { method: string; path: string; secure: boolean }) => SyntheticResponse;
}

/** Name under which the set-up page is reachable through the proxy. */
export const MAGIC_HOST = "weir";
