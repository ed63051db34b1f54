import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { readJson } from "@headworks/json";
import { nullable, oneOf, strictObject, Type } from "./type.ts";
import { defineOperations, type Operation, upload } from "./operation.ts";
import { compileRequestValidator, compileValueValidator, operationProblems, unicodeIssue } from "./server.ts";

const table = defineOperations({
  listThings: {
    method: "GET",
    path: "/things",
    summary: "List",
    access: "things:read",
    query: strictObject({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100 })),
      ratio: Type.Optional(Type.Number()),
      order: Type.Optional(oneOf(["asc", "desc"])),
      name: Type.Optional(Type.String({ maxLength: 5 })),
    }),
    responses: { 200: null },
  },
  putThing: {
    method: "PUT",
    path: "/things/{id}",
    summary: "Put",
    access: "things:write",
    params: strictObject({ id: Type.String({ minLength: 1 }) }),
    body: strictObject({
      count: Type.Integer(),
      when: Type.Optional(Type.String({ format: "date-time" })),
      note: Type.Optional(nullable(Type.String({ maxLength: 3 }))),
      tags: Type.Optional(Type.Array(Type.String())),
    }),
    responses: { 200: null },
  },
  flip: {
    method: "POST",
    path: "/flip",
    summary: "Flip",
    access: "public",
    body: strictObject({ on: Type.Boolean() }),
    bodyOptional: true,
    responses: { 204: null },
  },
  send: {
    method: "POST",
    path: "/send",
    summary: "Send",
    access: "public",
    body: upload(["text/plain"], "Text"),
    responses: { 204: null },
  },
});

const paths = (operation: Operation, values: { params?: object; query?: object; body?: unknown }): string[] =>
  compileRequestValidator(operation)({
    params: values.params ?? {},
    query: values.query ?? {},
    body: values.body,
  }).issues.map(({ path, message }) => `${path} ${message}`);

test("query texts become numbers, absent ones their defaults", () => {
  const { issues, values } = compileRequestValidator(table.listThings)({
    params: {},
    query: { ratio: "0.5", limit: "7" },
    body: undefined,
  });
  assert.deepEqual(issues, []);
  assert.deepEqual(values.query, { ratio: 0.5, limit: 7 });
  assert.deepEqual(compileRequestValidator(table.listThings)({ params: {}, query: {}, body: undefined }).values.query, {
    limit: 100,
  });
});

test("what is wrong with a query is said for each parameter, once", () => {
  const cases: readonly (readonly [Record<string, string>, readonly string[]])[] = [
    [{ limit: "0" }, ["query/limit must be >= 1"]],
    [{ limit: "1001" }, ["query/limit must be <= 1000"]],
    [{ limit: "1.5" }, ["query/limit must be integer"]],
    [{ limit: "ten" }, ["query/limit must be a number"]],
    [{ limit: "" }, ["query/limit must be a number"]],
    [{ limit: " 5 " }, ["query/limit must be a number"]],
    [{ limit: "0x10" }, ["query/limit must be a number"]],
    [{ limit: "1e2" }, ["query/limit must be a number"]],
    [{ limit: "+5" }, ["query/limit must be a number"]],
    [{ ratio: "Infinity" }, ["query/ratio must be a number"]],
    [{ order: "up" }, ['query/order must be one of "asc", "desc"']],
    [{ name: "sixsix" }, ["query/name must NOT have more than 5 characters"]],
    [{ lmit: "5", order: "up" }, ['query/order must be one of "asc", "desc"', "query/lmit unknown property"]],
  ];
  for (const [query, expected] of cases) {
    assert.deepEqual(paths(table.listThings, { query }).sort(), [...expected].sort(), JSON.stringify(query));
  }
});

test("an operation without query parameters takes none", () => {
  assert.deepEqual(paths(table.flip, { query: { x: "1" } }), ["query/x unknown parameter; this operation takes none"]);
});

test("bodies are never coerced and every issue is named", () => {
  const cases: readonly (readonly [unknown, readonly string[]])[] = [
    [{ count: 1, when: "2026-01-01T00:00:00Z", note: null, tags: [] }, []],
    [undefined, ["body a JSON body is required"]],
    [null, ["body must be object"]],
    [[], ["body must be object"]],
    [{}, ["body/count is required"]],
    [{ count: "1" }, ["body/count must be integer"]],
    [{ count: 1.5 }, ["body/count must be integer"]],
    [{ count: 1, note: "long" }, ["body/note must NOT have more than 3 characters"]],
    [{ count: 1, note: 5 }, ["body/note does not have an accepted type"]],
    [{ count: 1, when: "yesterday" }, ['body/when must match format "date-time"']],
    [{ count: 1, tags: ["a", 5] }, ["body/tags/1 must be string"]],
    [{ count: "x", extra: 1 }, ["body/extra unknown property", "body/count must be integer"]],
    [JSON.parse('{"count":1,"__proto__":{"a":1}}'), ["body/__proto__ unknown property"]],
    [{ count: 1, constructor: 1 }, ["body/constructor unknown property"]],
  ];
  for (const [body, expected] of cases) {
    assert.deepEqual(
      paths(table.putThing, { params: { id: "a" }, body }).sort(),
      [...expected].sort(),
      JSON.stringify(body),
    );
  }
});

test("numbers that keep their text become numbers where the schema asks for one, and stay elsewhere", () => {
  const operation: Operation = {
    ...table.flip,
    body: strictObject({
      count: Type.Integer({ maximum: 1000 }),
      ratio: nullable(Type.Number()),
      list: Type.Array(Type.Union([Type.Integer(), Type.String()])),
      any: Type.Unknown(),
    }),
  };
  const body = readJson('{"count":1e2,"ratio":1.0,"list":[2.0,"a"],"any":{"n":[1.0]}}');
  assert.deepEqual(paths(operation, { body }), []);
  assert.equal(JSON.stringify(body), '{"count":100,"ratio":1,"list":[2,"a"],"any":{"n":[1.0]}}');
  assert.deepEqual(paths(operation, { body: readJson('{"count":1e4,"ratio":null,"list":[1.50],"any":0}') }).sort(), [
    "body/count must be <= 1000",
    "body/list/0 does not have an accepted type",
  ]);
});

test("what every object inherits is no property of a request", () => {
  assert.deepEqual(paths(table.putThing, { params: {}, body: { count: 1 } }), ["params/id is required"]);
  assert.deepEqual(paths({ ...table.flip, body: strictObject({ toString: Type.String() }) }, { body: {} }), [
    "body/toString is required",
  ]);
});

test("an optional body may be absent but not wrong; an upload is not looked at", () => {
  assert.deepEqual(paths(table.flip, {}), []);
  assert.deepEqual(paths(table.flip, { body: { on: true } }), []);
  assert.deepEqual(paths(table.flip, { body: {} }), ["body/on is required"]);
  assert.deepEqual(paths(table.send, {}), []);
});

test("values that are no requests are checked under the given name", () => {
  const check = compileValueValidator(strictObject({ a: Type.Integer() }), "document");
  assert.deepEqual(check({ a: 1 }), []);
  assert.deepEqual(check({ a: "1" }), [{ path: "document/a", message: "must be integer" }]);
});

const Tree = Type.Unsafe({
  $id: "Tree",
  type: "object",
  required: ["kind"],
  discriminator: { propertyName: "kind" },
  oneOf: [
    strictObject({ kind: oneOf(["leaf"]), size: Type.Integer({ minimum: 1 }) }),
    strictObject({
      kind: oneOf(["both", "pair"]),
      left: Type.Unsafe({ $ref: "Tree" }),
      right: Type.Unsafe({ $ref: "Tree" }),
    }),
  ],
});

test("a schema may refer to itself and stand in several places; of a union only the branch that is meant complains", () => {
  const check = compileValueValidator(strictObject({ first: Tree, second: Type.Optional(nullable(Tree)) }), "body");
  const leaf = { kind: "leaf", size: 1 };
  assert.deepEqual(
    check({ first: { kind: "both", left: leaf, right: { kind: "pair", left: leaf, right: leaf } } }),
    [],
  );
  assert.deepEqual(check({ first: leaf, second: null }), []);
  assert.deepEqual(
    check({ first: { kind: "both", left: leaf, right: { kind: "leaf", size: 0, other: 1 } }, second: 5 }),
    [
      { path: "body/first/right/other", message: "unknown property" },
      { path: "body/first/right/size", message: "must be >= 1" },
      { path: "body/second", message: "does not have an accepted type" },
    ],
  );
  assert.deepEqual(check({ first: { kind: "twig" } }), [
    { path: "body/first", message: 'kind must be one of "leaf", "both", "pair"' },
  ]);
  assert.deepEqual(check({ first: {} }), [{ path: "body/first/kind", message: "is required" }]);
});

test("a value that nests deeper than the stack is refused like any other", () => {
  let tree: unknown = { kind: "leaf", size: 1 };
  const leaf = { kind: "leaf", size: 1 };
  for (let depth = 0; depth < 100_000; depth += 1) tree = { kind: "both", left: tree, right: leaf };
  assert.deepEqual(compileValueValidator(Tree, "body")(tree), [{ path: "body", message: "is nested too deeply" }]);
});

test("half of a surrogate pair is found wherever it stands, whole ones are not", () => {
  const deep = 100_000;
  const cases: readonly (readonly [text: string, path: string | undefined])[] = [
    [String.raw`{"a":"\ud83d\ude00","b":"\ufffd\u0000","c":"\\ud800"}`, undefined],
    [String.raw`"\udc00"`, "body"],
    [String.raw`{"a":[0,{"b/c~d":"x\uD800"}]}`, "body/a/1/b~1c~0d"],
    [String.raw`{"a":{"\ud800":1}}`, "body/a"],
    [String.raw`{"a":"\ude00\ud83d"}`, "body/a"],
    [String.raw`{"a":"\ud83d\ud83d\ude00"}`, "body/a"],
    [String.raw`{"a":"\ud83d\ude00\ude00"}`, "body/a"],
    [String.raw`["\\\ud83d\ude00",[],{},"\ud83d\\ude00","\ud83d"]`, "body/3"],
    [String.raw`[{"a":[1,"\uDBFF\uDFFF"]},{"":{"b":[[],"\u00e9\udfff"]}}]`, "body/1//b/1"],
    [String.raw`{"a":"\ud800","b":{"c":1},"a":"x"}`, undefined],
    [`${"[".repeat(deep)}"\\udead"${"]".repeat(deep)}`, `body${"/0".repeat(deep)}`],
  ];
  for (const [text, path] of cases) {
    assert.equal(unicodeIssue(text, JSON.parse(text), "body")?.path, path, text.slice(0, 60));
  }
});

test("a value whose text has surrogate pairs only as wholes is not looked through", () => {
  const text = String.raw`{"a":["\ud83d\ude00","\uDBFF\uDFFF","\\ud800","\ud7ff\ue000"]}`;
  let looks = 0;
  const value = {
    get a() {
      looks += 1;
      return [];
    },
  };
  assert.equal(unicodeIssue(text, value, "body"), undefined);
  assert.equal(looks, 0);
  assert.equal(unicodeIssue(String.raw`"\ud800"`, value, "body"), undefined);
  assert.equal(looks, 1);
});

test("looking for half of a surrogate pair takes no memory for each element", async () => {
  const look = `
    const { unicodeIssue } = await import(${JSON.stringify(new URL("server.ts", import.meta.url).href)});
    const value = new Array(4_000_000).fill(0);
    value.push("\\ud800");
    require("node:worker_threads").parentPort.postMessage(unicodeIssue('"\\\\ud800"', value, "body"));`;
  const worker = new Worker(`void (async () => {${look}})();`, {
    eval: true,
    resourceLimits: { maxOldGenerationSizeMb: 128 },
  });
  const [issue] = (await once(worker, "message")) as [{ path: string }];
  assert.equal(issue.path, "body/4000000");
});

test("two schemas of one name are a mistake", () => {
  compileValueValidator(Type.Unsafe({ $id: "Twice", type: "string" }), "a")("x");
  assert.throws(() => compileValueValidator(Type.Unsafe({ $id: "Twice", type: "number" }), "b")(1), /called Twice/);
});

test("a contract's tests learn what is wrong with its schemas", () => {
  for (const operation of Object.values(table)) assert.deepEqual(operationProblems(operation), []);
  const wrong = Type.Unsafe<string>({ type: "strin", minLength: -1 });
  const problems = operationProblems({
    method: "POST",
    path: "/wrong",
    summary: "Wrong",
    access: "things:write",
    query: strictObject({ limit: wrong }),
    body: wrong,
    responses: { 200: strictObject({ limit: wrong }), 204: null },
  });
  for (const place of ["query/properties/limit/type", "body/type", "body/minLength", "200/properties/limit/type"]) {
    assert.ok(
      problems.some((problem) => problem.startsWith(`${place} `)),
      place,
    );
  }
});
