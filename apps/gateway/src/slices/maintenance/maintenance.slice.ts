import type { Route } from "@headworks/gateway-contract";
import { type Gate, isPreflight, type Refusal } from "#request/context.ts";
import type { GatewaySlice } from "#slice.ts";

const DEFAULT_RETRY_AFTER_S = 60;

/** Responds with 503 and `Retry-After` for routes in maintenance; preflights are still handled. */
export const maintenance: GatewaySlice = {
  name: "maintenance",
  compile: () => ({ gateFor }),
};

function gateFor(route: Route): Gate | undefined {
  if (route.maintenance === undefined) return undefined;
  const { retry_after_secs: retryAfterS = DEFAULT_RETRY_AFTER_S, message } = route.maintenance;
  const refusal: Refusal = {
    code: "maintenance",
    fields: ["Retry-After", String(retryAfterS)],
    ...(message === undefined ? {} : { message }),
  };
  return { check: (request) => (isPreflight(request) ? undefined : refusal) };
}
