import type { Deprecation, Route } from "@headworks/gateway-contract";
import { removeField } from "@headworks/http1";
import { formatLink, parseImfFixdate } from "@headworks/http-fields";
import type { Decorator } from "#request/phases.ts";
import type { GatewaySlice } from "#slice.ts";
import { checkDeprecation } from "./deprecation.check.ts";

/**
 * Tells clients of a route that its version goes: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and a link to more. On
 * every answer that the route's action made, and on none that was made before it.
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
      // The operator's word replaces the upstream's whole: one half from each could contradict the other.
      removeField(head.fields, "deprecation");
      removeField(head.fields, "sunset");
      // At the end, so that the link comes after all that the upstream sent.
      head.fields.push(...added);
    },
  };
}

/** The block was checked, so its dates can be read. */
function headerFields({ since, sunset, uri }: Deprecation): readonly string[] {
  const date = since === undefined ? undefined : parseImfFixdate(since);
  return [
    ...(date?.kind === "date" ? ["Deprecation", `@${date.epochS}`] : []),
    ...(sunset === undefined ? [] : ["Sunset", sunset]),
    ...(uri === undefined ? [] : ["Link", formatLink(uri, "deprecation")]),
  ];
}
