import type { Condition, MockRequestCondition } from "@headworks/capture-contract";

/** Converts the request condition of a conditional mock response into a rule condition. */
export function conditionOfResponse(condition: MockRequestCondition): Condition {
  switch (condition.type) {
    case "header_equals":
      return { type: "header", name: condition.name, value: condition.value };
    case "header_matches":
      return { type: "header_pattern", name: condition.name, pattern: condition.pattern };
    case "query_param_equals":
      return { type: "query_param", name: condition.name, value: condition.value };
    case "json_path_equals":
      return { type: "json_path", path: condition.path, value: condition.value };
    case "json_path_matches":
      return { type: "json_path_pattern", path: condition.path, pattern: condition.pattern };
    case "body_matches":
      return { type: "body_pattern", pattern: condition.pattern };
    case "and":
    case "or":
      return { type: condition.type, conditions: condition.conditions.map(conditionOfResponse) };
  }
}
