import { namedMethods, type Route } from "@headworks/gateway-contract";
import { isPreflight } from "#request/preflight.ts";
import type { Gate, Refusal } from "#request/phases.ts";
import type { GatewaySlice } from "#slice.ts";

/**
 * Answers 405 with `Allow` to methods that are not on a route's list (RFC 9110, 15.5.6). The list may be written in any
 * letter case; requests may not, since methods are case-sensitive. `*` is every method.
 */
export const methods: GatewaySlice = {
  name: "methods",
  compile: () => ({ gateFor }),
};

function gateFor(route: Route): Gate | undefined {
  const named = namedMethods(route.methods);
  if (named === undefined) return undefined;
  const allowed = new Set(named);
  const refusal: Refusal = { code: "method_not_allowed", fields: ["Allow", [...allowed].join(", ")] };
  return {
    check: (request) => (allowed.has(request.method) || isPreflight(request) ? undefined : refusal),
  };
}
