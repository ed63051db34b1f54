import type { Failure } from "./failure.ts";

/** Where a trial connection goes, and by way of what. */
export interface ProbeRequest {
  readonly target: {
    readonly host: string;
    readonly port: number;
    readonly secure: boolean;
    /** Path and query to ask for once the connection stands; undefined: it is enough that it stands. */
    readonly path: string | undefined;
  };
  readonly proxy: { readonly protocol: "http" | "https" | "socks5"; readonly host: string; readonly port: number };
  readonly credentials: { readonly username: string; readonly password: string } | undefined;
  /** Hosts that are reached without the proxy. */
  readonly bypass: readonly string[];
  readonly signal: AbortSignal;
}

/** One step of the way and what came of it. */
export interface ProbeStep {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly durationMs: number;
}

/** How far a trial connection came. */
export interface ProbeResult {
  readonly via: "direct" | "forward" | "tunnel" | "refused";
  /** In their order, up to the first that failed. */
  readonly steps: readonly ProbeStep[];
  readonly failure: Failure | undefined;
}

/** Tries a connection and reports each step; never rejects. */
export type ProbeRoute = (request: ProbeRequest) => Promise<ProbeResult>;
