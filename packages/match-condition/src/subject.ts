import type { Condition, MatchExplanation, MessageSide } from "@headworks/capture-contract";
import { isTextual, parseUrlEncoded, type QueryParameter, utf8Reading } from "@headworks/http-fields";
import { fieldValues, parseBodyJson } from "@headworks/query-language";

/** A body that was not read: a condition that depends on it cannot be decided yet. */
export const NOT_READ: unique symbol = Symbol("not read");

/** The decoded text of a body; undefined when there is none or it is binary. */
export type BodyText = string | undefined | typeof NOT_READ;

/**
 * The view of an exchange for conditions. Properties are cheap; methods may do work and are called only when needed. A
 * record of the query language is a subject when given a phase.
 */
export interface MatchSubject {
  /** The message being evaluated: the request before it is sent, or the response before it is delivered. */
  readonly phase: "request" | "response";
  readonly method: string;
  readonly scheme: string;
  /** Lower-case name or address, without brackets. */
  readonly host: string;
  /** Effective port, including the scheme's default. */
  readonly port: number;
  /** As sent, without query. */
  readonly path: string;
  /** Without the leading `?`; empty when there is none. */
  readonly query: string;
  /** The full URL in display form, without default ports. */
  readonly url: string;
  readonly status: number | undefined;
  /** Flat list: name, value, name, value. */
  requestFields(): readonly string[];
  /** Flat list; empty in the request phase. */
  responseFields(): readonly string[];
  requestText(): BodyText;
  responseText(): BodyText;
}

/** A parsed body with its source: the body may be read between two evaluations. */
interface ParsedBody {
  readonly text: string;
  readonly value: unknown;
}

/** Cache by subject. */
const parsedBodies: Readonly<Record<MessageSide, WeakMap<MatchSubject, ParsedBody>>> = {
  request: new WeakMap(),
  response: new WeakMap(),
};

export function bodyText(subject: MatchSubject, side: MessageSide): BodyText {
  return side === "request" ? subject.requestText() : subject.responseText();
}

/** Undefined for a body that is not JSON. */
export function bodyJson(subject: MatchSubject, side: MessageSide): unknown {
  const text = bodyText(subject, side);
  if (text === NOT_READ) return NOT_READ;
  if (text === undefined) return undefined;
  const known = parsedBodies[side].get(subject);
  if (known?.text === text) return known.value;
  const value = parseBodyJson(text);
  parsedBodies[side].set(subject, { text, value });
  return value;
}

export function headerValues(subject: MatchSubject, side: MessageSide, lowerName: string): readonly string[] {
  return fieldValues(side === "request" ? subject.requestFields() : subject.responseFields(), lowerName);
}

let lastQuery = "";
let lastParameters: readonly QueryParameter[] = [];

/** Decoded values in order. Caches the last query, which many rules share. */
export function queryValues(query: string, name: string): string[] {
  if (query === "") return [];
  if (query !== lastQuery) {
    lastParameters = parseUrlEncoded(utf8Reading(query) ?? query);
    lastQuery = query;
  }
  const values: string[] = [];
  for (const parameter of lastParameters) if (parameter.name === name) values.push(parameter.value);
  return values;
}

/** Still percent-encoded; undefined beyond the last segment. */
export function pathSegment(path: string, index: number): string | undefined {
  let start = path.startsWith("/") ? 1 : 0;
  for (let at = 0; ; at += 1) {
    const end = path.indexOf("/", start);
    if (at === index) return path.slice(start, end === -1 ? undefined : end);
    if (end === -1) return undefined;
    start = end + 1;
  }
}

/** The used members of a request in API form, such as `request` of entries. */
export interface RequestLike {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes precedence over `headers`. */
  readonly headers_list?: readonly (readonly [name: string, value: string])[];
  readonly body?: string | null;
  readonly body_encoding?: "utf8" | "base64" | null;
}

export type ResponseLike = Pick<RequestLike, "headers" | "headers_list" | "body" | "body_encoding"> & {
  readonly status_code: number;
};

export type BodyReader = (message: RequestLike | ResponseLike, fields: readonly string[]) => BodyText;

/**
 * A subject made of a request and optionally its response in API form. Without `readBody` only text bodies without
 * content coding are available, as in browsers.
 */
export function messageSubject(
  request: RequestLike,
  response: ResponseLike | null | undefined,
  phase: MessageSide,
  readBody: BodyReader = plainBody,
): MatchSubject {
  const parts = urlParts(request.url);
  const requestFields = flatFields(request);
  const hasResponse = phase === "response" && response !== null && response !== undefined;
  const responseFields = hasResponse ? flatFields(response) : [];
  return {
    ...parts,
    phase,
    method: request.method,
    url: request.url,
    status: hasResponse ? response.status_code : undefined,
    requestFields: () => requestFields,
    responseFields: () => responseFields,
    requestText: () => readBody(request, requestFields),
    responseText: () => (hasResponse ? readBody(response, responseFields) : undefined),
  };
}

const URL_PARTS =
  /^([a-z][a-z0-9+.-]*):\/\/(?:[^/?#@]*@)?(?:\[([^\]/?#]*)\]|([^:/?#]*))(?::(\d+))?([^?#]*)(?:\?([^#]*))?/i;

const STANDARD_PORTS: Readonly<Record<string, number>> = { http: 80, ws: 80, https: 443, wss: 443 };

/** Splits a URL without resolving, decoding or validating it. */
function urlParts(url: string): Pick<MatchSubject, "scheme" | "host" | "port" | "path" | "query"> {
  const [, scheme = "", address, name = "", port, path = "", query = ""] = URL_PARTS.exec(url) ?? [];
  const lowerScheme = scheme.toLowerCase();
  const standard = Object.hasOwn(STANDARD_PORTS, lowerScheme) ? STANDARD_PORTS[lowerScheme] : undefined;
  return {
    scheme: lowerScheme,
    host: (address ?? name).toLowerCase(),
    port: port === undefined ? (standard ?? 0) : Number(port),
    path: path === "" ? "/" : path,
    query,
  };
}

function flatFields({ headers_list: list, headers }: RequestLike | ResponseLike): readonly string[] {
  return (list ?? Object.entries(headers ?? {})).flat();
}

function plainBody({ body, body_encoding: encoding }: RequestLike | ResponseLike, fields: readonly string[]): BodyText {
  if (body === undefined || body === null || body === "") return undefined;
  const coding = fieldValues(fields, "content-encoding").join(",").trim().toLowerCase();
  if (coding !== "" && coding !== "identity") return undefined;
  if (encoding === "utf8") return body;
  if (encoding === "base64" || body.startsWith("base64:")) {
    return isTextual(fieldValues(fields, "content-type")[0]) ? utf8OfBase64(body) : undefined;
  }
  return body;
}

function utf8OfBase64(body: string): string | undefined {
  try {
    const binary = atob(body.replace(/^base64:/, ""));
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (unit) => unit.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

/** `needs-body` means that the outcome depends on a body not read yet. */
export type MatchResult = boolean | "needs-body";

/** Why a condition holds or fails; `parts` are those of `and`, `or` and `not`. */
export type Explanation = MatchExplanation;

export interface BodyNeeds {
  readonly request: boolean;
  readonly response: boolean;
}

/** A compiled condition. Immutable and stateless. */
export interface CompiledCondition {
  /** The source, in canonical spelling. */
  readonly condition: Condition;
  /** Whether it can hold in the request phase, and which bodies it may need there. */
  readonly atRequest: BodyNeeds & { readonly possible: boolean };
  readonly atResponse: BodyNeeds & { readonly possible: boolean };
  readonly needsRequestBody: boolean;
  readonly needsResponse: boolean;
  readonly needsResponseBody: boolean;
  /**
   * Decides with the available data: cheap parts first, bodies only when nothing else decides. Slices call this first,
   * await the body at `needs-body`, and call it again.
   */
  decide(subject: MatchSubject): MatchResult;
  /** A body that was not read counts as not matching. */
  matches(subject: MatchSubject): boolean;
  explain(subject: MatchSubject): Explanation;
}
