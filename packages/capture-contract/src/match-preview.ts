import { oneOf, strictObject } from "@headworks/contract-kit";
import { Type } from "typebox";
import type { Static } from "typebox";
import { Condition, conditionShorthand } from "./condition.ts";
import { Id } from "./primitives.ts";

/** What a condition is tried on: the newest entries of a session. */
export const MatchPreviewRequest = strictObject({
  condition: Type.Optional(Condition),
  ...conditionShorthand,
  direction: Type.Optional(
    oneOf(["request", "response", "both"], {
      description: "Phase in which the rule would be asked; left out, either of them counts",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: "Entries that are tried at most; 1000 when left out" }),
  ),
  sample: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 100,
      description: "Matching entries that are shown at most; 20 when left out",
    }),
  ),
  session_id: Type.Optional(Id),
});
export type MatchPreviewRequest = Static<typeof MatchPreviewRequest>;
