import type { Route } from "@headworks/gateway-contract";
import { foldVary } from "@headworks/http-fields";
import type { Decorator } from "#request/phases.ts";
import type { GatewaySlice } from "#slice.ts";

/**
 * A route that asks for a media type says so with `Vary: Accept` on each of its answers, refusals included: another
 * Accept would have had another answer, and caches have to know.
 */
export const acceptVary: GatewaySlice = {
  name: "accept-vary",
  compile: () => ({ decoratorFor }),
};

const decorator: Decorator = {
  on: "every-route-response",
  decorate: (_request, head) => foldVary(head.fields, "Accept"),
};

function decoratorFor(route: Route): Decorator | undefined {
  return route.match.accept === undefined ? undefined : decorator;
}
