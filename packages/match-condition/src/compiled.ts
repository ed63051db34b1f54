import type { Condition, MatchExplanation } from "@headworks/capture-contract";
import type { MatchSubject } from "./subject.ts";

/** `needs-body` means that the outcome depends on a body not read yet. */
export type Decision = boolean | "needs-body";

/** Why a condition holds or fails; `parts` are those of `and`, `or` and `not`. */
export type Explanation = MatchExplanation;

export interface BodyNeeds {
  readonly request: boolean;
  readonly response: boolean;
}

/** A compiled condition. Immutable and stateless. */
export interface CompiledCondition {
  /** The source, in canonical spelling. */
  readonly condition: Condition;
  /** Whether it can hold in the request phase, and which bodies it may need there. */
  readonly atRequest: BodyNeeds & { readonly possible: boolean };
  readonly atResponse: BodyNeeds & { readonly possible: boolean };
  readonly needsRequestBody: boolean;
  readonly needsResponse: boolean;
  readonly needsResponseBody: boolean;
  /**
   * Decides with the available data: cheap parts first, bodies only when nothing else decides. Slices call this first,
   * await the body at `needs-body`, and call it again.
   */
  decide(subject: MatchSubject): Decision;
  /** A body that was not read counts as not matching. */
  matches(subject: MatchSubject): boolean;
  explain(subject: MatchSubject): Explanation;
}
