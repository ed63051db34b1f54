import type { Static, TProperties } from "typebox";
import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import { Id } from "./primitives.ts";

/** A message of an exchange. */
export type MessageSide = "request" | "response";

/**
 * When a rule applies. Kinds about the address of a request hold in both phases; those with `side` look at the message
 * being processed if `side` is omitted: the request before it is sent, the response before it is delivered.
 */
export type Condition =
  | { readonly type: "all" }
  | { readonly type: "url_pattern"; readonly pattern: string }
  | { readonly type: "path_pattern"; readonly pattern: string }
  | { readonly type: "host"; readonly pattern: string }
  | { readonly type: "method"; readonly method: string }
  | { readonly type: "scheme"; readonly scheme: string }
  | { readonly type: "port"; readonly port: number }
  | { readonly type: "path_segment"; readonly index: number; readonly value: string }
  | { readonly type: "query_param"; readonly name: string; readonly value?: string | null }
  | { readonly type: "query_param_pattern"; readonly name: string; readonly pattern: string }
  | {
      readonly type: "header";
      readonly name: string;
      readonly value?: string | null;
      readonly side?: MessageSide;
    }
  | { readonly type: "header_pattern"; readonly name: string; readonly pattern: string; readonly side?: MessageSide }
  | { readonly type: "content_type"; readonly pattern: string; readonly side?: MessageSide }
  | { readonly type: "body_pattern"; readonly pattern: string; readonly side?: MessageSide }
  | { readonly type: "json_path"; readonly path: string; readonly value?: unknown; readonly side?: MessageSide }
  | { readonly type: "json_path_pattern"; readonly path: string; readonly pattern: string; readonly side?: MessageSide }
  | { readonly type: "graph_q_l_operation" | "graphql_operation"; readonly operation_name: string }
  | {
      readonly type: "graph_q_l_type" | "graphql_type";
      readonly operation_type: "query" | "mutation" | "subscription";
    }
  | { readonly type: "graph_q_l_variable" | "graphql_variable"; readonly name: string; readonly value: unknown }
  | { readonly type: "status_code"; readonly range: string | number }
  | { readonly type: "and" | "or"; readonly conditions: readonly Condition[] }
  | { readonly type: "not"; readonly condition: Condition };

/** Bounds of one condition: how deep it nests and how many parts it has. */
export const CONDITION_LIMITS = { depth: 32, parts: 1000, patternLength: 1000, valueLength: 65_536 } as const;

const pattern = (of: string) =>
  Type.String({
    minLength: 1,
    maxLength: CONDITION_LIMITS.patternLength,
    description: `${of}: a regular expression that matches anywhere in it, or a wildcard with \`*\` that matches all of it`,
  });

const name = (of: string) => Type.String({ minLength: 1, maxLength: 255, description: of });

const value = Type.Optional(
  nullable(Type.String({ maxLength: CONDITION_LIMITS.valueLength }), {
    description: "The exact value. Default: any value",
  }),
);

const side = Type.Optional(
  oneOf(["request", "response"], { description: "Default: the message being processed when the rule is evaluated" }),
);

const path = Type.String({
  minLength: 1,
  maxLength: CONDITION_LIMITS.patternLength,
  description: "JSONPath without filters: `$`, `.name`, `['name']`, `[0]`, `[-1]`, `[*]`, `.*`, `..name`, `..*`",
});

/** A reference to the whole schema from inside it. */
const self = Type.Unsafe<Condition>({ $ref: "Condition" });
const several = Type.Array(self, { minItems: 1, maxItems: CONDITION_LIMITS.parts });

function kind<const N extends readonly string[], P extends TProperties>(
  names: [...N],
  description: string,
  properties: P,
) {
  return strictObject({ type: oneOf(names), ...properties }, { description });
}

/** One schema for each kind of condition. */
const conditionKinds = [
  kind(["all"], "Everything", {}),
  kind(["url_pattern"], "The full URL", { pattern: pattern("The full URL") }),
  kind(["path_pattern"], "The path", { pattern: pattern("The path without its query") }),
  kind(["host"], "The host, case-insensitive", { pattern: pattern("The host without its port") }),
  kind(["method"], "The method, case-insensitive", { method: name("Such as `GET`") }),
  kind(["scheme"], "The scheme", { scheme: name("Such as `https`") }),
  kind(["port"], "The effective port, also if it is the scheme's default", {
    port: Type.Integer({ minimum: 1, maximum: 65535, description: "Port" }),
  }),
  kind(["path_segment"], "One segment of the path", {
    index: Type.Integer({ minimum: 0, maximum: 1000, description: "0 is the first" }),
    value: Type.String({ maxLength: 4096, description: "The whole segment, plain or percent-encoded" }),
  }),
  kind(["query_param"], "A parameter of the query", { name: name("Its name"), value }),
  kind(["query_param_pattern"], "The value of a parameter of the query", {
    name: name("Its name"),
    pattern: pattern("One value of that name"),
  }),
  kind(["header"], "A header field", { name: name("Its name, case-insensitive"), value, side }),
  kind(["header_pattern"], "The value of a header field", {
    name: name("Its name, case-insensitive"),
    pattern: pattern("One value of that name"),
    side,
  }),
  kind(["content_type"], "The field Content-Type, case-insensitive", {
    pattern: pattern("The whole field, parameters included"),
    side,
  }),
  kind(["body_pattern"], "The body as text, content codings removed", { pattern: pattern("The body"), side }),
  kind(["json_path"], "A value in a JSON body", {
    path,
    value: Type.Optional(Type.Unknown({ description: "Equals one of the values found. Default: any value" })),
    side,
  }),
  kind(["json_path_pattern"], "A text, number or literal in a JSON body", {
    path,
    pattern: pattern("One of the values found"),
    side,
  }),
  kind(["graph_q_l_operation", "graphql_operation"], "The name of a GraphQL operation", {
    operation_name: name("Equals `operationName`, or the name in the document if that is missing"),
  }),
  kind(["graph_q_l_type", "graphql_type"], "The kind of a GraphQL operation", {
    operation_type: oneOf(["query", "mutation", "subscription"], { description: "Kind of operation" }),
  }),
  kind(["graph_q_l_variable", "graphql_variable"], "A variable of a GraphQL request", {
    name: name("Its name"),
    value: Type.Unknown({ description: "Equals it" }),
  }),
  kind(["status_code"], "The status of the response", {
    range: Type.Union([Type.String({ minLength: 3, maxLength: 255 }), Type.Integer({ minimum: 100, maximum: 999 })], {
      description: "`404`, `5xx`, `400-499`, or a comma list of these",
    }),
  }),
  kind(["and", "or"], "All of several conditions, or at least one of them", { conditions: several }),
  kind(["not"], "The opposite of a condition", { condition: self }),
] as const;

/** The schema of {@link Condition}. Patterns and nesting are checked where the condition is taken in. */
export const Condition = Type.Unsafe<Condition>({
  $id: "Condition",
  type: "object",
  required: ["type"],
  discriminator: { propertyName: "type" },
  oneOf: conditionKinds,
  description: "When a rule applies",
});

/**
 * Shorthand for `condition` in the body of a rule: all given patterns must match. For scripts and command
 * lines, which have no nested objects.
 */
export const conditionShorthand = {
  url_pattern: Type.Optional(pattern("Shorthand for `condition`: full URL")),
  host_pattern: Type.Optional(pattern("Shorthand for `condition`: host")),
  path_pattern: Type.Optional(pattern("Shorthand for `condition`: path")),
  method: Type.Optional(name("Shorthand for `condition`: method")),
} as const;

/** A condition to check against the newest entries of a session. */
export const MatchPreviewRequest = strictObject({
  condition: Type.Optional(Condition),
  ...conditionShorthand,
  direction: Type.Optional(
    oneOf(["request", "response", "both"], {
      description: "Phase in which the rule is evaluated. Default: either one",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: "Maximum number of entries to check. Default: 1000" }),
  ),
  sample: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 100,
      description: "Maximum number of matching entries to return. Default: 20",
    }),
  ),
  explain: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "Id of an entry of the session: explain why it matches or not",
      "x-entry-id": true,
    }),
  ),
  session_id: Type.Optional(Id),
});

export type MatchPreviewRequest = Static<typeof MatchPreviewRequest>;

/** Why a condition, or a part of it, holds or not. */
export interface MatchExplanation {
  readonly outcome: "holds" | "fails" | "needs-body";
  /** JSON pointer of the part in the condition; empty for the whole. */
  readonly pointer: string;
  /** A readable sentence: what was expected and what was found. */
  readonly text: string;
  readonly parts: readonly MatchExplanation[];
}

export const MatchExplanation = Type.Unsafe<MatchExplanation>({
  $id: "MatchExplanation",
  ...strictObject({
    outcome: oneOf(["holds", "fails", "needs-body"]),
    pointer: Type.String({ description: "JSON pointer of the part of the condition; empty for the whole" }),
    text: Type.String({ description: "Readable: what was expected and what was found" }),
    parts: Type.Array(Type.Unsafe<MatchExplanation>({ $ref: "MatchExplanation" })),
  }),
});
