export { compileCondition } from "./compile.ts";
export type { BodyNeeds, CompiledCondition, Decision, Explanation } from "./compiled.ts";
export { compileConditionSet, type ConditionSet } from "./condition-set.ts";
export { describeCondition } from "./describe.ts";
export { queryToCondition, type FromQueryResult } from "./from-query.ts";
export { messageSubject, type BodyReader, type RequestLike, type ResponseLike } from "./message-subject.ts";
export { parseCondition, parseRuleCondition, type ConditionIssue, type ConditionResult } from "./parse.ts";
export { NOT_READ, type BodyText, type MatchSubject } from "./subject.ts";
export { conditionToQuery, type ToQueryResult } from "./to-query.ts";
