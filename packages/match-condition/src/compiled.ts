import type { Condition, MatchExplanation } from "@headworks/capture-contract";
import type { MatchSubject } from "./subject.ts";

/** Whether a condition holds; `needs-body` when that depends on a body that was not read. */
export type Decision = boolean | "needs-body";

/** Why a condition holds or not; `parts` are those of `and`, `or` and `not`. */
export type Explanation = MatchExplanation;

/** Which bodies a condition may ask for in a phase. None of them: the heads are enough. */
export interface BodyNeeds {
  readonly request: boolean;
  readonly response: boolean;
}

/** A condition ready to be asked. Immutable; answers about one exchange do not depend on any other. */
export interface CompiledCondition {
  /** What it was made of, spelled as the API shows it. */
  readonly condition: Condition;
  /** Whether it can hold in the request phase at all, and which bodies it may ask for then. */
  readonly atRequest: BodyNeeds & { readonly possible: boolean };
  /** The same for the answer's phase. */
  readonly atResponse: BodyNeeds & { readonly possible: boolean };
  /** It may ask for the request's body in the request phase. */
  readonly needsRequestBody: boolean;
  /** It asks something about the answer, so it cannot be fully known before there is one. */
  readonly needsResponse: boolean;
  /** It may ask for the answer's body in the answer's phase. */
  readonly needsResponseBody: boolean;
  /**
   * Decides as far as the subject's material goes: cheap parts first, bodies only when nothing else decides. A slice asks
   * this first, waits for the body at `needs-body`, and asks again.
   */
  decide(subject: MatchSubject): Decision;
  /** Whether it holds; a body that was not read counts as not matching. */
  matches(subject: MatchSubject): boolean;
  /** Which part holds and why not, for people. */
  explain(subject: MatchSubject): Explanation;
}
