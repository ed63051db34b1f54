import { namedMethods, type Route } from "@headworks/gateway-contract";
import { type Gate, isPreflight, type Refusal } from "#request/context.ts";
import type { GatewaySlice } from "#slice.ts";

/** Responds with 405 and `Allow` to methods not on the route's list (RFC 9110, 15.5.6). */
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
