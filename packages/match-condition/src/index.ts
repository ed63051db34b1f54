export {
  type ConditionIssue,
  conditionOfResponse,
  type ConditionResult,
  parseCondition,
  parseRuleCondition,
} from "./parse.ts";
export { compileCondition } from "./compile.ts";
export {
  type BodyNeeds,
  type BodyReader,
  type BodyText,
  type CompiledCondition,
  type MatchResult,
  type Explanation,
  type MatchSubject,
  messageSubject,
  NOT_READ,
  type RequestLike,
  type ResponseLike,
} from "./subject.ts";
export { compileConditionSet, type ConditionSet } from "./condition-set.ts";
export { describeCondition } from "./describe.ts";
export { conditionToQuery, type FromQueryResult, queryToCondition, type ToQueryResult } from "./query-conversion.ts";
export { compileWildcard } from "./text-pattern.ts";
