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
      description: "Phase in which the rule is evaluated. Default: either one",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: "Maximum number of entries to check. Default: 1000" }),
  ),
  sample: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 100,
      description: "Maximum number of matching entries to return. Default: 20",
    }),
  ),
  explain: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "Id of an entry of the session: explain why it matches or not",
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
    pointer: Type.String({ description: "JSON pointer of the part of the condition; empty for the whole" }),
    text: Type.String({ description: "Readable: what was expected and what was found" }),
    parts: Type.Array(Type.Unsafe<MatchExplanation>({ $ref: "MatchExplanation" })),
  }),
});
