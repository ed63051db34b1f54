import type { DocumentCheck } from "#config/check-document.ts";
import { checkRoutes } from "#routing/check-routes.ts";
import type { GatewaySlice } from "./slice.ts";

export { explainRoute } from "#routing/explain.ts";

/** All checks beyond the schema: those of routing and of all slices. */
export function documentChecks(slices: readonly GatewaySlice[]): DocumentCheck[] {
  return [
    checkRoutes,
    ...slices.map(
      (slice): DocumentCheck =>
        (...given) =>
          slice.check?.(...given),
    ),
  ];
}
