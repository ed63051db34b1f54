import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { chosenOperation } from "./graphql.ts";
import { compileCondition, messageSubject, NOT_READ, type MatchSubject } from "./index.ts";

test("the operation type is found after comments, fragments and the like", () => {
  const cases: readonly (readonly [document: string, name: string | undefined, expected: string | undefined])[] = [
    ["{ a }", undefined, "query"],
    ["query { a }", undefined, "query"],
    ['\ufeff ,\n mutation M($a: [Int!] = [1]) @d(x: "}") { a }', undefined, "mutation"],
    ["# query\nsubscription { a }", undefined, "subscription"],
    ['fragment F on T { a(b: "{") } mutation { ...F }', undefined, "mutation"],
    ['fragment F on T { a(b: """}} \\""" query """) } subscription S { ...F }', undefined, "subscription"],
    ["query A { a } mutation B { b }", "B", "mutation"],
    ["query A { a } mutation B { b }", "A", "query"],
    ["query A { a } mutation B { b }", undefined, "query"],
    ["mutation A { a } query B { b }", "C", "mutation"],
    ["query A { mutation }", "mutation", "query"],
    ['query($q: String = "mutation { a }") { a }', undefined, "query"],
    ["", undefined, undefined],
    ["mutation", undefined, undefined],
    ["type T { a: Int }", undefined, undefined],
    ["}}} mutation { a }", undefined, "mutation"],
    ["constructor { a }", undefined, undefined],
  ];
  for (const [document, name, expected] of cases) {
    assert.equal(chosenOperation(document, name)?.type, expected, document);
  }
});

test("any text is read to its end, in linear time", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('"', '"""', "\\", "{", "}", "#", "\n", "query", " ", "é"), { maxLength: 40 }),
      (pieces) => {
        chosenOperation(pieces.join(""), undefined);
      },
    ),
  );
  for (const piece of ['"', '""', '"""', '\\"""', "\\", "#", "{", "a ", "a#\n"]) {
    assert.doesNotThrow(() => chosenOperation(piece.repeat(200_000), "x"), piece);
  }
});

interface Sent {
  readonly method?: string;
  readonly query?: string;
  readonly type?: string;
  readonly body?: string;
}

function subjectOf({ method = "POST", query, type = "application/json", body }: Sent): MatchSubject {
  const url = `https://api.test/graphql${query === undefined ? "" : `?${query}`}`;
  const headers = body === undefined ? {} : { "content-type": type };
  return messageSubject({ method, url, headers, body: body ?? null, body_encoding: "utf8" }, null, "request");
}

/** The operation's name and type, and whether the variable `id` is 7. */
function outcome(sent: Sent): readonly [name: boolean, type: string | undefined, variable: boolean] {
  const subject = subjectOf(sent);
  const types = (["query", "mutation", "subscription"] as const).filter((operation_type) =>
    compileCondition({ type: "graphql_type", operation_type }).matches(subject),
  );
  return [
    compileCondition({ type: "graphql_operation", operation_name: "Find" }).matches(subject),
    types.join() || undefined,
    compileCondition({ type: "graphql_variable", name: "id", value: 7 }).matches(subject),
  ];
}

const DOCUMENT = 'fragment F on T { query(b: "{") } mutation Find($id: ID) { ...F }';

function upload(fields: Readonly<Record<string, string>>): Sent {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--x-y\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return { type: "multipart/form-data; boundary=x-y", body: `${parts.join("")}--x-y--\r\n` };
}

test("operations are read in every form that clients send", () => {
  const variables = { id: 7 };
  const encoded = new URLSearchParams({ query: DOCUMENT, variables: JSON.stringify(variables) }).toString();
  const persisted = JSON.stringify({ persistedQuery: { version: 1, sha256Hash: "ab" } });
  const cases: Readonly<Record<string, readonly [Sent, ReturnType<typeof outcome>]>> = {
    "only the document names it": [{ body: JSON.stringify({ query: DOCUMENT, variables }) }, [true, "mutation", true]],
    "the name is null": [
      { body: JSON.stringify({ query: DOCUMENT, operationName: null, variables }) },
      [true, "mutation", true],
    ],
    "the name is empty": [{ body: JSON.stringify({ query: DOCUMENT, operationName: "" }) }, [true, "mutation", false]],
    "the request names another": [
      { body: JSON.stringify({ query: `${DOCUMENT} query Other { a }`, operationName: "Other" }) },
      [false, "query", false],
    ],
    "variables are a text": [
      { body: JSON.stringify({ query: DOCUMENT, variables: JSON.stringify(variables) }) },
      [true, "mutation", true],
    ],
    "a batch": [
      { body: JSON.stringify([null, [], { query: "{ a }" }, { query: DOCUMENT }]) },
      [true, "query,mutation", false],
    ],
    "a byte order mark": [{ body: `\ufeff${JSON.stringify({ query: DOCUMENT })}` }, [true, "mutation", false]],
    "the query string": [
      { method: "GET", query: new URLSearchParams({ query: "query Find { a }", variables: '{"id":7}' }).toString() },
      [true, "query", true],
    ],
    "the query string of a POST": [{ query: encoded }, [true, "mutation", true]],
    "a stored document by its hash": [
      { method: "GET", query: new URLSearchParams({ operationName: "Find", extensions: persisted }).toString() },
      [true, "query", false],
    ],
    "a stored document, posted": [
      { body: JSON.stringify({ operationName: "Find", variables, extensions: JSON.parse(persisted) as unknown }) },
      [true, undefined, true],
    ],
    "a stored document by its id": [{ body: JSON.stringify({ doc_id: "5", variables }) }, [false, undefined, true]],
    "a form of Relay": [
      {
        type: "application/x-www-form-urlencoded",
        body: "fb_api_req_friendly_name=Find&doc_id=5&variables=%7B%22id%22%3A7%7D",
      },
      [true, undefined, true],
    ],
    "a form": [{ type: "application/x-www-form-urlencoded", body: encoded }, [true, "mutation", true]],
    "JSON that curl calls a form": [
      { type: "application/x-www-form-urlencoded", body: JSON.stringify({ query: DOCUMENT }) },
      [true, "mutation", false],
    ],
    "the document as the body": [
      { type: "application/graphql; charset=utf-8", body: DOCUMENT, query: "variables=%7B%22id%22:7%7D" },
      [true, "mutation", true],
    ],
    "a short document as the body": [{ type: "application/graphql", body: "{ a }" }, [false, "query", false]],
    "JSON called a document": [
      { type: "application/graphql", body: JSON.stringify({ query: DOCUMENT }) },
      [true, "mutation", false],
    ],
    "application/graphql+json": [
      { type: "application/graphql+json", body: JSON.stringify({ query: DOCUMENT }) },
      [true, "mutation", false],
    ],
    "an upload": [
      upload({
        operations: JSON.stringify({ query: DOCUMENT, variables: { id: 7, file: null } }),
        map: '{"0":["variables.file"]}',
        "0": "\0\u{fffd}",
      }),
      [true, "mutation", true],
    ],
    "uploads in a batch": [
      upload({ operations: JSON.stringify([{ query: "{ a }" }, { query: DOCUMENT }]), map: "{}" }),
      [true, "query,mutation", false],
    ],
    "a search page": [{ method: "GET", query: "query=shoes&id=7" }, [false, undefined, false]],
    "members of every object": [{ body: '{"constructor":{"query":"{ a }"}}' }, [false, undefined, false]],
  };
  for (const [what, [sent, expected]] of Object.entries(cases)) assert.deepEqual(outcome(sent), expected, what);
});

test("the body is needed unless the query string is sufficient", () => {
  const unread = (sent: Sent): MatchSubject => ({ ...subjectOf(sent), requestText: () => NOT_READ });
  const find = compileCondition({ type: "graphql_operation", operation_name: "Find" });
  assert.equal(find.decide(unread({ query: "operationName=Find" })), true);
  assert.equal(find.decide(unread({ query: "operationName=Other" })), "needs-body");
  assert.equal(find.decide(unread({})), "needs-body");
  assert.equal(find.decide(subjectOf({})), false);
});

test("hostile requests are read in linear time", () => {
  const bodies = [
    JSON.stringify(Array.from({ length: 50_000 }, () => ({ query: "{ a }" }))),
    JSON.stringify({ query: "{".repeat(2_000_000) }),
    JSON.stringify({ query: "{ a } ".repeat(300_000), operationName: "Find" }),
    "[".repeat(1_000_000),
  ];
  for (const body of bodies) assert.equal(outcome({ body })[0], body.includes("Find"), body.slice(0, 20));
  const parts = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`p${index}`, "x"]));
  assert.deepEqual(outcome(upload(parts)), [false, undefined, false]);
});
