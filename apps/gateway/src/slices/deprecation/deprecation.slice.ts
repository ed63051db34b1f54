import type { Deprecation, Route } from "@headworks/gateway-contract";
import { removeField } from "@headworks/http1";
import { formatLink, parseImfFixdate } from "@headworks/http-fields";
import type { Decorator } from "#request/phases.ts";
import type { GatewaySlice } from "#slice.ts";
import { checkDeprecation } from "./deprecation.check.ts";

/**
 * Sends `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and a documentation link on responses of the route's action, not
 * on earlier refusals.
 */
export const deprecation: GatewaySlice = {
  name: "deprecation",
  check: checkDeprecation,
  compile: () => ({ decoratorFor }),
};

function decoratorFor(route: Route): Decorator | undefined {
  if (route.deprecation === undefined) return undefined;
  const added = headerFields(route.deprecation);
  return {
    on: "action-responses",
    decorate: (_request, head) => {
      // Replaces all upstream fields: a mixture could be contradictory.
      removeField(head.fields, "deprecation");
      removeField(head.fields, "sunset");
      // Appended, so that the link follows all upstream links.
      head.fields.push(...added);
    },
  };
}

/** The dates have been validated. */
function headerFields({ since, sunset, uri }: Deprecation): readonly string[] {
  const date = since === undefined ? undefined : parseImfFixdate(since);
  return [
    ...(date?.kind === "date" ? ["Deprecation", `@${date.epochS}`] : []),
    ...(sunset === undefined ? [] : ["Sunset", sunset]),
    ...(uri === undefined ? [] : ["Link", formatLink(uri, "deprecation")]),
  ];
}
