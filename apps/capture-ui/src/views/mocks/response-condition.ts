import type { Condition, MockRequestCondition } from "@headworks/capture-contract";
import type { Vocabulary } from "../../rules/condition-draft.ts";

/** Vocabulary of a response's condition: request fields only, without negation. */
export const RESPONSE_VOCABULARY: Vocabulary = {
  comparisons: new Map([
    ["query_param", ["equals"]],
    ["header", ["equals", "matches"]],
    ["json", ["equals", "matches"]],
    ["body", ["contains", "matches"]],
  ]),
  hasNot: false,
};

/** A rule condition in response form; null if it cannot be expressed. */
export function toResponseCondition(condition: Condition): MockRequestCondition | null {
  switch (condition.type) {
    case "header":
      return condition.value == null ? null : { type: "header_equals", name: condition.name, value: condition.value };
    case "header_pattern":
      return { type: "header_matches", name: condition.name, pattern: condition.pattern };
    case "query_param":
      return condition.value == null
        ? null
        : { type: "query_param_equals", name: condition.name, value: condition.value };
    case "json_path":
      return condition.value === undefined
        ? null
        : { type: "json_path_equals", path: condition.path, value: condition.value };
    case "json_path_pattern":
      return { type: "json_path_matches", path: condition.path, pattern: condition.pattern };
    case "body_pattern":
      return { type: "body_matches", pattern: condition.pattern };
    case "and":
    case "or": {
      const conditions = condition.conditions.map(toResponseCondition);
      const whole = conditions.filter((each) => each !== null);
      return whole.length === 0 || whole.length < conditions.length
        ? null
        : { type: condition.type, conditions: whole };
    }
    default:
      return null;
  }
}
