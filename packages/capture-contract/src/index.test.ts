import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation } from "@headworks/contract-kit";
import { openApiDocument } from "@headworks/contract-kit/openapi";
import { compileRequestValidator, compileValueValidator, operationProblems } from "@headworks/contract-kit/server";
import { ClientMessage, ERRORS, NewWsRule, apiInfo, operations } from "./index.ts";

const all: readonly (readonly [slice: string, name: string, operation: Operation])[] = Object.entries(
  operations,
).flatMap(([slice, table]) =>
  Object.entries(table).map(([name, operation]) => [slice, name, operation as Operation] as const),
);

const properties = (schema: unknown): string[] =>
  Object.keys((schema as { properties?: object } | undefined)?.properties ?? {});

test("no two operations share a method and path, and names are unique over all slices", () => {
  const places = all.flatMap(([, , { method, path, aliases = [] }]) => [
    `${method} ${apiInfo.prefix}${path}`,
    ...aliases.map((alias) => `${method} ${alias}`),
  ]);
  assert.deepEqual(
    places.filter((place, index) => places.indexOf(place) !== index),
    [],
  );
  const names = all.map(([, name]) => name);
  assert.equal(new Set(names).size, names.length);
  const tools = all.flatMap(([, , { expose }]) => (expose?.mcp ? [expose.mcp.name] : []));
  assert.equal(new Set(tools).size, tools.length);
});

test("every path names its parameters, and no others are declared", () => {
  for (const [, name, { path, params }] of all) {
    assert.deepEqual(
      [...path.matchAll(/\{(\w+)\}/g)].map((found) => found[1]),
      properties(params),
      name,
    );
    assert.match(path, /^\/[a-z0-9/{}_-]+$/, name);
  }
});

/** Lists of our own, facts and documents, not items that users create or capture. */
const NOT_COUNTED = [
  "treeTraffic",
  "listTrafficValues",
  "describeConfig",
  "listMockTemplates",
  "exportMocks",
  "listRewriteTemplates",
  "listScriptTemplates",
  "previewScriptMatches",
  "getScriptTraces",
  "listThrottlePresets",
];

test("every list says how many there are in all", () => {
  const isList = ({ responses }: Operation): boolean =>
    (responses[200] as { type?: string } | null | undefined)?.type === "array";
  const uncounted = all.filter(
    ([, , operation]) => isList(operation) && operation.responseFields?.["X-Total-Count"] === undefined,
  );
  assert.deepEqual(
    uncounted.map(([, name]) => name),
    NOT_COUNTED,
  );
});

/** Operations that change nothing and are told in a body what they are asked about. */
const ONLY_ASKING = /^(?:test|preview|dryRun|diff|validate)[A-Z]/;

test("what reads has no body and never changes anything by its access; what changes asks for more than reading", () => {
  for (const [, name, { method, access, body }] of all) {
    if (method === "GET") {
      assert.equal(body, undefined, name);
      assert.match(access, /^public$|:(?:read|export)$/, name);
      continue;
    }
    const asks = ONLY_ASKING.test(name);
    assert.match(access, asks ? /:(?:read|write|execute)$/ : /:(?:write|delete|execute|export)$/, name);
  }
});

test("what is public is health, the certificate and how to set up, nothing of the traffic", () => {
  assert.deepEqual(
    all
      .filter(([, , { access }]) => access === "public")
      .map(([, name]) => name)
      .sort(),
    ["getCaCertificate", "getCertificateInfo", "getDetailedHealth", "getHealth", "getMobileConfig", "getSetup"],
  );
});

test("every operation's schemas compile, and unknown query fields are refused", () => {
  for (const [, name, operation] of all) {
    const { issues } = compileRequestValidator(operation)({
      params: {},
      query: { no_such_parameter: "1" },
      body: undefined,
    });
    assert.ok(
      issues.some(({ path }) => path === "query/no_such_parameter"),
      name,
    );
  }
});

test("every schema is one by JSON Schema 2020-12", () => {
  for (const [, name, operation] of all) assert.deepEqual(operationProblems(operation), [], name);
});

test("every JSON body and answer refuses unknown properties", () => {
  const visit = (schema: unknown, where: string): void => {
    if (typeof schema !== "object" || schema === null) return;
    const facts = schema as { type?: string; properties?: object; additionalProperties?: unknown };
    if (facts.type === "object" && facts.properties) assert.equal(facts.additionalProperties, false, where);
    for (const [key, value] of Object.entries(schema)) visit(value, `${where}/${key}`);
  };
  for (const [, name, { body, query, params, responses }] of all) visit([body, query, params, responses], name);
});

test("no pattern of a schema looks at the characters of a long text again and again", () => {
  const patterns = new Set<string>();
  const visit = (schema: unknown): void => {
    if (typeof schema !== "object" || schema === null) return;
    const { type, pattern } = schema as { type?: unknown; pattern?: unknown };
    if (type === "string" && typeof pattern === "string") patterns.add(pattern);
    for (const part of Object.values(schema)) visit(part);
  };
  for (const [, , { body, query, params }] of all) visit([body, query, params]);
  assert.ok(patterns.size > 5);
  // Of these lengths, time that grows with their square would be hours.
  const runs = ["a", "A", "0", " ", "/", "~0", "a "].map((text) => text.repeat(2_000_000));
  for (const pattern of patterns) {
    const compiled = new RegExp(pattern, "u");
    for (const run of runs) assert.doesNotThrow(() => compiled.test(`${run}\0`), pattern);
  }
});

test("the document for other programs is complete: every reference leads somewhere, every id is one", () => {
  const text = JSON.stringify(openApiDocument(operations, apiInfo));
  const document = JSON.parse(text) as {
    components: { schemas: object };
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    assert.ok(name in document.components.schemas, name);
  }
  const ids = Object.values(document.paths).flatMap((item) =>
    Object.values(item).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(ids.length >= all.length);
});

test("the specification's error codes have their statuses", () => {
  const statuses: readonly (readonly [keyof typeof ERRORS, number])[] = [
    ["BAD_REQUEST", 400],
    ["VALIDATION_ERROR", 400],
    ["UNAUTHORIZED", 401],
    ["INVALID_API_KEY", 401],
    ["FORBIDDEN", 403],
    ["CONFIRM_REQUIRED", 403],
    ["NOT_FOUND", 404],
    ["CONFLICT", 409],
    ["PAYLOAD_TOO_LARGE", 413],
    ["RATE_LIMITED", 429],
    ["INTERNAL", 500],
    ["NOT_IMPLEMENTED", 501],
    ["SERVICE_UNAVAILABLE", 503],
    ["CORE_DATABASE", 503],
  ];
  for (const [code, status] of statuses) assert.equal(ERRORS[code].status, status, code);
  for (const [code, { status }] of Object.entries(ERRORS)) {
    assert.ok(status >= 400 && status < 600 && /^[A-Z_]+$/.test(code), code);
  }
});

test("of what a message rule does, that alone is told which is wrong with the kind it names", () => {
  const check = compileValueValidator(NewWsRule, "body");
  const cases: readonly (readonly [action: object, issues: readonly string[]])[] = [
    [{ type: "delay", delay_ms: -1 }, ["body/action/delay_ms: must be >= 1"]],
    [{ type: "delay" }, ["body/action/delay_ms: is required"]],
    [{ type: "drop", delay_ms: 1 }, ["body/action/delay_ms: unknown property"]],
    [{ type: "replace", find: "", replacement: "" }, ["body/action/find: must NOT have fewer than 1 characters"]],
    [{ type: "explode" }, ['body/action: type must be one of "replace", "drop", "delay", "pause"']],
    [{}, ["body/action/type: is required"]],
    [{ type: "delay", delay_ms: 1 }, []],
    [{ type: "pause" }, []],
  ];
  for (const [action, issues] of cases) {
    assert.deepEqual(
      check({ action }).map(({ path, message }) => `${path}: ${message}`),
      issues,
      JSON.stringify(action),
    );
  }
});

test("what a client may say on the live socket", () => {
  const check = compileValueValidator(ClientMessage, "message");
  const good: readonly object[] = [
    { type: "Ping" },
    { type: "Subscribe" },
    { type: "Subscribe", data: { filter: null } },
    { type: "Subscribe", data: { filter: { search: "a", method: null, status_code: "4xx" } } },
    { type: "Subscribe", data: { channels: ["changes", "tasks"] } },
    { type: "Unsubscribe" },
    { type: "GetInitialTraffic" },
    { type: "GetInitialTraffic", data: { limit: null } },
    { type: "GetInitialTraffic", data: { limit: 1000 } },
  ];
  for (const message of good) assert.deepEqual(check(message), [], JSON.stringify(message));
  const bad: readonly unknown[] = [
    null,
    "Ping",
    {},
    { type: "ping" },
    { type: "Ping", data: {} },
    { type: "Subscribe", data: { filter: "a" } },
    { type: "GetInitialTraffic", data: { limit: 1001 } },
  ];
  for (const message of bad) assert.notDeepEqual(check(message), [], JSON.stringify(message));
});

test("a name shows something and has no NUL", () => {
  const { body } = operations.sessions.createSession;
  const check = compileValueValidator(body, "body");
  for (const name of ["a", " a ", "a b", "\u{1f600}", "a\n", "\n\t a\u2028", `${" ".repeat(254)}a`]) {
    assert.deepEqual(check({ name }), [], JSON.stringify(name));
  }
  for (const name of ["", " ", "\n\u2028\ufeff\u00a0", "\0", "a\0", "\0a", "a\0b", " \0a", " a\0 "]) {
    assert.equal(check({ name })[0]?.path, "body/name", JSON.stringify(name));
  }
});
