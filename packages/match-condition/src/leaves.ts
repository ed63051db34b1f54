import type { Condition, MessageSide } from "@headworks/capture-contract";
import { dependsOnReading, utf8Octets } from "@headworks/http-fields";
import { isNumeric, isSameJson, parseJsonPath, selectJson } from "@headworks/json";
import {
  asksReadable,
  compileRanges,
  foldAscii,
  inBothReadings,
  type NumberRange,
  READABLE,
} from "@headworks/query-language";
import {
  bodyJson,
  bodyText,
  type MatchResult,
  headerValues,
  type MatchSubject,
  NOT_READ,
  pathSegment,
  queryValues,
} from "./subject.ts";
import { type RequestedOperation, requestedOperations } from "./graphql.ts";
import { compileTextPattern, type PatternMode } from "./text-pattern.ts";

/** Deeper values in a condition are rejected; deeper values in traffic equal none. */
export const MAX_VALUE_DEPTH = 64;

export type Leaf = Exclude<Condition, { readonly type: "and" | "or" | "not" }>;

/** The data a leaf reads, from cheap to expensive. */
export type Cost = "nothing" | "line" | "text" | "fields" | "body";

export interface CompiledLeaf {
  readonly cost: Cost;
  /** The message a leaf reads: a fixed side, the current phase's, or the address, known in both. */
  readonly about: MessageSide | "passing" | "address";
  decide(subject: MatchSubject): MatchResult;
  /** True when the pattern exceeded the step limit on the subject's texts. */
  exceededStepLimit?(subject: MatchSubject): boolean;
  /** A text, ASCII letters in lower case, that the URL of every matching subject contains. */
  readonly urlText?: string;
  /** The same, for URLs without percent-encoding only. */
  readonly plainUrlText?: string;
  /** The same for the leaf's header field. */
  readonly fieldText?: string;
}

export const PATTERN_MODES = {
  url_pattern: { caseless: false, wildcard: "url" },
  path_pattern: { caseless: false, wildcard: "whole" },
  host: { caseless: true, wildcard: "whole" },
  query_param_pattern: { caseless: false, wildcard: "whole" },
  header_pattern: { caseless: false, wildcard: "whole" },
  content_type: { caseless: true, wildcard: "whole" },
  body_pattern: { caseless: false, wildcard: "part" },
  json_path_pattern: { caseless: false, wildcard: "whole" },
} as const satisfies Readonly<Record<string, PatternMode>>;

/** Throws a `RangeError` for a leaf that `parseCondition` rejects. */
export function compileLeaf(leaf: Leaf): CompiledLeaf {
  switch (leaf.type) {
    case "all":
      return { cost: "nothing", about: "address", decide: () => true };
    case "url_pattern":
    case "path_pattern":
    case "host":
      return addressPattern(leaf);
    case "method":
    case "scheme":
    case "port":
    case "path_segment":
    case "query_param":
    case "query_param_pattern":
      return addressFact(leaf);
    case "header":
    case "header_pattern":
    case "content_type":
      return headerLeaf(leaf);
    case "body_pattern":
      return bodyPattern(leaf);
    case "json_path":
    case "json_path_pattern":
      return jsonLeaf(leaf);
    case "status_code": {
      const ranges = parseStatusRange(leaf.range);
      if (ranges === undefined) throw new RangeError(`\`${leaf.range}\` is not a status`);
      const holds = compileRanges(ranges);
      const decide = ({ status }: MatchSubject): boolean => status !== undefined && holds(status);
      return { cost: "line", about: "response", decide };
    }
    default:
      return graphqlLeaf(leaf);
  }
}

type Of<T extends Leaf["type"]> = Extract<Leaf, { readonly type: T }>;

const ADDRESS_PARTS = { url_pattern: "url", path_pattern: "path", host: "host" } as const;

function addressPattern(leaf: Of<"url_pattern" | "path_pattern" | "host">): CompiledLeaf {
  const pattern = compileTextPattern(leaf.pattern, PATTERN_MODES[leaf.type]);
  const read =
    leaf.type === "host"
      ? (subject: MatchSubject): string => subject.host
      : leaf.type === "path_pattern"
        ? (subject: MatchSubject): string => subject.path
        : (subject: MatchSubject): string => subject.url;
  if (asksReadable(leaf.pattern, true)) {
    const readable = READABLE[ADDRESS_PARTS[leaf.type]];
    const forms = (subject: MatchSubject): readonly string[] => {
      const sent = read(subject);
      return [sent, readable(sent)];
    };
    return {
      cost: "text",
      about: "address",
      decide: (subject) => forms(subject).some((text) => pattern.test(text)),
      exceededStepLimit: (subject) => forms(subject).some((text) => pattern.search(text) === "gave-up"),
    };
  }
  return {
    cost: "text",
    about: "address",
    decide: (subject) => pattern.test(read(subject)),
    exceededStepLimit: (subject) => pattern.search(read(subject)) === "gave-up",
    urlText: pattern.requiredText,
  };
}

/** Texts without characters that URLs may percent-encode. */
const UNRESERVED = /^[\w.~-]+$/;

function addressFact(
  leaf: Of<"method" | "scheme" | "port" | "path_segment" | "query_param" | "query_param_pattern">,
): CompiledLeaf {
  const plain = (text: string): { plainUrlText?: string } =>
    UNRESERVED.test(text) ? { plainUrlText: foldAscii(text) } : {};
  switch (leaf.type) {
    case "method": {
      const method = leaf.method.toUpperCase();
      const decide = (subject: MatchSubject): boolean =>
        subject.method === method || subject.method.toUpperCase() === method;
      return { cost: "line", about: "address", decide };
    }
    case "scheme": {
      const scheme = leaf.scheme.toLowerCase();
      return { cost: "line", about: "address", decide: (subject) => subject.scheme === scheme };
    }
    case "port":
      return { cost: "line", about: "address", decide: (subject) => subject.port === leaf.port };
    case "path_segment": {
      const { index, value } = leaf;
      const decide = (subject: MatchSubject): boolean => {
        const segment = pathSegment(subject.path, index);
        return segment !== undefined && (segment === value || READABLE.path(segment) === value);
      };
      return { cost: "text", about: "address", decide, ...plain(value) };
    }
    case "query_param": {
      const { name, value } = leaf;
      const decide = ({ query }: MatchSubject): boolean => {
        const values = queryValues(query, name);
        return value === undefined || value === null ? values.length > 0 : values.includes(value);
      };
      return { cost: "fields", about: "address", decide, ...plain(name) };
    }
    case "query_param_pattern": {
      const pattern = compileTextPattern(leaf.pattern, PATTERN_MODES.query_param_pattern);
      return {
        cost: "fields",
        about: "address",
        decide: ({ query }) => queryValues(query, leaf.name).some((value) => pattern.test(value)),
        exceededStepLimit: ({ query }) =>
          queryValues(query, leaf.name).some((value) => pattern.search(value) === "gave-up"),
        ...plain(leaf.name),
      };
    }
  }
}

function headerLeaf(leaf: Of<"header" | "header_pattern" | "content_type">): CompiledLeaf {
  const name = leaf.type === "content_type" ? "content-type" : foldAscii(leaf.name);
  const about = leaf.side ?? "passing";
  const values = (subject: MatchSubject): readonly string[] => headerValues(subject, leaf.side ?? subject.phase, name);
  if (leaf.type === "header") {
    const { value } = leaf;
    if (value === undefined || value === null) {
      return { cost: "fields", about, decide: (subject) => values(subject).length > 0 };
    }
    const inUtf8 = utf8Octets(value);
    const decide =
      inUtf8 === value
        ? (subject: MatchSubject): boolean => values(subject).includes(value)
        : (subject: MatchSubject): boolean => values(subject).some((found) => found === value || found === inUtf8);
    return { cost: "fields", about, decide };
  }
  const pattern = compileTextPattern(leaf.pattern, PATTERN_MODES[leaf.type]);
  // Only the pattern decides whether octets are decoded both ways; its required text is then in one of the two.
  const readsTwice = dependsOnReading(leaf.pattern, true);
  const texts = readsTwice ? (subject: MatchSubject): readonly string[] => inBothReadings(values(subject)) : values;
  return {
    cost: "fields",
    about,
    decide: (subject) => texts(subject).some((value) => pattern.test(value)),
    exceededStepLimit: (subject) => texts(subject).some((value) => pattern.search(value) === "gave-up"),
    ...(!readsTwice && { fieldText: pattern.requiredText }),
  };
}

function bodyPattern(leaf: Of<"body_pattern">): CompiledLeaf {
  const pattern = compileTextPattern(leaf.pattern, PATTERN_MODES.body_pattern);
  return {
    cost: "body",
    about: leaf.side ?? "passing",
    decide: (subject) => {
      const text = bodyText(subject, leaf.side ?? subject.phase);
      if (text === NOT_READ) return "needs-body";
      return text !== undefined && pattern.test(text);
    },
    exceededStepLimit: (subject) => {
      const text = bodyText(subject, leaf.side ?? subject.phase);
      return typeof text === "string" && pattern.search(text) === "gave-up";
    },
  };
}

function jsonLeaf(leaf: Of<"json_path" | "json_path_pattern">): CompiledLeaf {
  const parsed = parseJsonPath(leaf.path);
  if (!parsed.ok) throw new RangeError(`\`${leaf.path}\` is not a JSON path`);
  const holds = leaf.type === "json_path" ? valueTest(leaf) : patternTest(leaf.pattern);
  return {
    cost: "body",
    about: leaf.side ?? "passing",
    decide: (subject) => {
      const root = bodyJson(subject, leaf.side ?? subject.phase);
      if (root === NOT_READ) return "needs-body";
      return root !== undefined && selectJson(root, parsed.steps).some(holds);
    },
  };
}

function valueTest(leaf: Of<"json_path">): (value: unknown) => boolean {
  const { value } = leaf;
  return value === undefined ? () => true : (found) => isSameJson(found, value, MAX_VALUE_DEPTH);
}

/** Objects and lists have no text; a number has its original digits. */
function patternTest(source: string): (value: unknown) => boolean {
  const pattern = compileTextPattern(source, PATTERN_MODES.json_path_pattern);
  return (found) => (typeof found !== "object" || found === null || isNumeric(found)) && pattern.test(String(found));
}

function graphqlLeaf(
  leaf: Of<
    | "graph_q_l_operation"
    | "graphql_operation"
    | "graph_q_l_type"
    | "graphql_type"
    | "graph_q_l_variable"
    | "graphql_variable"
  >,
): CompiledLeaf {
  const holds = graphqlTest(leaf);
  return {
    cost: "body",
    about: "request",
    decide: (subject) => {
      if (requestedOperations(subject).some(holds)) return true;
      return bodyText(subject, "request") === NOT_READ && "needs-body";
    },
  };
}

function graphqlTest(leaf: Parameters<typeof graphqlLeaf>[0]): (operation: RequestedOperation) => boolean {
  if ("operation_name" in leaf) return ({ name }) => name === leaf.operation_name;
  if ("operation_type" in leaf) return ({ type }) => type === leaf.operation_type;
  return ({ variables }) => {
    if (typeof variables !== "object" || variables === null || !Object.hasOwn(variables, leaf.name)) return false;
    return isSameJson(Reflect.get(variables, leaf.name), leaf.value, MAX_VALUE_DEPTH);
  };
}

/** Parses `404`, `5xx`, `400-499` and comma-separated lists of them; undefined for other texts. */
export function parseStatusRange(range: string | number): readonly NumberRange[] | undefined {
  const ranges: NumberRange[] = [];
  for (const part of String(range).split(",")) {
    const match = /^\s*(?:([1-9])xx|([1-9]\d\d)(?:\s*-\s*([1-9]\d\d))?)\s*$/i.exec(part);
    if (match === null) return undefined;
    const [, hundreds, from, to] = match;
    const min = hundreds === undefined ? Number(from) : Number(hundreds) * 100;
    const max = hundreds === undefined ? Number(to ?? from) : min + 99;
    if (max < min) return undefined;
    ranges.push({ min, max, minExcluded: false, maxExcluded: false });
  }
  return ranges;
}
