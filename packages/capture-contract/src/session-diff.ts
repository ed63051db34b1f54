import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { DiffOptions } from "./entry-diff.ts";
import { Id } from "./primitives.ts";

/** Bounds of a comparison of two sessions. */
export const SESSION_DIFF_LIMITS = { entries: 50_000, comparisons: 10_000, rows: 1000 } as const;

const session = (side: string) =>
  Type.String({ minLength: 1, maxLength: 64, description: `Id of the ${side} session` });

/** Which sessions to compare, and what of them. */
export const SessionDiffOrder = strictObject({
  left: session("left"),
  right: session("right"),
  q: Type.Optional(Type.String({ maxLength: 4096, description: "Only entries that match this query, on both sides" })),
  ignore_query: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
      maxItems: 256,
      description:
        "Query parameters to ignore when requests are paired; `*` matches any characters. Their order is always ignored",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: SESSION_DIFF_LIMITS.comparisons,
      description: "Maximum number of pairs whose responses are compared. Default: 1,000",
    }),
  ),
  ...DiffOptions.properties,
});
export type SessionDiffOrder = Static<typeof SessionDiffOrder>;

const SessionDiffRow = strictObject({
  id: Id,
  method: Type.String(),
  url: Type.String(),
  status_code: nullable(Type.Integer()),
  failure_code: nullable(Type.String()),
  duration_ms: nullable(Type.Number()),
});
export type SessionDiffRow = Static<typeof SessionDiffRow>;

const SessionDiffPair = strictObject({
  left: SessionDiffRow,
  right: SessionDiffRow,
  differs: Type.Array(oneOf(["status", "failure", "headers", "body", "request"]), {
    description: "What differs; a comparison of the two entries shows the details",
  }),
});
export type SessionDiffPair = Static<typeof SessionDiffPair>;

const rows = Type.Array(SessionDiffRow, { description: `At most ${SESSION_DIFF_LIMITS.rows}, oldest first` });

/** How two sessions differ, request by request. */
export const SessionDiff = strictObject(
  {
    same: Type.Boolean({
      description: "Every request has a counterpart, and all responses are identical except for ignored differences",
    }),
    left_id: Id,
    right_id: Id,
    left_count: Type.Integer({ description: "Entries of the left session that were compared" }),
    right_count: Type.Integer(),
    pair_count: Type.Integer({ description: "Requests that are in both sessions, paired in order" }),
    same_count: Type.Integer({ description: "Pairs that were compared and are identical" }),
    changed_count: Type.Integer(),
    not_compared_count: Type.Integer({ description: "Pairs beyond `limit`" }),
    only_left_count: Type.Integer(),
    only_right_count: Type.Integer(),
    changed: Type.Array(SessionDiffPair, { description: `At most ${SESSION_DIFF_LIMITS.rows}, oldest first` }),
    only_left: rows,
    only_right: rows,
  },
  { $id: "SessionDiff" },
);
export type SessionDiff = Static<typeof SessionDiff>;
