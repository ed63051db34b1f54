import { hostPortText } from "@headworks/host-patterns";
import { removeField } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import type { Failure } from "#exchange/failure.ts";
import type { Destination } from "./destination.ts";
import { proxyText } from "./proxy-address.ts";
import { capitalized, proxyFailure } from "./proxy-failure.ts";
import type { Forwarding } from "./proxy-route.ts";
import { unauthorizedProxy } from "./via-http.ts";

/** The absolute form of a request's target (RFC 9112, 3.2.2), which a forwarding proxy needs. */
export function absoluteTarget({ host, port }: Destination, path: string): string {
  const authority = hostPortText(host, port, 80);
  // OPTIONS about the whole server has no path at all in this form (RFC 9112, 3.2.4).
  return `http://${authority}${path === "*" ? "" : path}`;
}

/**
 * Adds what concerns the next proxy alone. Credentials of the client are for this one; the next gets those that are set
 * for it, or none. Its Via stays as it is, with this process behind it.
 */
export function addProxyFields(fields: RawFields, { authorization, via }: Forwarding): void {
  removeField(fields, "proxy-authorization");
  if (authorization !== undefined) fields.push("Proxy-Authorization", authorization);
  fields.push("Via", via);
}

/** An answer that only the proxy itself can have given; undefined: it may well be the origin's. */
export function proxyResponseFailure(status: number, { proxy, authorization }: Forwarding): Failure | undefined {
  return status === 407 ? unauthorizedProxy(proxy, authorization !== undefined) : undefined;
}

/**
 * The failure of a connection to a forwarding proxy. Before the first byte of an answer it is the proxy's; an answer that
 * broke off may have broken behind it.
 */
export function forwardedFailure(failure: Failure, { proxy }: Forwarding, hasResponse: boolean): Failure {
  const isBroken = failure.code === "UPSTREAM_CLOSED" || failure.code === "UPSTREAM_RESET";
  if (!hasResponse && isBroken) {
    const message = `${capitalized(proxyText(proxy))} closed the connection without an answer`;
    return proxyFailure(failure.stage, "UPSTREAM_PROXY_CLOSED", message, failure.cause);
  }
  if (failure.side !== "upstream") return failure;
  return { ...failure, message: `${failure.message} (by way of ${proxyText(proxy)})` };
}
