import { bareValue, fieldOf } from "./fields.ts";
import { foldAscii } from "./record.ts";
import { parseDuration, parseNumber, parseRange } from "./numbers.ts";
import { allOf, type NumberRange, type Query, type TextValue } from "./query.ts";

/** The filter parameters of the REST API, as strings from the query string. */
export interface QueryParameters {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** `404`, `4xx`, `400-499`, and lists of these with commas. */
  readonly status_code?: string | undefined;
  /** Same as `status_code`. */
  readonly status?: string | undefined;
  /** Part of the media type of the response; with a semicolon, of its whole Content-Type. */
  readonly content_type?: string | undefined;
  readonly host?: string | undefined;
  /** Free text over URL, headers and bodies. */
  readonly search?: string | undefined;
  /** File extension with or without its dot. */
  readonly file_type?: string | undefined;
  /** `name`, `name:value`, or part of any header line. */
  readonly header?: string | undefined;
  /** `name`, `name=value`, or part of any cookie. */
  readonly cookie?: string | undefined;
  readonly is_passthrough?: string | undefined;
  /** Bytes of the response, or with a unit: `10kb`. */
  readonly min_size?: string | undefined;
  readonly max_size?: string | undefined;
  /** Duration in milliseconds, or with a unit: `1s`. */
  readonly min_time?: string | undefined;
  readonly max_time?: string | undefined;
}

/** The query that the parameters stand for, or which of them is wrong. */
export type ParameterResult =
  | { readonly ok: true; readonly query: Query }
  | { readonly ok: false; readonly error: { readonly parameter: string; readonly message: string } };

class ParameterRefusal extends Error {
  readonly parameter: string;

  constructor(parameter: string, message: string) {
    super(`\`${parameter}\` ${message}`);
    this.parameter = parameter;
  }
}

const MAX_VALUE_LENGTH = 4096;

/** Builds the query of the API's filter parameters; all of them must hold. Absent ones do not restrict. */
export function fromParameters(parameters: QueryParameters): ParameterResult {
  try {
    const given: readonly [string, string | undefined][] = Object.entries(parameters);
    return { ok: true, query: allOf(given.flatMap(([name, value]) => term(name, value))) };
  } catch (error) {
    if (!(error instanceof ParameterRefusal)) throw error;
    return { ok: false, error: { parameter: error.parameter, message: error.message } };
  }
}

function term(name: string, value: string | undefined): readonly Query[] {
  if (value === undefined) return [];
  const build = Object.hasOwn(BUILDERS, name) ? BUILDERS[name] : undefined;
  if (build === undefined) throw new ParameterRefusal(name, "is not a filter parameter");
  if (value.length > MAX_VALUE_LENGTH) {
    throw new ParameterRefusal(name, `may have at most ${MAX_VALUE_LENGTH} characters`);
  }
  if (value.trim() === "") throw new ParameterRefusal(name, "is empty");
  return [build(value, name)];
}

const BUILDERS: Readonly<Record<string, (value: string, name: string) => Query>> = {
  method: (value, name) => {
    const methods = alternatives(value);
    if (methods.length === 0) {
      throw new ParameterRefusal(name, "is a method such as `GET`, or a list of these with commas");
    }
    return text("method", methods);
  },
  url: (value) => containing("url", value),
  status_code: statuses,
  status: statuses,
  content_type: (value) =>
    value.includes(";") ? containing("resp.header", value, "content-type") : containing("type", value),
  host: (value) => containing("host", value),
  search: (value) => ({ kind: "anywhere", value: literal(value) }),
  file_type: (value, name) => {
    const types = value.split(",").map((type) => type.trim().replace(/^\*?\./, ""));
    if (types.some((type) => type === "")) throw new ParameterRefusal(name, "is a file extension such as `js`");
    return text("ext", types.map(literal));
  },
  header: (value) => keyed("header", value, ":"),
  cookie: (value) => keyed("cookie", value, "="),
  is_passthrough: (value, name) => {
    if (value !== "true" && value !== "false") throw new ParameterRefusal(name, "is `true` or `false`");
    return text("passthrough", [literal(value)]);
  },
  min_size: (value, name) => bound("size", name, value, true),
  max_size: (value, name) => bound("size", name, value, false),
  min_time: (value, name) => bound("dur", name, value, true),
  max_time: (value, name) => bound("dur", name, value, false),
};

function literal(value: string): TextValue {
  return { kind: "literal", text: value };
}

/** Stars are wildcards; without stars the value may stand anywhere. Stars alone ask for any value. */
function containing(field: string, value: string, key: string | null = null): Query {
  const parts = value.split("*");
  if (parts.length === 1) return text(field, [literal(value)], key);
  if (parts.every((part) => part === "")) return { kind: "field", field, key, test: { kind: "exists" } };
  const kept = parts.filter((part, index) => part !== "" || index === 0 || index === parts.length - 1);
  return text(field, [{ kind: "wildcard", parts: kept }], key);
}

function alternatives(value: string): readonly TextValue[] {
  return value
    .split(",")
    .map((part) => literal(part.trim()))
    .filter((part) => part.kind === "literal" && part.text !== "");
}

function text(field: string, values: readonly TextValue[], key: string | null = null): Query {
  const row = fieldOf(field);
  const bare = values.map((value) => bareValue(row, value));
  return { kind: "field", field, key, test: { kind: "text", mode: "matches", values: bare } };
}

function statuses(value: string, name: string): Query {
  const ranges = value.split(",").map((written): NumberRange => {
    const range = parseRange(written.trim().replace("-", ".."), "status");
    if (range === undefined) {
      throw new ParameterRefusal(name, "is a status such as `404`, `4xx` or `400-499`, or a list of these with commas");
    }
    return range;
  });
  return { kind: "field", field: "status", key: null, test: { kind: "number", mode: "matches", ranges } };
}

/** A token alone may be a name or part of a line: both are found by looking at whole lines. */
function keyed(field: "header" | "cookie", written: string, separator: string): Query {
  const at = written.indexOf(separator);
  const name = at === -1 ? "" : written.slice(0, at).trim();
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return text(field, [literal(written)]);
  const value = written.slice(at + 1).trim();
  const key = fieldOf(field).keyed === "caseless" ? foldAscii(name) : name;
  return value === "" ? { kind: "field", field, key, test: { kind: "exists" } } : text(field, [literal(value)], key);
}

function bound(field: "size" | "dur", name: string, written: string, isMinimum: boolean): Query {
  const value = field === "size" ? parseNumber(written, "size")?.min : parseDuration(written);
  if (value === undefined || value < 0) {
    throw new ParameterRefusal(
      name,
      field === "size" ? "is a size such as `1024` or `10kb`" : "is a duration such as `250` (milliseconds) or `1s`",
    );
  }
  const range = {
    min: isMinimum ? value : null,
    max: isMinimum ? null : value,
    minExcluded: false,
    maxExcluded: false,
  };
  return { kind: "field", field, key: null, test: { kind: "number", mode: "matches", ranges: [range] } };
}
