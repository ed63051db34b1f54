/** Random records and queries for property tests. Not part of the package's interface. */
import fc from "fast-check";
import { bareValue, fieldOf, FIELDS, type Field, type NumberUnit } from "../src/fields.ts";
import { allOf, anyOf, type FieldTest, type NumberRange, type Query, type TextValue } from "../src/query.ts";
import type { Direction, QueryRecord } from "../src/record.ts";

/** A record made of plain data. */
export function recordOf(facts: Partial<RecordFacts> = {}): QueryRecord {
  const { requestFields, responseFields, requestText, responseText, messages, ...columns } = { ...ORDINARY, ...facts };
  return {
    ...columns,
    hasRequestBody: facts.hasRequestBody ?? (requestText ?? "") !== "",
    hasResponseBody: facts.hasResponseBody ?? (responseText ?? "") !== "",
    incoming: messages.some(([way]) => way === "in") ? "in" : undefined,
    outgoing: messages.some(([way]) => way === "out") ? "out" : undefined,
    webSocketMessages: messages.length === 0 ? undefined : messages.length,
    webSocketTexts: (directions) => messages.flatMap(([way, text]) => (directions.includes(way) ? [text] : [])),
    requestFields: () => requestFields,
    responseFields: () => responseFields,
    requestText: () => requestText,
    responseText: () => responseText,
  };
}

/** The facts of a record, with values in place of methods. */
export type RecordFacts = Omit<
  QueryRecord,
  | "requestFields"
  | "responseFields"
  | "requestText"
  | "responseText"
  | "hasRequestBody"
  | "hasResponseBody"
  | "incoming"
  | "outgoing"
  | "webSocketMessages"
  | "webSocketTexts"
> & {
  /** Of a WebSocket. */
  readonly messages: readonly (readonly [way: Direction, text: string])[];
  readonly requestFields: readonly string[];
  readonly responseFields: readonly string[];
  readonly requestText: string | undefined;
  readonly responseText: string | undefined;
  /** Without it, a body is there where a text is. */
  readonly hasRequestBody?: boolean;
  readonly hasResponseBody?: boolean;
};

const ORDINARY: RecordFacts = {
  id: "0190a1b2-0000-7000-8000-00000000000a",
  seq: 7,
  sessionId: "s1",
  method: "GET",
  scheme: "https",
  host: "api.example.com",
  port: 443,
  path: "/v1/orders.json",
  query: "page=2",
  url: "https://api.example.com/v1/orders.json?page=2",
  status: 200,
  httpVersion: "HTTP/1.1",
  requestType: undefined,
  responseType: "application/json",
  resourceType: "json",
  requestSizeBytes: 300,
  responseSizeBytes: 12_000,
  durationMs: 120,
  ttfbMs: 80,
  timestampMs: Date.UTC(2026, 10, 21, 10),
  clientAddress: "127.0.0.1:50000",
  state: "complete",
  isPassthrough: false,
  modified: false,
  applied: ["block"],
  note: undefined,
  requestFields: ["Host", "api.example.com", "Cookie", "sid=abc; theme=Dark"],
  responseFields: ["Content-Type", "application/json", "Set-Cookie", "sid=xyz; Path=/", "Set-Cookie", "b=2"],
  messages: [],
  requestText: undefined,
  responseText: '{"items":[{"id":42,"name":"Räder"}],"total":1}',
};

const word = fc.oneof(
  fc.constantFrom(
    "a",
    "GET",
    "get",
    "POST",
    "api",
    "example.com",
    "api.example.com",
    "json",
    "image/png",
    "js",
    "1",
    "/v1",
    "é",
    "É",
    "K",
    "k",
    "",
  ),
  fc.string({
    unit: fc.constantFrom(
      "a",
      "A",
      "b",
      "/",
      ".",
      "-",
      '"',
      "*",
      "\\",
      " ",
      "(",
      ")",
      "|",
      ":",
      "@",
      "é",
      "\n",
      "[",
      "=",
      ">",
      "!",
    ),
    maxLength: 4,
  }),
);

const nonEmpty = word.filter((text) => text !== "");

/** Records that collide often with the queries below. */
export const records: fc.Arbitrary<QueryRecord> = fc
  .record<RecordFacts>({
    id: word,
    seq: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }),
    sessionId: word,
    method: word,
    scheme: fc.constantFrom("http", "https", "ws"),
    host: word,
    port: fc.constantFrom(80, 443, 8080),
    path: word,
    query: word,
    url: word,
    status: fc.option(fc.constantFrom(100, 200, 204, 301, 404, 499, 500, 503), { nil: undefined }),
    httpVersion: fc.constantFrom("HTTP/1.1", "HTTP/2", undefined),
    requestType: fc.option(word, { nil: undefined }),
    responseType: fc.option(word, { nil: undefined }),
    resourceType: fc.option(fc.constantFrom("script", "image", "json", ""), { nil: undefined }),
    requestSizeBytes: fc.integer({ min: 0, max: 4 }),
    responseSizeBytes: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
    durationMs: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
    ttfbMs: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
    timestampMs: fc.integer({ min: 1_000_000, max: 1_000_010 }),
    clientAddress: fc.option(word, { nil: undefined }),
    state: fc.constantFrom("pending", "complete", "failed", "closed"),
    isPassthrough: fc.boolean(),
    modified: fc.boolean(),
    applied: fc.subarray(["rewrite", "mock", "block"]),
    note: fc.option(word, { nil: undefined }),
    requestFields: fc.array(fc.tuple(fc.constantFrom("Host", "X-A", "Cookie"), word)).map((pairs) => pairs.flat()),
    responseFields: fc
      .array(fc.tuple(fc.constantFrom("Server", "x-a", "Set-Cookie"), word))
      .map((pairs) => pairs.flat()),
    grpcStatus: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }),
    messages: fc.array(fc.tuple(fc.constantFrom<Direction>("in", "out"), word), { maxLength: 3 }),
    hasRequestBody: fc.boolean(),
    hasResponseBody: fc.boolean(),
    requestText: fc.option(fc.oneof(word, fc.json()), { nil: undefined }),
    responseText: fc.option(fc.oneof(word, fc.json(), fc.constantFrom('{"a":{"b":[1,"x"]}}')), { nil: undefined }),
  })
  .map(recordOf);

const pattern: fc.Arbitrary<TextValue> = fc
  .tuple(fc.constantFrom("a+", "^a|b$", "[a-c]+", "(ab)*\\.", "a\\/b", "x{1,3}", "é?"), fc.constantFrom("", "i"))
  .map(([source, flags]) => ({ kind: "pattern", source, flags }));

const wildcard: fc.Arbitrary<TextValue> = fc
  .tuple(word, fc.array(nonEmpty, { maxLength: 2 }), word)
  .filter(([first, inner, last]) => first !== "" || inner.length > 0 || last !== "")
  .map(([first, inner, last]) => ({ kind: "wildcard", parts: [first, ...inner, last] }));

const literal: fc.Arbitrary<TextValue> = word.map((text) => ({ kind: "literal", text }));

function bounds(unit: NumberUnit): fc.Arbitrary<number> {
  if (unit === "status") return fc.constantFrom(100, 200, 301, 400, 404, 500);
  return unit === "time" ? fc.integer({ min: 1_000_000, max: 1_000_010 }) : fc.integer({ min: 0, max: 4 });
}

function ranges(unit: NumberUnit): fc.Arbitrary<NumberRange> {
  const closed = { minExcluded: false, maxExcluded: false };
  const bound = bounds(unit);
  return fc.oneof(
    bound.map((value) => ({ ...closed, min: value, max: value })),
    fc.tuple(bound, bound).map(([min, max]) => ({ ...closed, min, max })),
    bound.map((min) => ({ ...closed, min, max: null })),
    bound.map((max) => ({ ...closed, min: null, max })),
  );
}

function numberTests(unit: NumberUnit): fc.Arbitrary<FieldTest> {
  const list = fc.array(ranges(unit), { minLength: 1, maxLength: 3 });
  const single = bounds(unit);
  return fc.oneof(
    fc.constant<FieldTest>({ kind: "exists" }),
    list.map((found): FieldTest => ({ kind: "number", mode: "matches", ranges: found })),
    list.map((found): FieldTest => ({ kind: "number", mode: "differs", ranges: found })),
    single.map((min): FieldTest => ({
      kind: "number",
      mode: "matches",
      ranges: [{ min, max: null, minExcluded: true, maxExcluded: false }],
    })),
    single.map((max): FieldTest => ({
      kind: "number",
      mode: "matches",
      ranges: [{ min: null, max, minExcluded: false, maxExcluded: true }],
    })),
  );
}

function textTests(choices: readonly string[] | undefined): fc.Arbitrary<FieldTest> {
  const plain =
    choices === undefined ? literal : fc.constantFrom(...choices).map((text): TextValue => ({ kind: "literal", text }));
  const any = choices === undefined ? fc.oneof({ weight: 4, arbitrary: plain }, pattern, wildcard) : plain;
  return fc.oneof(
    fc.constant<FieldTest>({ kind: "exists" }),
    fc
      .array(any, { minLength: 1, maxLength: 3 })
      .map((values): FieldTest => ({ kind: "text", mode: "matches", values })),
    fc
      .tuple(fc.constantFrom("equals" as const, "differs" as const), fc.array(plain, { minLength: 1, maxLength: 3 }))
      .map(([mode, values]): FieldTest => ({ kind: "text", mode, values })),
  );
}

function fieldTerm(field: Field): fc.Arbitrary<Query> {
  const test = field.value.type === "number" ? numberTests(field.value.unit) : textTests(field.value.choices);
  const key = field.keyed === undefined ? fc.constant(null) : fc.constantFrom(null, "x-a", "cookie", "b");
  const bare = (wanted: FieldTest): FieldTest =>
    wanted.kind === "text" ? { ...wanted, values: wanted.values.map((value) => bareValue(field, value)) } : wanted;
  return fc
    .tuple(key, test)
    .map(([name, wanted]) => ({ kind: "field", field: field.name, key: name, test: bare(wanted) }));
}

const terms: fc.Arbitrary<Query> = fc.oneof(
  { weight: 8, arbitrary: fc.oneof(...FIELDS.map(fieldTerm)) },
  fc.oneof(literal, wildcard, pattern).map((value): Query => ({ kind: "anywhere", value })),
  fc.constantFrom<Query>(
    { kind: "since", moment: { kind: "ago", ms: 5 } },
    { kind: "before", moment: { kind: "at", epochMs: 1_000_004 } },
  ),
  fc
    .tuple(
      fc.constantFrom("req" as const, "resp" as const),
      fc.constantFrom("$", "$.a.b[0]", "$..x", "$['a)b'].*"),
      fc.oneof(
        textTests(undefined),
        numberTests("count").filter(
          (test) =>
            test.kind === "number" &&
            test.mode === "matches" &&
            test.ranges.length === 1 &&
            test.ranges[0]?.min !== test.ranges[0]?.max,
        ),
      ),
    )
    .map(([side, path, test]): Query => ({ kind: "json", side, path, test })),
);

/** Texts of messages and directions are seldom drawn beside each other by chance. */
const messageTerms: fc.Arbitrary<Query> = fc
  .tuple(...["ws.text", "dir", "dir", "ws.text"].map((name) => fieldTerm(fieldOf(name))))
  .chain((drawn) => fc.subarray(drawn, { minLength: 2 }))
  .map(allOf);

/** Queries as the parser makes them: joins are flat. */
export const queries: fc.Arbitrary<Query> = fc.letrec<{ query: Query }>((tie) => ({
  query: fc.oneof(
    { maxDepth: 3, depthIdentifier: "query" },
    { weight: 3, arbitrary: terms },
    fc.array(tie("query"), { minLength: 2, maxLength: 3, depthIdentifier: "query" }).map(allOf),
    messageTerms,
    fc.array(tie("query"), { minLength: 2, maxLength: 3, depthIdentifier: "query" }).map(anyOf),
    tie("query").map((term): Query => ({ kind: "not", term })),
  ),
})).query;
