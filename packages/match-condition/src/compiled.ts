import type { Condition, MatchExplanation } from "@headworks/capture-contract";
import type { MatchSubject } from "./subject.ts";

/** `needs-body` means that the outcome depends on a body not read yet. */
export type Decision = boolean | "needs-body";

/** Why a condition holds or fails; `parts` are those of `and`, `or` and `not`. */
export type Explanation = MatchExplanation;

/** The bodies a condition may need in a phase. */
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
  /** The same for the response phase. */
  readonly atResponse: BodyNeeds & { readonly possible: boolean };
  /** True when it may need the request body in the request phase. */
  readonly needsRequestBody: boolean;
  /** True when it depends on the response. */
  readonly needsResponse: boolean;
  /** True when it may need the response body in the response phase. */
  readonly needsResponseBody: boolean;
  /**
   * Decides with the available data: cheap parts first, bodies only when nothing else decides. Slices call this first,
   * await the body at `needs-body`, and call it again.
   */
  decide(subject: MatchSubject): Decision;
  /** A body that was not read counts as not matching. */
  matches(subject: MatchSubject): boolean;
  /** Explains which part holds or fails. */
  explain(subject: MatchSubject): Explanation;
}
