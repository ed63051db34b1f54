import type { Failure } from "#exchange/failure.ts";
import type { TunnelBase } from "./request-plan.ts";

/** Whether the client of a tunnel may speak another protocol than HTTP: inside TLS nothing but ALPN says what it speaks. */
export function mayBeForeign(base: TunnelBase | undefined): boolean {
  return base?.scheme === "https" && base.isHttpAgreed === false;
}

/** Tells the tunnel how it failed where no request can have that in its entry, and its user what to do about it. */
export function failTunnel(base: TunnelBase | undefined, failure: Failure): void {
  if (base === undefined) return;
  const advice = `; if the client speaks another protocol than HTTP inside TLS, list ${base.host} under passthrough_domains`;
  base.failed?.(mayBeForeign(base) ? { ...failure, message: failure.message + advice } : failure);
}
