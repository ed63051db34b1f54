import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "@headworks/capture-contract";
import { openDocument } from "./import-documents.ts";
import { ImportCollector, shownWarnings } from "./imported-mocks.ts";
import type { ImportedMocks } from "./imported-mocks.ts";
import { newMock, responsesOf } from "./mock-rule.ts";
import type { MockDraft } from "./mock-rule.ts";
import { createMockCompiler } from "./mocks.compile.ts";
import { sampleSubject } from "./mocks.operations.ts";

function read(format: "openapi" | "postman", document: object): ImportedMocks {
  const reader = openDocument({ format, baseUrl: null });
  reader.write(Buffer.from(JSON.stringify(document)));
  const given = reader.end();
  return "exported" in given ? assert.fail("an export is no rule yet") : given;
}

const response = (draft: MockDraft | undefined) => responsesOf(draft?.responseConfig ?? assert.fail("no rule"))[0];

const openApi = (responses: object, components: object = {}) =>
  read("openapi", { openapi: "3.1.0", paths: { "/a": { get: { responses } } }, components });

test("an OpenAPI response with an invalid status is named", () => {
  const imported = openApi({ 101: { description: "" }, 200: { description: "" }, "x-note": "none" });
  assert.equal(imported.drafts.length, 1);
  assert.equal(imported.skipped, 1);
  assert.deepEqual(imported.warnings, ["GET /a -> 101: a rule cannot have this status"]);
});

test("the examples, media types and header fields of an OpenAPI response that its rule lacks are named", () => {
  const imported = openApi({
    200: {
      headers: { "X-Known": { example: "1" }, "X-List": { schema: { type: "array", items: { type: "string" } } } },
      content: {
        "application/xml": { example: "<a/>" },
        "application/json": { examples: { few: { value: [1] }, many: { value: [1, 2] }, none: { value: [] } } },
      },
    },
  });
  assert.equal(response(imported.drafts[0])?.body, "[\n  1\n]");
  assert.deepEqual(imported.warnings, [
    "GET /a -> 200: the header field X-List is left out, since it has no scalar value",
    "GET /a -> 200: of its media types application/json is used; left out: application/xml",
    "GET /a -> 200: of its examples few is used; left out: many, none",
  ]);
});

test("a dangling reference of an OpenAPI document is named once", () => {
  const lost = { $ref: "#/components/responses/Lost" };
  const { warnings } = openApi(
    { 200: lost, 404: lost, 410: { $ref: "#/components/responses/Here" } },
    { responses: { Here: {} } },
  );
  assert.deepEqual(warnings, ["#/components/responses/Lost does not exist in this document"]);
});

async function isMatch({ drafts: [draft] }: ImportedMocks, url: string): Promise<boolean> {
  const rule = newMock("1", draft ?? assert.fail("no rule"), 0);
  const compiler = createMockCompiler(() => ({ hits: 0, nextIndex: 0 }));
  return compiler.one(rule).condition.matches(await sampleSubject({ url, method: "GET" }, ""));
}

test("an OpenAPI server with variables without default is matched by its known parts", async () => {
  const pin = (...values: readonly string[]) => ({ enum: values });
  const noDefault = (server: string, ...names: readonly string[]): readonly string[] => [
    names.length === 1
      ? `the server ${server}: its variable ${names[0]} has no default, so it matches anything`
      : `the server ${server}: its variables ${names.join(", ")} have no default, so they match anything`,
  ];
  const cases: readonly {
    url: string;
    variables?: object;
    matched: readonly string[];
    missed: readonly string[];
    warnings: readonly string[];
  }[] = [
    {
      url: "https://{host}/v1",
      variables: { host: { description: "yours" } },
      matched: ["https://a.test/v1/a", "http://b.test:81/v1/a"],
      missed: ["https://a.test/a", "https://a.test/v2/a"],
      warnings: noDefault("https://{host}/v1", "host"),
    },
    {
      url: "https://{host}/v1",
      variables: { host: pin("a.test", "b.test") },
      matched: ["https://a.test/v1/a"],
      missed: ["https://b.test/v1/a"],
      warnings: [],
    },
    {
      url: "{scheme}://{region}.a.test:{port}/{base}/v1/",
      variables: { scheme: pin(), base: null },
      matched: ["https://eu.a.test/x/v1/a", "http://us.a.test:81/y/v1/a"],
      missed: ["https://eu.b.test/x/v1/a", "https://eu.a.test/x/v2/a", "https://eu.a.test/v1/a"],
      warnings: noDefault("{scheme}://{region}.a.test:{port}/{base}/v1/", "scheme", "region", "port", "base"),
    },
    {
      url: "{server}/v1",
      matched: ["https://a.test/v1/a", "https://a.test/x/v1/a"],
      missed: ["https://a.test/a"],
      warnings: noDefault("{server}/v1", "server"),
    },
    {
      url: "https://{host}:{port}{base}",
      variables: { host: { default: "a.test" }, port: { default: 81 }, base: { default: "" } },
      matched: ["https://a.test:81/a"],
      missed: ["https://b.test:81/a"],
      warnings: [],
    },
    {
      url: "https://{host}/v1",
      variables: { host: { default: "" } },
      matched: ["https://a.test/v1/a"],
      missed: ["https://v1/a"],
      warnings: ["the server https://{host}/v1: its host is invalid, so its rules match every host"],
    },
    {
      url: "https://[a/v1",
      matched: ["https://a.test/v1/a"],
      missed: ["https://a.test/a"],
      warnings: ["the server https://[a/v1: its host is invalid, so its rules match every host"],
    },
  ];
  for (const { url, variables, matched, missed, warnings } of cases) {
    const imported = read("openapi", {
      openapi: "3.0.0",
      servers: [{ url, variables }],
      paths: { "/a": { get: { responses: { 204: {} } }, put: { responses: { 204: {} } } } },
    });
    assert.deepEqual(imported.warnings, warnings, url);
    for (const address of matched) assert.equal(await isMatch(imported, address), true, `${url} is for ${address}`);
    for (const address of missed) assert.equal(await isMatch(imported, address), false, `${url} is not for ${address}`);
  }
});

test("the default response of OpenAPI is a success if it is the only one and does not describe an error", () => {
  const given = (responses: object) => {
    const { drafts, warnings } = openApi(responses);
    const [only] = drafts.filter(({ enabled }) => enabled);
    return [response(drafts.find(({ name }) => name.endsWith("default")))?.status_code, only?.name.slice(19), warnings];
  };
  const says = (status: number): readonly string[] => [
    `GET /a -> default: it has no status, so its rule responds with ${status}`,
  ];
  const failure = { description: "Unexpected error" };
  assert.deepEqual(given({ default: { description: "A pet" } }), [200, "default", says(200)]);
  assert.deepEqual(given({ 404: {}, default: { description: "A pet" } }), [200, "default", says(200)]);
  assert.deepEqual(given({ default: { description: "A pet" }, 201: {} }), [500, "201", says(500)]);
  assert.deepEqual(given({ default: { description: "" }, 302: {} }), [500, "302", says(500)]);
  assert.deepEqual(given({ default: failure }), [500, "default", says(500)]);
  assert.deepEqual(given({ default: failure, 404: {} }), [500, "404", says(500)]);
  const ofType = (type: string, schema: object) => ({ description: "", content: { [type]: { example: {}, schema } } });
  assert.deepEqual(given({ default: ofType("application/problem+json", {}) })[0], 500);
  assert.deepEqual(given({ default: ofType("application/json", { $ref: "#/components/schemas/ApiError" }) })[0], 500);
  assert.deepEqual(given({ default: ofType("application/json", { title: "Fault" }) })[0], 500);
  assert.deepEqual(given({ default: ofType("application/json", { title: "Pet" }) })[0], 200);
});

test("webhooks and callbacks of OpenAPI documents are named", () => {
  const call = { post: { responses: { 204: {} } } };
  const document = {
    openapi: "3.1.0",
    paths: { "/a": { get: { responses: { 204: {} }, callbacks: { onData: { "{$url}": call }, "x-note": 1 } } } },
    webhooks: { petAdded: call, petGone: call },
    "x-webhooks": { petSold: call },
  };
  assert.deepEqual(read("openapi", document).warnings, [
    "GET /a: its callbacks are left out, since the service sends them: onData",
    "webhooks are left out, since the service sends them: petAdded, petGone",
    "x-webhooks are left out, since the service sends them: petSold",
  ]);
  const { paths: _paths, ...alone } = document;
  assert.throws(() => read("openapi", alone), {
    message: "The document has no paths, only webhooks: petAdded, petGone",
  });
});

const postman = (response: object, more: object = {}, url = "https://a.test/") =>
  read("postman", { item: [{ name: "n", request: { method: "GET", url }, response: [response], ...more }] });

test("header fields that Postman wrote as text are kept", () => {
  for (const header of ["X-One: 1\r\nX-Two: a:b\n", ["X-One: 1", { key: "X-Two", value: "a:b" }]]) {
    const { drafts, warnings } = postman({ code: 200, header, body: "" });
    const { headers } = response(drafts[0]) ?? {};
    assert.equal(headers?.["X-One"], "1");
    assert.equal(headers?.["X-Two"], "a:b");
    assert.deepEqual(warnings, []);
  }
  const { warnings } = postman({ code: 200, header: ["nothing"], body: "" });
  assert.deepEqual(warnings, ["n: a header field of its response is left out, since it has no name or no value"]);
});

test("a saved response of Postman with an invalid status does not become 200", () => {
  const { drafts, skipped, warnings } = postman({ code: 101, header: [], body: "" });
  assert.deepEqual([drafts, skipped, warnings], [[], 1, ["n: status 101 cannot be mocked"]]);
  const guessed = postman({ name: "no code", body: "" });
  assert.equal(response(guessed.drafts[0])?.status_code, 200);
  assert.deepEqual(guessed.warnings, ["n: its response has no status, so the rule responds with 200"]);
});

test("query parameters of Postman that no condition can express are named", () => {
  const many = Array.from({ length: 52 }, (_, index) => `p${index}=1`).join("&");
  const { warnings } = postman({ code: 200, body: "" }, {}, `https://a.test/?${many}`);
  assert.deepEqual(warnings, ["n: its rule ignores the query parameters p50, p51"]);
  const [long] = postman({ code: 200, body: "" }, {}, `https://a.test/?a=1&b=${"w".repeat(65_537)}`).warnings;
  assert.equal(long, "n: its rule ignores the query parameters b");
});

const asked = (condition: Condition | undefined): string => JSON.stringify(condition);

test("variables of Postman folders apply only inside them, and disabled ones nowhere", () => {
  const request = { name: "n", request: "{{base}}/x", response: [{ code: 200, body: "" }] };
  const { drafts } = read("postman", {
    variable: [
      { key: "base", value: "https://root.test" },
      { key: "base", value: "https://off.test", disabled: true },
    ],
    item: [{ name: "f", variable: [{ key: "base", value: "https://folder.test" }], item: [request] }, request],
  });
  assert.match(asked(drafts[0]?.condition), /folder/);
  assert.match(asked(drafts[1]?.condition), /root/);
});

const sending = (name: string, body: object | undefined, more: object = {}) => ({
  name,
  request: { method: "POST", url: "https://a.test/rpc", body },
  response: [{ code: 200, body: name }],
  ...more,
});

async function responding({ drafts }: ImportedMocks, body: string): Promise<string | undefined> {
  const compiler = createMockCompiler(() => ({ hits: 0, nextIndex: 0 }));
  const subject = await sampleSubject({ url: "https://a.test/rpc", method: "POST", body }, "");
  return drafts
    .filter(({ enabled }) => enabled)
    .find((draft, index) => compiler.one(newMock(String(index), draft, 0)).condition.matches(subject))
    ?.name.slice(9);
}

test("Postman requests that differ only in their bodies are matched by body", async () => {
  const imported = read("postman", {
    variable: [{ key: "id", value: "7" }],
    item: [
      sending("none", undefined),
      sending("json", { mode: "raw", raw: '{ "id": {{id}}, "list": [1.50] }' }),
      sending("text", { mode: "raw", raw: "a.b\nc" }),
      sending("graphql", { mode: "graphql", graphql: { query: "query A { a }", variables: '{"a": 1}' } }),
      sending("digits", { mode: "raw", raw: "9007199254740993" }),
      sending("switched off", { mode: "raw", raw: "off", disabled: true }, { response: [] }),
    ],
  });
  assert.deepEqual(imported.warnings, ["switched off: it has no saved response"]);
  assert.equal(await responding(imported, '{"list":[1.5],"id":7}'), "json");
  assert.equal(await responding(imported, "a.b\nc"), "text");
  assert.equal(await responding(imported, '{"query":"query A { a }","variables":{"a":1}}'), "graphql");
  assert.equal(await responding(imported, "9007199254740993"), "digits");
  for (const other of [
    "",
    '{"id":8,"list":[1.5]}',
    "axb\nc",
    "a.b\ncd",
    '{"query":"query A { a }"}',
    "9007199254740992",
  ]) {
    assert.equal(await responding(imported, other), "none", other);
  }
});

test("a unique Postman request is not matched by body, and its other responses stay disabled", async () => {
  const body = (raw: string) => ({ mode: "raw", raw });
  const other = { code: 400, originalRequest: { method: "POST", url: "https://a.test/rpc", body: body("bad") } };
  const imported = read("postman", { item: [sending("n", body("good"), { response: [{ code: 200 }, other] })] });
  assert.deepEqual(
    imported.drafts.map(({ enabled }) => enabled),
    [true, false],
  );
  assert.equal(await responding(imported, "anything"), "n");
});

test("Postman requests that cannot be distinguished are named", async () => {
  const form = (value: string) => ({ mode: "urlencoded", urlencoded: [{ key: "a", value }] });
  const raw = (text: string) => ({ mode: "raw", raw: text });
  const forms = read("postman", {
    item: [sending("one", form("1")), sending("two", form("2")), sending("long", raw("x".repeat(1001)))],
  });
  assert.deepEqual(forms.warnings, [
    "one, two, long: these requests differ in bodies that no condition tells apart, so that one alone responds",
  ]);
  assert.equal(await responding(forms, "a=2"), "one");
  const same = read("postman", {
    item: [sending("one", raw("a")), sending("two", raw("a")), sending("three", raw("{{b}}"))],
  });
  assert.deepEqual(same.warnings, ["one, two: these requests are the same, so that one alone responds"]);
  assert.equal(await responding(same, "b"), "three");
  const twice = read("postman", { item: [sending("one", raw("a")), sending("two", raw("a"))] });
  assert.deepEqual(twice.warnings, ["one, two: these requests are the same, so that one alone responds"]);
});

test("warnings beyond the limit are counted", () => {
  const collector = new ImportCollector();
  for (let index = 0; index < 250; index += 1) collector.warn(`warning ${index}`);
  const { warnings, moreWarnings } = collector.done();
  const shown = shownWarnings([...warnings, "one of the check"], moreWarnings);
  assert.equal(shown.length, 100);
  assert.equal(shown[98], "warning 98");
  assert.equal(shown[99], "152 more warnings are not shown");
  assert.deepEqual(shownWarnings(["a"], 0), ["a"]);
});
