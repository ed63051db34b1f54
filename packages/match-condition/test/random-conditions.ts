import type { Condition } from "@headworks/capture-contract";
import fc from "fast-check";
import { NOT_READ, type MatchSubject } from "../src/index.ts";

const hosts = ["api.a.test", "b.test", "[::1]"] as const;
const segments = ["users", "users2", "v1", "", "a.b"] as const;
const names = ["x-a", "X-A", "accept", "content-type", "__proto__"] as const;
const texts = ["", "one", "two", "One", "application/json"] as const;
const patterns = [
  "^one$",
  "t.o",
  "[a-z]+",
  "users",
  "api",
  "json",
  "^$",
  "(?:a|b)\\.test",
  "v\\d/",
  "\\bone\\b",
] as const;
const bodies = [
  undefined,
  NOT_READ,
  "",
  "one two",
  "{",
  '{"a":{"b":"one"},"constructor":1}',
  '{"a":{"b":2},"operationName":"one","query":"mutation M { a }","variables":{"id":1}}',
  '{"query":"{ a }","variables":{"id":"1","__proto__":null}}',
] as const;

const fields = fc
  .array(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...texts)), { maxLength: 4 })
  .map((list) => list.flat());

/** Subjects from a small vocabulary, so that conditions hold often. */
export const subjects: fc.Arbitrary<MatchSubject> = fc
  .record({
    phase: fc.constantFrom("request", "response"),
    method: fc.constantFrom("GET", "POST", "get", "PATCH"),
    scheme: fc.constantFrom("http", "https"),
    host: fc.constantFrom(...hosts),
    port: fc.constantFrom(80, 443, 8080),
    path: fc.array(fc.constantFrom(...segments), { minLength: 1, maxLength: 3 }).map((list) => `/${list.join("/")}`),
    query: fc
      .array(fc.tuple(fc.constantFrom("users", "one", "q"), fc.constantFrom(...texts)), { maxLength: 2 })
      .map((pairs) => new URLSearchParams(pairs).toString()),
    status: fc.constantFrom(200, 204, 404, 500),
    request: fields,
    response: fields,
    requestBody: fc.constantFrom(...bodies),
    responseBody: fc.constantFrom(...bodies),
  })
  .map(({ request, response, requestBody, responseBody, host, ...facts }) => ({
    ...facts,
    host: host.replace(/[[\]]/g, ""),
    status: facts.phase === "request" ? undefined : facts.status,
    url: `${facts.scheme}://${host}${facts.port === 8080 ? ":8080" : ""}${facts.path}${facts.query === "" ? "" : `?${facts.query}`}`,
    requestFields: () => request,
    responseFields: () => (facts.phase === "request" ? [] : response),
    requestText: () => requestBody,
    responseText: () => (facts.phase === "request" ? undefined : responseBody),
  }));

const pattern = fc.constantFrom(...patterns);
const side = fc.constantFrom({}, { side: "request" as const }, { side: "response" as const });
const value = fc.constantFrom({}, { value: null }, ...texts.map((text) => ({ value: text })));
const path = fc.constantFrom("$", "$.a", "$.a.b", "$.constructor", "$.toString");
const json = fc.constantFrom(null, 1, 2, "one", { b: 2 });

const leaves: fc.Arbitrary<Condition> = fc.oneof(
  fc.constant<Condition>({ type: "all" }),
  fc
    .tuple(fc.constantFrom("url_pattern", "path_pattern", "host"), pattern)
    .map(([type, found]) => ({ type, pattern: found })),
  fc.constantFrom("GET", "post", "Patch").map((method) => ({ type: "method" as const, method })),
  fc.constantFrom("http", "HTTPS").map((scheme) => ({ type: "scheme" as const, scheme })),
  fc.constantFrom(80, 443).map((port) => ({ type: "port" as const, port })),
  fc
    .tuple(fc.nat({ max: 3 }), fc.constantFrom(...segments))
    .map(([index, segment]) => ({ type: "path_segment" as const, index, value: segment })),
  fc
    .tuple(fc.constantFrom("users", "one"), value)
    .map(([name, rest]) => ({ type: "query_param" as const, name, ...rest })),
  fc
    .tuple(fc.constantFrom("users", "q"), pattern)
    .map(([name, found]) => ({ type: "query_param_pattern" as const, name, pattern: found })),
  fc
    .tuple(fc.constantFrom(...names), value, side)
    .map(([name, rest, of]) => ({ type: "header" as const, name, ...rest, ...of })),
  fc
    .tuple(fc.constantFrom(...names), pattern, side)
    .map(([name, found, of]) => ({ type: "header_pattern" as const, name, pattern: found, ...of })),
  fc
    .tuple(fc.constantFrom("content_type", "body_pattern"), pattern, side)
    .map(([type, found, of]) => ({ type, pattern: found, ...of })),
  fc.tuple(path, fc.option(json, { nil: undefined }), side).map(([at, found, of]) => ({
    type: "json_path" as const,
    path: at,
    ...(found === undefined ? {} : { value: found }),
    ...of,
  })),
  fc
    .tuple(path, pattern, side)
    .map(([at, found, of]) => ({ type: "json_path_pattern" as const, path: at, pattern: found, ...of })),
  fc.constantFrom("graph_q_l_operation", "graphql_operation").map((type) => ({ type, operation_name: "one" })),
  fc
    .tuple(fc.constantFrom("graph_q_l_type", "graphql_type"), fc.constantFrom("query", "mutation"))
    .map(([type, found]) => ({ type, operation_type: found })),
  fc
    .tuple(fc.constantFrom("id", "__proto__"), json)
    .map(([name, found]) => ({ type: "graph_q_l_variable" as const, name, value: found })),
  fc.constantFrom("2xx", "404", 500, "5xx").map((range) => ({ type: "status_code" as const, range })),
);

/** Conditions of all kinds; every pattern is also a platform regular expression of the same meaning. */
export const conditions: fc.Arbitrary<Condition> = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaves,
    fc
      .tuple(fc.constantFrom("and", "or"), fc.array(tie("condition"), { minLength: 1, maxLength: 4 }))
      .map(([type, parts]) => ({ type, conditions: parts })),
    tie("condition").map((condition) => ({ type: "not" as const, condition })),
  ),
})).condition;
