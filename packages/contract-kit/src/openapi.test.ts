import assert from "node:assert/strict";
import { test } from "node:test";
import { nullable, strictObject, Type } from "./type.ts";
import { openApiDocument } from "./openapi.ts";
import { defineOperations, media, upload } from "./operation.ts";

const Part = strictObject({ n: Type.Integer() }, { $id: "Part" });
const Thing = strictObject({ id: Type.String(), part: nullable(Part), parts: Type.Array(Part) }, { $id: "Thing" });
const ErrorBody = strictObject({ error: Type.String() }, { $id: "ApiError" });

const operations = {
  things: defineOperations({
    getThing: {
      method: "GET",
      path: "/things/{id}",
      summary: "One",
      description: "More about it",
      access: "things:read",
      params: strictObject({ id: Type.String({ description: "Which" }) }),
      query: strictObject({ full: Type.Optional(Type.Boolean()) }),
      responses: { 200: Thing, 204: null },
      responseFields: { "X-Parts": "How many" },
    },
    putThing: {
      method: "PUT",
      path: "/things/{id}",
      summary: "Put",
      access: "things:write",
      params: strictObject({ id: Type.String() }),
      body: Thing,
      requestFields: { "If-Match": "Which version" },
      responses: { 200: Thing },
    },
    flip: {
      method: "POST",
      path: "/flip",
      summary: "Flip",
      access: "things:write",
      body: Part,
      bodyOptional: true,
      responses: { 204: null },
    },
    send: {
      method: "POST",
      path: "/send",
      summary: "Send",
      access: "public",
      body: upload(["text/csv", "text/plain"], "Rows"),
      responses: { 200: media("text/plain", "Said") },
      aliases: ["/send"],
    },
    dump: {
      method: "GET",
      path: "/dump",
      summary: "Dump",
      access: "public",
      responses: { 200: media("application/json", "All things") },
    },
    page: {
      method: "GET",
      path: "/page",
      summary: "Page",
      access: "public",
      responses: { 200: media("text/plain", "A page", ["application/json"]) },
    },
  }),
};

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Record<string, unknown>>>;
  readonly components: { readonly schemas: Record<string, unknown> };
}

const document = openApiDocument(operations, {
  title: "T",
  version: "1",
  description: "D",
  prefix: "/api",
  error: ErrorBody,
}) as unknown as Document;

test("every operation stands at its path, aliases outside the prefix too, under an id of its own", () => {
  assert.deepEqual(Object.keys(document.paths), [
    "/api/things/{id}",
    "/api/flip",
    "/api/send",
    "/send",
    "/api/dump",
    "/api/page",
  ]);
  const ids = Object.values(document.paths).flatMap((item) =>
    Object.values(item).map((operation) => operation["operationId"]),
  );
  assert.deepEqual(ids, ["getThing", "putThing", "flip", "send", "sendAtRoot", "dump", "page"]);
  assert.deepEqual(Object.keys(document.paths["/api/things/{id}"] ?? {}), ["get", "put"]);
});

test("named schemas become components once, references point at them, and no $id is left", () => {
  assert.deepEqual(Object.keys(document.components.schemas).sort(), ["ApiError", "Part", "Thing"]);
  const text = JSON.stringify(document);
  assert.doesNotMatch(text, /"\$id"/);
  for (const [, name = ""] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
    assert.ok(name in document.components.schemas, name);
  }
  assert.deepEqual(
    (document.components.schemas["Thing"] as { properties: Record<string, unknown> }).properties["parts"],
    { type: "array", items: { $ref: "#/components/schemas/Part" } },
  );
});

test("parameters, bodies and answers are described, failures in general", () => {
  const get = document.paths["/api/things/{id}"]?.["get"];
  assert.deepEqual(get?.["parameters"], [
    { name: "id", in: "path", required: true, description: "Which", schema: { type: "string", description: "Which" } },
    { name: "full", in: "query", required: false, schema: { type: "boolean" } },
  ]);
  assert.equal(get?.["x-access"], "things:read");
  const responses = get?.["responses"] as Record<
    string,
    { headers?: object; content?: Record<string, { schema: unknown }> }
  >;
  assert.deepEqual(Object.keys(responses), ["200", "204", "default"]);
  assert.deepEqual(responses["200"]?.headers, { "X-Parts": { description: "How many", schema: { type: "string" } } });
  assert.equal(responses["204"]?.headers, undefined);
  assert.deepEqual(responses["200"]?.content?.["application/json"]?.schema, { $ref: "#/components/schemas/Thing" });
  assert.deepEqual(responses["default"]?.content?.["application/json"]?.schema, {
    $ref: "#/components/schemas/ApiError",
  });
  const body = (path: string, method: string) =>
    document.paths[path]?.[method]?.["requestBody"] as { required: boolean; content: object };
  assert.equal(body("/api/things/{id}", "put").required, true);
  assert.equal(body("/api/flip", "post").required, false);
  assert.deepEqual(Object.keys(body("/api/send", "post").content), ["text/csv", "text/plain"]);
  const parameters = document.paths["/api/things/{id}"]?.["put"]?.["parameters"] as object[] | undefined;
  assert.deepEqual(parameters?.[1], {
    name: "If-Match",
    in: "header",
    required: false,
    description: "Which version",
    schema: { type: "string" },
  });
});

for (const [path, method, ...types] of [
  ["/api/send", "post", ["text/plain", "string"]],
  ["/api/dump", "get", ["application/json", "object"]],
  ["/api/page", "get", ["text/plain", "string"], ["application/json", "object"]],
] as const) {
  test(`an answer of a media type is text, but an object where that is JSON: ${types.map(([name]) => name).join(" or ")}`, () => {
    const responses = document.paths[path]?.[method]?.["responses"] as Record<string, { content?: object }>;
    const described = types.map(([name, type]) => [name, { schema: { type } }]);
    assert.deepEqual(responses["200"]?.content, Object.fromEntries(described));
  });
}

test("a schema that refers to itself does so among the components", () => {
  const Node = Type.Unsafe({
    $id: "Node",
    type: "object",
    properties: { next: Type.Unsafe({ $ref: "Node" }) },
    additionalProperties: false,
  });
  const table = defineOperations({
    put: {
      method: "POST",
      path: "/nodes",
      summary: "Put",
      access: "nodes:write",
      body: Node,
      responses: { 204: null },
    },
  });
  const { components } = openApiDocument(
    { nodes: table },
    { title: "T", version: "1", description: "D", prefix: "/api", error: ErrorBody },
  ) as { components: { schemas: Record<string, unknown> } };
  assert.deepEqual(components.schemas["Node"], {
    type: "object",
    properties: { next: { $ref: "#/components/schemas/Node" } },
    additionalProperties: false,
  });
});
