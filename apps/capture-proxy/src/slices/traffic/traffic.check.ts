import type { Condition, MatchPreviewRequest, TrafficFilter } from "@headworks/capture-contract";
import { parseRuleCondition } from "@headworks/match-condition";
import { fromParameters, parseQuery } from "@headworks/query-language";
import { validationError } from "#api/api-error.ts";

/** Throws 400 for a filter that does not parse, naming the parameter and, for `q`, the position. */
export function checkFilter(filter: TrafficFilter): void {
  const { q, session_id: _session, min_size, max_size, min_time, max_time, ...texts } = filter;
  if (q !== undefined) {
    const parsed = parseQuery(q);
    if (!parsed.ok) {
      const { message, start } = parsed.error;
      throw validationError([{ path: "query/q", message: `${message} (at character ${start + 1})` }]);
    }
  }
  const numbers = { min_size, max_size, min_time, max_time };
  const written = Object.fromEntries(
    Object.entries(numbers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
  const parameters = fromParameters({ ...texts, ...written });
  if (!parameters.ok) {
    const { parameter, message } = parameters.error;
    throw validationError([{ path: `query/${parameter}`, message }]);
  }
}

/** The condition of a preview. Throws 400 with all issues. */
export function previewedCondition(body: MatchPreviewRequest): Condition {
  const read = parseRuleCondition(body, "body");
  if (!read.ok) throw validationError(read.issues);
  return read.condition;
}
