import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { Id, Timestamp } from "./primitives.ts";

/** What of a request must be as it was recorded; everything left out has the default. */
export const ServingMatch = strictObject(
  {
    method: Type.Optional(Type.Boolean({ description: "The method (default true)" })),
    scheme: Type.Optional(Type.Boolean({ description: "`http` or `https` (default false)" })),
    host: Type.Optional(Type.Boolean({ description: "Host and port (default true)" })),
    path: Type.Optional(Type.Boolean({ description: "The path without its query (default true)" })),
    query: Type.Optional(Type.Boolean({ description: "The query parameters, in any order (default true)" })),
    ignore_query: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
        maxItems: 1000,
        description: "Query parameters to ignore",
      }),
    ),
    body: Type.Optional(Type.Boolean({ description: "The bytes of the body (default false)" })),
  },
  { $id: "ServingMatch" },
);
export type ServingMatch = Static<typeof ServingMatch>;

/** Body of the start of serving. */
export const StartServing = strictObject({
  session_id: Id,
  match: Type.Optional(ServingMatch),
  repeat: Type.Optional(
    oneOf(["last", "cycle", "none"], {
      description:
        "After all recorded responses to a request were used: repeat the last (default), start over, or treat it as not recorded",
    }),
  ),
  strict: Type.Optional(
    Type.Boolean({
      description:
        "True (default): requests that were not recorded get 502 and are not sent; false: they go to their origin",
    }),
  ),
});
export type StartServing = Static<typeof StartServing>;

/** A recorded session that stands in for all origins. */
export const MockServing = strictObject(
  {
    serving: Type.Boolean(),
    session_id: nullable(Id),
    session_name: nullable(Type.String()),
    strict: Type.Boolean(),
    repeat: oneOf(["last", "cycle", "none"]),
    match: ServingMatch,
    started_at: nullable(Timestamp),
    recorded: Type.Integer({ description: "Recorded responses that can be served" }),
    skipped: Type.Integer({ description: "Entries without a response that can be served" }),
    answered: Type.Integer({ description: "Requests served from the session" }),
    missed: Type.Integer({ description: "Requests without a recorded response" }),
  },
  { $id: "MockServing" },
);
export type MockServing = Static<typeof MockServing>;

/** A request that the served session has no answer for. */
export const MockMiss = strictObject(
  {
    timestamp: Timestamp,
    method: Type.String(),
    url: Type.String(),
    reason: Type.String(),
    near: Type.Array(
      strictObject({
        entry_id: Id,
        method: Type.String(),
        url: Type.String(),
        differences: Type.Array(Type.String(), { description: "What differs" }),
      }),
      { description: "The most similar recorded requests, best match first" },
    ),
  },
  { $id: "MockMiss" },
);
export type MockMiss = Static<typeof MockMiss>;
