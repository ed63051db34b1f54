import type { Failure } from "./failure.ts";

/** Destination and route of a connection test. */
export interface ProbeRequest {
  readonly target: {
    readonly host: string;
    readonly port: number;
    readonly secure: boolean;
    /** Path and query to request after connecting; undefined: only connect. */
    readonly path: string | undefined;
  };
  readonly proxy: { readonly protocol: "http" | "https" | "socks5"; readonly host: string; readonly port: number };
  readonly credentials: { readonly username: string; readonly password: string } | undefined;
  /** Hosts reached without the proxy. */
  readonly bypass: readonly string[];
  readonly signal: AbortSignal;
}

/** One step of the route and its outcome. */
export interface ProbeStep {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly durationMs: number;
}

export interface ProbeResult {
  readonly via: "direct" | "forward" | "tunnel" | "refused";
  /** In order, up to the first failure. */
  readonly steps: readonly ProbeStep[];
  readonly failure: Failure | undefined;
}

/** Tests a connection and reports each step; never rejects. */
export type ProbeRoute = (request: ProbeRequest) => Promise<ProbeResult>;
