import { oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";

export const IssueItem = strictObject({
  code: Type.String(),
  path: Type.String(),
  message: Type.String(),
  severity: oneOf(["error", "warning"]),
  line: Type.Optional(Type.Integer()),
  column: Type.Optional(Type.Integer()),
  count: Type.Optional(Type.Integer({ description: "Number of issues that `more_issues` represents" })),
});

const ChangeItem = strictObject({
  kind: Type.String(),
  name: Type.String(),
  change: oneOf(["added", "removed", "changed", "moved"]),
  pointers: Type.Array(Type.String({ description: "JSON pointers to the changes" })),
});

const routeTraffic = {
  span_seconds: Type.Integer({ description: "Period of the counts: an hour, or since the start" }),
  requests: Type.Integer({ description: "Finished requests of all routes in this period" }),
  routes: Type.Array(
    strictObject({
      name: Type.String(),
      requests: Type.Integer({ description: "Finished requests of this route; 0 for a new one" }),
      share: Type.Number({ description: "Of the requests of all routes, 0 to 1" }),
    }),
  ),
} as const;

/** Recent traffic of routes. */
export const Traffic = strictObject(routeTraffic, { $id: "RouteTraffic" });
export type RouteTraffic = Static<typeof Traffic>;

const Affected = strictObject(
  {
    ...routeTraffic,
    consumers: Type.Array(Type.String()),
    upstreams: Type.Array(Type.String()),
    rebound_listeners: Type.Array(Type.String({ description: "Listeners whose connections would end" })),
  },
  { $id: "AffectedByPlan", description: "Affected entities and their recent requests" },
);
export type AffectedByPlan = Static<typeof Affected>;

/** The outcome of a publication or a dry run. */
export const Published = strictObject(
  {
    generation: Type.Integer(),
    content_hash: Type.Integer(),
    route_count: Type.Integer(),
    warnings: Type.Array(IssueItem),
    changes: Type.Optional(Type.Array(ChangeItem)),
    affected: Type.Optional(Affected),
  },
  { $id: "PublishedConfig" },
);
export type PublishedConfig = Static<typeof Published>;
