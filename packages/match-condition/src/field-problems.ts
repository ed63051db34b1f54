import { parseJsonPath } from "@headworks/json-path";
import { isShallowJson, MAX_VALUE_DEPTH } from "./json-equality.ts";
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

const MAX_NAME_LENGTH = 255;
const MAX_VALUE_LENGTH = 65_536;
const MAX_PATTERN_LENGTH = 1000;
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
  const problem = filledProblem(value, MAX_PATTERN_LENGTH);
  if (problem !== undefined) return problem;
  const manners: Readonly<Record<string, PatternManner>> = MANNERS;
  const manner = manners[type];
  if (manner === undefined) throw new TypeError(`${type} has no pattern`);
  const reading = readPattern(String(value), manner);
  return "message" in reading ? `${reading.message} (at character ${reading.start + 1})` : undefined;
}

function jsonPathProblem(value: unknown): string | undefined {
  const problem = filledProblem(value, MAX_PATTERN_LENGTH);
  if (problem !== undefined) return problem;
  const parsed = parseJsonPath(String(value));
  return parsed.ok ? undefined : `${parsed.message} (at character ${parsed.at + 1})`;
}

function jsonProblem(value: unknown): string | undefined {
  if (!isShallowJson(value)) return `may nest at most ${MAX_VALUE_DEPTH} deep`;
  return JSON.stringify(value).length > MAX_VALUE_LENGTH
    ? `may have at most ${MAX_VALUE_LENGTH} characters`
    : undefined;
}

function statusProblem(value: unknown): string | undefined {
  const isKnown = typeof value === "string" || typeof value === "number";
  if (isKnown && String(value).length <= MAX_NAME_LENGTH && parseStatusRange(value) !== undefined) return undefined;
  return "must be such as 404, 5xx, 400-499 or 404,5xx";
}

/** What is wrong with a value, undefined when nothing is; `type` is the kind it belongs to. */
export const fieldProblems: Readonly<Record<FieldCheck, (value: unknown, type: string) => string | undefined>> = {
  pattern: patternProblem,
  name: (value) => filledProblem(value, MAX_NAME_LENGTH),
  headerName: (value) =>
    filledProblem(value, MAX_NAME_LENGTH) ?? (TOKEN.test(String(value)) ? undefined : "is no name of a header field"),
  word: (value) => filledProblem(value, MAX_NAME_LENGTH),
  text: (value) => textProblem(value, MAX_VALUE_LENGTH),
  port: integer(1, 65_535),
  index: integer(0, 1000),
  side: oneOf(["request", "response"]),
  jsonPath: jsonPathProblem,
  json: jsonProblem,
  operationType: oneOf(["query", "mutation", "subscription"]),
  statusRange: statusProblem,
};
