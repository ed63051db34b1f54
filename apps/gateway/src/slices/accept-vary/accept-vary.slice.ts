import type { Route } from "@headworks/gateway-contract";
import { foldVary } from "@headworks/http-fields";
import type { Decorator } from "#request/context.ts";
import type { GatewaySlice } from "#slice.ts";

/** Adds `Vary: Accept` to all responses of routes that match on Accept, refusals included. */
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
