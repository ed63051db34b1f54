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
    query: Type.Optional(
      Type.Boolean({ description: "The parameters of the query, in whatever order (default true)" }),
    ),
    ignore_query: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
        maxItems: 1000,
        description: "Names of parameters that may differ or be missing",
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
        "When all recorded answers to a request were given: the last one again (default), the first one again, or none",
    }),
  ),
  strict: Type.Optional(
    Type.Boolean({
      description:
        "True (default): what was not recorded is answered 502 and nothing is sent anywhere; false: it goes to its origin",
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
    recorded: Type.Integer({ description: "Recorded answers that can be given" }),
    skipped: Type.Integer({ description: "Entries without an answer that could be given" }),
    answered: Type.Integer({ description: "Requests that were answered from the session" }),
    missed: Type.Integer({ description: "Requests that the session has nothing for" }),
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
        differences: Type.Array(Type.String(), { description: "What would have to be other than it is" }),
      }),
      { description: "The recorded requests that come closest, closest first" },
    ),
  },
  { $id: "MockMiss" },
);
export type MockMiss = Static<typeof MockMiss>;
