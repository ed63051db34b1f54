import { oneOf, strictObject, Type } from "@headworks/contract-kit";
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
  explain: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "Id of an entry of the session: say why it matches or not",
      "x-entry-id": true,
    }),
  ),
  session_id: Type.Optional(Id),
});
export type MatchPreviewRequest = Static<typeof MatchPreviewRequest>;

/** Why a condition, or a part of it, holds or not. */
export interface MatchExplanation {
  readonly outcome: "holds" | "fails" | "needs-body";
  /** JSON pointer of the part in the condition; empty for the whole. */
  readonly pointer: string;
  /** A sentence for people: what was asked and what was there. */
  readonly text: string;
  readonly parts: readonly MatchExplanation[];
}

export const MatchExplanation = Type.Unsafe<MatchExplanation>({
  $id: "MatchExplanation",
  ...strictObject({
    outcome: oneOf(["holds", "fails", "needs-body"]),
    pointer: Type.String({ description: "JSON pointer of the part in the condition; empty for the whole" }),
    text: Type.String({ description: "What was asked and what was there, for people" }),
    parts: Type.Array(Type.Unsafe<MatchExplanation>({ $ref: "MatchExplanation" })),
  }),
});
