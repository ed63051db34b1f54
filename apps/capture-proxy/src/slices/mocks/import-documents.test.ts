import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { parseCondition } from "@headworks/match-condition";
import { openDocument } from "./import-documents.ts";
import type { DocumentImport } from "./import-documents.ts";
import { ImportProblem } from "./imported-mocks.ts";
import type { ImportedMocks } from "./imported-mocks.ts";
import { responsesOf, newMock } from "./mock-rule.ts";
import type { MockDraft } from "./mock-rule.ts";
import { createMockCompiler } from "./mocks.compile.ts";
import { sampleSubject } from "./mocks.operations.ts";

/** The rules of a document read in chunks of a few bytes. */
function read(format: DocumentImport["format"], data: unknown, baseUrl: string | null = null): ImportedMocks {
  const bytes = Buffer.from(typeof data === "string" ? data : JSON.stringify(data));
  const reader = openDocument({ format, baseUrl });
  for (let at = 0; at < bytes.length; at += 7) reader.write(new Uint8Array(bytes.subarray(at, at + 7)));
  const document = reader.end();
  return "exported" in document ? assert.fail("an export is no rule yet") : document;
}

const bodyOf = (draft: MockDraft | undefined): unknown =>
  JSON.parse(responsesOf(draft?.responseConfig ?? assert.fail("no rule"))[0]?.body ?? "null");

const compiler = createMockCompiler(() => ({ hits: 0, nextIndex: 0 }));

/** Names of the enabled rules that match a request, in order. */
async function answering(imported: ImportedMocks, url: string, method = "GET"): Promise<string[]> {
  const subject = await sampleSubject({ url, method }, "");
  return imported.drafts
    .filter((draft) => draft.enabled)
    .map((draft, index) => newMock(String(index), draft, 0))
    .toSorted((a, b) => a.priority - b.priority)
    .filter((rule) => compiler.one(rule).condition.matches(subject))
    .map(({ name }) => name);
}

const harEntry = (url: string, response: object, method = "GET") => ({
  startedDateTime: "2026-01-01T00:00:00.000Z",
  time: 1,
  request: {
    method,
    url,
    httpVersion: "HTTP/1.1",
    headers: [],
    queryString: [],
    cookies: [],
    headersSize: -1,
    bodySize: 0,
  },
  response: {
    statusText: "",
    httpVersion: "HTTP/1.1",
    cookies: [],
    redirectURL: "",
    headersSize: -1,
    bodySize: -1,
    ...response,
  },
  cache: {},
  timings: { send: 0, wait: 1, receive: 0 },
});
const har = (...entries: unknown[]) => ({ log: { version: "1.2", creator: { name: "t", version: "1" }, entries } });

test("a HAR makes a rule for each request, with its fields and its decoded body", async () => {
  const imported = read(
    "har",
    JSON.stringify(
      har(
        harEntry("https://a.test/x?q=1&r=(2)", {
          status: 200,
          headers: [
            { name: "Content-Type", value: "application/json" },
            { name: "Content-Encoding", value: "gzip" },
            { name: "Content-Length", value: "999" },
            { name: "Transfer-Encoding", value: "chunked" },
            { name: "Set-Cookie", value: "a=1" },
            { name: "Set-Cookie", value: "b=2" },
          ],
          content: { size: 2, mimeType: "application/json", text: '{"a":1}' },
        }),
        harEntry(
          "https://a.test/b",
          {
            status: 404,
            headers: [],
            content: {
              size: 3,
              mimeType: "image/png",
              text: Buffer.from([0, 255, 1]).toString("base64"),
              encoding: "base64",
            },
          },
          "POST",
        ),
        harEntry("https://a.test/latin", {
          status: 200,
          headers: [{ name: "Content-Type", value: "text/plain; charset=iso-8859-1" }],
          content: { size: 1, mimeType: "text/plain", text: "\u00e9" },
        }),
        harEntry("https://a.test/none", { status: 0, headers: [], content: { size: 0, mimeType: "" } }),
        { nonsense: true },
      ),
    ),
  );
  assert.deepEqual(
    imported.drafts.map(({ name }) => name),
    ["HAR: GET https://a.test/x?q=1&r=(2)", "HAR: POST https://a.test/b", "HAR: GET https://a.test/latin"],
  );
  assert.equal(imported.skipped, 2);
  assert.match(imported.warnings.join("\n"), /has no response[^]*has no request/);
  const [json, image, latin] = imported.drafts.map(({ responseConfig }) => responsesOf(responseConfig)[0]);
  assert.deepEqual(json?.headers, { "Content-Type": "application/json", "Set-Cookie": ["a=1", "b=2"] });
  assert.equal(json?.body, '{"a":1}');
  assert.deepEqual([image?.status_code, image?.body, image?.body_base64], [404, null, "AP8B"]);
  assert.deepEqual([latin?.body, latin?.body_base64], [null, "6Q=="], "in the charset that it names");
  assert.deepEqual(await answering(imported, "https://a.test/x?q=1&r=(2)"), ["HAR: GET https://a.test/x?q=1&r=(2)"]);
  for (const other of ["https://a.test/x?q=1&r=22", "https://a.test/x?q=1&r=(2)3", "https://b.test/x?q=1&r=(2)"]) {
    assert.deepEqual(await answering(imported, other), [], other);
  }
});

test("a browser's HAR keeps repeated fields separate, and losses are reported", () => {
  const headers = [
    { name: "Set-Cookie", value: "a=1\nb=2" },
    { name: "x y", value: "1" },
    { name: "Link", value: "<a>\n<b>" },
    { value: "without a name" },
  ];
  const { drafts, skipped, warnings } = read(
    "har",
    har(
      harEntry("https://a.test/cookies", { status: 200, headers, content: { size: 0, mimeType: "" } }),
      harEntry("https://a.test/large", { status: 200, headers: [], content: { size: 5000, mimeType: "video/mp4" } }),
    ),
  );
  assert.equal(skipped, 0);
  assert.deepEqual(
    drafts.map(({ responseConfig }) => responsesOf(responseConfig)[0]?.headers),
    [{ "Set-Cookie": ["a=1", "b=2"], Link: ["<a>", "<b>"] }, {}],
  );
  assert.deepEqual(warnings, [
    "entry 0 (https://a.test/cookies): left out for want of a name: `response.headers[3]`",
    'entry 0 (https://a.test/cookies): these header fields of its response are left out, since their names are invalid: "x y"',
    "entry 1 (https://a.test/large): the document does not have its body of 5000 bytes, so the rule has none",
  ]);
});

test("a byte order mark, also one of UTF-16, is not part of a document", () => {
  const openapi = JSON.stringify({ openapi: "3.0.0", paths: { "/\u00e9": { get: { responses: { 204: {} } } } } });
  for (const bytes of [
    Buffer.from(openapi),
    Buffer.from(`\ufeff${openapi}`),
    Buffer.from(`\ufeff${openapi}`, "utf16le"),
    Buffer.from(`\ufeff${openapi}`, "utf16le").swap16(),
  ]) {
    for (const size of [1, 7, bytes.length]) {
      const reader = openDocument({ format: "openapi", baseUrl: null });
      for (let at = 0; at < bytes.length; at += size) reader.write(bytes.subarray(at, at + size));
      const document = reader.end();
      assert.equal("exported" in document ? undefined : document.drafts.length, 1);
    }
  }
});

test("responses to the same request of a HAR become one rule in order, without cycling", () => {
  const response = (text: string) =>
    harEntry("https://a.test/", { status: 200, headers: [], content: { size: 1, mimeType: "text/plain", text } });
  const { drafts } = read("har", har(response("1"), response("1"), response("2"), response("1")));
  assert.equal(drafts.length, 1);
  const config = drafts[0]?.responseConfig;
  assert.equal(config?.type, "sequence");
  assert.equal(config?.type === "sequence" && config.cycle, false);
  assert.deepEqual(
    responsesOf(config ?? assert.fail()).map(({ body }) => body),
    ["1", "2", "1"],
  );
});

test("a HAR body that is still compressed in the record of this service is decoded", () => {
  const text = "plain text";
  const raw = gzipSync(text);
  const entry = {
    ...harEntry("https://a.test/", {
      status: 200,
      headers: [{ name: "Content-Encoding", value: "gzip" }],
      content: { size: raw.length, mimeType: "text/plain", text },
    }),
  };
  const [draft] = read("har", har(entry)).drafts;
  const [response] = responsesOf(draft?.responseConfig ?? assert.fail());
  assert.deepEqual([response?.body, response?.headers], [text, {}]);
});

const OPENAPI = `
openapi: 3.0.3
info: { title: Pets, version: "1" }
servers:
  - url: https://api.pets.test/v1
paths:
  /pets/{petId}:
    get:
      summary: One pet
      tags: [pets]
      responses:
        "404": { description: none, content: { application/json: { example: { error: gone } } } }
        "200":
          description: ok
          headers: { X-Rate: { schema: { type: integer, example: 7 } } }
          content:
            application/json: { schema: { $ref: "#/components/schemas/Pet" } }
        default: { description: error }
    delete: { responses: { 2XX: { description: done } } }
  /pets/mine:
    get: { responses: { "200": { description: ok, content: { application/json: { examples: { a: { value: [1, 2] } } } } } } }
  /empty: { get: {} }
components:
  schemas:
    Pet:
      type: object
      required: [id]
      properties:
        id: { type: integer, minimum: 10 }
        name: { type: string, maxLength: 3 }
        kind: { type: string, enum: [cat, dog] }
        secret: { type: string, writeOnly: true }
        born: { type: string, format: date }
        owner: { $ref: "#/components/schemas/Owner" }
        tags: { type: array, items: { type: string }, minItems: 2 }
        away: { $ref: "https://elsewhere.test/schema.json" }
    Owner:
      allOf:
        - { type: object, properties: { mail: { type: string, format: email } } }
        - { type: object, properties: { pets: { type: array, items: { $ref: "#/components/schemas/Pet" } } } }
`;

test("an OpenAPI document makes a rule for each response, the successful one enabled, with examples from schemas", async () => {
  const imported = read("openapi", OPENAPI);
  assert.deepEqual(
    imported.drafts.map(({ name, enabled }) => [name, enabled]),
    [
      ["OpenAPI: GET /pets/{petId} -> 200", true],
      ["OpenAPI: GET /pets/{petId} -> 404", false],
      ["OpenAPI: GET /pets/{petId} -> default", false],
      ["OpenAPI: DELETE /pets/{petId} -> 2XX", true],
      ["OpenAPI: GET /pets/mine -> 200", true],
    ],
  );
  const [pet, missing] = imported.drafts;
  const { owner, ...plain } = bodyOf(pet) as { owner: { mail: string; pets: unknown[] } };
  assert.deepEqual(plain, { id: 10, name: "str", kind: "cat", born: "2026-01-01", tags: ["string", "string"] });
  assert.equal(owner.mail, "user@example.com");
  assert.equal(owner.pets.length, 1);
  assert.deepEqual(bodyOf(missing), { error: "gone" });
  assert.deepEqual(responsesOf(pet?.responseConfig ?? assert.fail())[0]?.headers, {
    "X-Rate": "7",
    "Content-Type": "application/json",
  });
  assert.deepEqual([pet?.description, pet?.tags], ["One pet", ["pets"]]);
  assert.equal(imported.skipped, 1);
  assert.match(imported.warnings.join("\n"), /elsewhere\.test[^]*not fetched/);
  assert.deepEqual(await answering(imported, "https://api.pets.test/v1/pets/5"), ["OpenAPI: GET /pets/{petId} -> 200"]);
  assert.deepEqual(await answering(imported, "https://api.pets.test/v1/pets/mine"), [
    "OpenAPI: GET /pets/mine -> 200",
    "OpenAPI: GET /pets/{petId} -> 200",
  ]);
  for (const url of [
    "https://api.pets.test/pets/5",
    "https://api.pets.test/v1/pets/5/x",
    "https://other.test/v1/pets/5",
  ]) {
    assert.deepEqual(await answering(imported, url), [], url);
  }
});

test("the base of an OpenAPI document can be given, and a path alone applies to every host", async () => {
  const elsewhere = read("openapi", OPENAPI, "https://localhost:8080/api/");
  assert.deepEqual(await answering(elsewhere, "https://localhost:8080/api/pets/mine"), [
    "OpenAPI: GET /pets/mine -> 200",
    "OpenAPI: GET /pets/{petId} -> 200",
  ]);
  assert.deepEqual(await answering(elsewhere, "https://api.pets.test/v1/pets/mine"), []);
  const anywhere = read("openapi", OPENAPI, "/v2");
  assert.equal((await answering(anywhere, "http://any.host.test/v2/pets/mine")).length, 2);
});

test("OpenAPI 3.1 in JSON with type lists and const is read", () => {
  const document = {
    openapi: "3.1.0",
    paths: {
      "/a": {
        get: {
          responses: {
            200: {
              content: {
                "application/json": {
                  schema: {
                    type: ["null", "object"],
                    properties: {
                      kind: { const: "x" },
                      any: { oneOf: [{ type: "null" }, { type: "number", exclusiveMinimum: 4, multipleOf: 3 }] },
                      map: { type: "object", additionalProperties: { type: "boolean" } },
                      pair: { prefixItems: [{ type: "string", format: "uuid" }, { type: "integer" }] },
                    },
                  },
                },
              },
            },
          },
        },
      },
    },
  };
  const { drafts } = read("openapi", document);
  assert.deepEqual(bodyOf(drafts[0]), {
    kind: "x",
    any: 6,
    map: { key: true },
    pair: ["00000000-0000-4000-8000-000000000000", 1],
  });
});

test("recursive schemas and references end", () => {
  const wide = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`p${index}`, { $ref: "#/components/schemas/Node" }]),
  );
  const document = {
    openapi: "3.0.0",
    paths: {
      "/a": {
        get: {
          responses: { 200: { content: { "application/json": { schema: { $ref: "#/components/schemas/Node" } } } } },
        },
      },
      "/b": { $ref: "#/paths/~1c" },
      "/c": { $ref: "#/paths/~1b" },
      "/d": {
        get: {
          responses: { 200: { content: { "application/json": { schema: { $ref: "#/components/schemas/Loop" } } } } },
        },
      },
    },
    components: {
      schemas: { Node: { type: "object", properties: wide }, Loop: { $ref: "#/components/schemas/Loop" } },
    },
  };
  const { drafts, skipped } = read("openapi", document);
  assert.equal(drafts.length, 2);
  assert.equal(skipped, 2);
  assert.ok((responsesOf(drafts[0]?.responseConfig ?? assert.fail())[0]?.body?.length ?? Infinity) < 100_000);
  assert.equal(bodyOf(drafts[1]), null);
});

const POSTMAN = {
  info: { name: "c", schema: "https://schema.getpostman.com/json/collection/v2.1.0/collection.json" },
  variable: [{ key: "base", value: "https://api.test" }],
  item: [
    {
      name: "Folder",
      item: [
        {
          name: "User",
          request: {
            method: "GET",
            url: { raw: "{{base}}/users/:id?full=true", host: ["{{base}}"], path: ["users", ":id"] },
          },
          response: [
            { name: "ok", code: 200, header: [{ key: "Content-Type", value: "application/json" }], body: '{"id":1}' },
            { name: "gone", code: 410, header: null, body: "" },
          ],
        },
      ],
    },
    {
      name: "Unknown base",
      request: { method: "POST", url: "{{other}}/things/{{id}}" },
      response: [{ code: 201, body: "made" }],
    },
    { name: "Nothing saved", request: { method: "GET", url: "https://api.test/" }, response: [] },
  ],
};

test("a saved response of a Postman collection is sent in the charset it declares", () => {
  const header = [{ key: "Content-Type", value: "text/plain; charset=iso-8859-1" }];
  const item = [{ name: "n", request: "https://a.test/", response: [{ code: 200, header, body: "é" }] }];
  const [draft] = read("postman", JSON.stringify({ ...POSTMAN, item })).drafts;
  assert.equal(draft && responsesOf(draft.responseConfig)[0]?.body_base64, "6Q==");
});

test("a Postman collection makes a rule for each saved response, also in folders, with variables substituted", async () => {
  const imported = read("postman", JSON.stringify(POSTMAN));
  assert.deepEqual(
    imported.drafts.map(({ name, enabled }) => [name, enabled]),
    [
      ["Postman: User", true],
      ["Postman: User (gone)", false],
      ["Postman: Unknown base", true],
    ],
  );
  assert.equal(imported.skipped, 1);
  assert.deepEqual(await answering(imported, "https://api.test/users/7?full=true"), ["Postman: User"]);
  for (const url of [
    "https://api.test/users/7",
    "https://api.test/users/7/8?full=true",
    "https://x.test/users/7?full=true",
  ]) {
    assert.deepEqual(await answering(imported, url), [], url);
  }
  assert.deepEqual(await answering(imported, "http://anything.test/v3/things/9", "POST"), ["Postman: Unknown base"]);
  assert.deepEqual(await answering(imported, "http://anything.test/v3/things/9/x", "POST"), []);
});

test("parts of a Postman request that no condition can express are left out of its rule", async () => {
  const url = `https://a.test/x? &${"n".repeat(256)}=1&v=${"w".repeat(65_537)}&real=1`;
  const item = [{ name: "n", request: { method: " ", url }, response: [{ code: 200, body: "x" }] }];
  const imported = read("postman", { ...POSTMAN, item });
  assert.deepEqual(
    imported.drafts.map(({ condition }) => parseCondition(condition).ok),
    [true],
  );
  assert.deepEqual(await answering(imported, "https://a.test/x?real=1"), ["Postman: n"]);
  assert.deepEqual(await answering(imported, "https://a.test/x"), []);
});

test("invalid documents are rejected with a message", () => {
  const cases: readonly (readonly [DocumentImport["format"], unknown, RegExp])[] = [
    ["har", "{", /stops before its end \(at byte 1\)/],
    ["har", "a: b", /begins with `\{` \(at byte 0\)/],
    ["har", "[]", /begins with `\{`/],
    ["har", null, /begins with `\{`/],
    ["har", { log: {} }, /no `log\.entries` array/],
    ["openapi", "{", /not JSON/],
    ["openapi", "a: [", /not YAML/],
    ["openapi", "just a text", /no member openapi/],
    ["openapi", { swagger: "2.0" }, /Swagger 2\.0/],
    ["openapi", { openapi: "4.0.0", paths: {} }, /4\.0\.0 is not supported/],
    ["openapi", { openapi: "3.0.0" }, /no paths/],
    ["postman", {}, /no list item/],
    ["postman", { item: [], info: { schema: "https://schema.getpostman.com/json/collection/v1.0.0/" } }, /version 1/],
    [
      "openapi",
      `a: &a [x, x]\n${Array.from({ length: 30 }, (_, i) => `b${i}: &b${i} [${i === 0 ? "*a, *a" : `*b${i - 1}, *b${i - 1}`}]`).join("\n")}`,
      /YAML/,
    ],
  ];
  for (const [format, data, message] of cases) {
    assert.throws(
      () => read(format, data),
      (error) => error instanceof ImportProblem && message.test(error.message),
      JSON.stringify(data),
    );
  }
});

test("importers throw nothing except ImportProblem for any parsed document, and their rules compile", () => {
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.string(),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie("node"), { maxLength: 4 }),
      fc.dictionary(
        fc.constantFrom(
          "item",
          "request",
          "response",
          "url",
          "raw",
          "method",
          "code",
          "body",
          "header",
          "key",
          "value",
          "log",
          "entries",
          "paths",
          "/a/{b}",
          "get",
          "responses",
          "200",
          "content",
          "application/json",
          "schema",
          "$ref",
          "type",
          "properties",
          "items",
          "allOf",
          "__proto__",
        ),
        tie("node"),
        { maxKeys: 6 },
      ),
    ),
  })).node;
  fc.assert(
    fc.property(value, (inner) => {
      const documents: readonly (readonly [DocumentImport["format"], unknown])[] = [
        [
          "har",
          {
            log: {
              entries: [
                inner,
                { request: { method: "GET", url: "http://a/" }, startedDateTime: "2026", response: inner },
              ],
            },
          },
        ],
        ["openapi", { openapi: "3.1.0", paths: inner, components: inner }],
        [
          "openapi",
          {
            openapi: "3.0.0",
            paths: {
              "/a/{b}": { get: { responses: { 200: { content: { "application/json": { schema: inner } } } } } },
            },
          },
        ],
        ["postman", { item: [inner, { name: "x", request: inner, response: [inner] }], variable: inner }],
      ];
      for (const [format, document] of documents) {
        try {
          for (const { condition } of read(format, document).drafts) assert.equal(parseCondition(condition).ok, true);
        } catch (error) {
          assert.ok(error instanceof ImportProblem, String(error));
        }
      }
    }),
    { numRuns: 300 },
  );
});
