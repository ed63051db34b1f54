// Tested by parse.test.ts
import { parseJsonPath } from "@headworks/json-path";
import { isShallowJson, DEEPEST_VALUE } from "./json-equality.ts";
import { MANNERS } from "./leaves.ts";
import { parseStatusRange } from "./status-range.ts";
import { readPattern, type PatternManner } from "./text-pattern.ts";

/** What a member of a condition must be. */
export type FieldCheck =
  | "pattern"
  | "name"
  | "headerName"
  | "word"
  | "text"
  | "port"
  | "index"
  | "side"
  | "jsonPath"
  | "json"
  | "operationType"
  | "statusRange";

const LONGEST_NAME = 255;
const LONGEST_VALUE = 65_536;
const LONGEST_PATTERN = 1000;
/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function textProblem(value: unknown, longest: number): string | undefined {
  if (typeof value !== "string") return "must be a text";
  return value.length > longest ? `may have at most ${longest} characters` : undefined;
}

function filledProblem(value: unknown, longest: number): string | undefined {
  const problem = textProblem(value, longest);
  return problem ?? (String(value).trim() === "" ? "must not be blank" : undefined);
}

function oneOf(choices: readonly string[]): (value: unknown) => string | undefined {
  return (value) =>
    typeof value === "string" && choices.includes(value) ? undefined : `must be one of ${choices.join(", ")}`;
}

function integer(min: number, max: number): (value: unknown) => string | undefined {
  return (value) =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max
      ? undefined
      : `must be an integer from ${min} to ${max}`;
}

function patternProblem(value: unknown, type: string): string | undefined {
  const problem = filledProblem(value, LONGEST_PATTERN);
  if (problem !== undefined) return problem;
  const manners: Readonly<Record<string, PatternManner>> = MANNERS;
  const manner = manners[type];
  if (manner === undefined) throw new TypeError(`${type} has no pattern`);
  const reading = readPattern(String(value), manner);
  return "message" in reading ? `${reading.message} (at character ${reading.start + 1})` : undefined;
}

function jsonPathProblem(value: unknown): string | undefined {
  const problem = filledProblem(value, LONGEST_PATTERN);
  if (problem !== undefined) return problem;
  const parsed = parseJsonPath(String(value));
  return parsed.ok ? undefined : `${parsed.message} (at character ${parsed.at + 1})`;
}

function jsonProblem(value: unknown): string | undefined {
  if (!isShallowJson(value)) return `may nest at most ${DEEPEST_VALUE} deep`;
  return JSON.stringify(value).length > LONGEST_VALUE ? `may have at most ${LONGEST_VALUE} characters` : undefined;
}

function statusProblem(value: unknown): string | undefined {
  const isKnown = typeof value === "string" || typeof value === "number";
  if (isKnown && String(value).length <= LONGEST_NAME && parseStatusRange(value) !== undefined) return undefined;
  return "must be such as 404, 5xx, 400-499 or 404,5xx";
}

/** What is wrong with a value, undefined when nothing is; `type` is the kind it belongs to. */
export const fieldProblems: Readonly<Record<FieldCheck, (value: unknown, type: string) => string | undefined>> = {
  pattern: patternProblem,
  name: (value) => filledProblem(value, LONGEST_NAME),
  headerName: (value) =>
    filledProblem(value, LONGEST_NAME) ?? (TOKEN.test(String(value)) ? undefined : "is no name of a header field"),
  word: (value) => filledProblem(value, LONGEST_NAME),
  text: (value) => textProblem(value, LONGEST_VALUE),
  port: integer(1, 65_535),
  index: integer(0, 1000),
  side: oneOf(["request", "response"]),
  jsonPath: jsonPathProblem,
  json: jsonProblem,
  operationType: oneOf(["query", "mutation", "subscription"]),
  statusRange: statusProblem,
};
