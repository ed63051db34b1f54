export type { BodyNeeds, CompiledCondition, Decision, Explanation } from "./compiled.ts";
export { NOT_READ, type BodyText, type MatchSubject } from "./subject.ts";
