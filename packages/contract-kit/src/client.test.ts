import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { strictObject, Type } from "./type.ts";
import { ApiFailure, createClient, operationUrl } from "./client.ts";
import { defineOperations, media, upload } from "./operation.ts";

const operations = {
  things: defineOperations({
    list: {
      method: "GET",
      path: "/things",
      summary: "List",
      access: "public",
      query: strictObject({
        q: Type.Optional(Type.String()),
        limit: Type.Optional(Type.Integer()),
        ids: Type.Optional(Type.String()),
      }),
      responses: { 200: Type.Array(Type.Integer()) },
    },
    one: {
      method: "GET",
      path: "/things/{id}",
      summary: "One",
      access: "public",
      params: strictObject({ id: Type.String() }),
      responses: { 200: strictObject({ id: Type.String() }) },
    },
    create: {
      method: "POST",
      path: "/things",
      summary: "Create",
      access: "public",
      body: strictObject({ name: Type.String() }),
      responses: { 201: strictObject({ id: Type.String() }) },
    },
    remove: {
      method: "DELETE",
      path: "/things/{id}",
      summary: "Remove",
      access: "public",
      params: strictObject({ id: Type.String() }),
      responses: { 204: null },
    },
    text: {
      method: "GET",
      path: "/text",
      summary: "Text",
      access: "public",
      responses: { 200: media("text/plain", "Text") },
    },
    send: {
      method: "POST",
      path: "/send",
      summary: "Send",
      access: "public",
      body: upload(["text/csv"], "Rows"),
      responses: { 200: strictObject({ bytes: Type.Integer() }) },
    },
  }),
};

async function withService<T>(
  reply: (request: IncomingMessage, body: string, response: ServerResponse) => void,
  use: (baseUrl: string) => Promise<T>,
): Promise<T> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => reply(request, Buffer.concat(pieces).toString(), response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};

test("parameters are encoded where they stand", () => {
  assert.equal(operationUrl(operations.things.one, { params: { id: "a/b?c d" } }), "/api/things/a%2Fb%3Fc%20d");
  assert.equal(
    operationUrl(operations.things.list, { query: { q: "a&b=ü", limit: 5, ids: undefined } }),
    "/api/things?q=a%26b%3D%C3%BC&limit=5",
  );
  assert.equal(operationUrl(operations.things.list, { query: { ids: ["a", "b"] } }, ""), "/things?ids=a%2Cb");
});

test("calls give parsed JSON, nothing, or the answer itself, as the contract says", async () => {
  const seen: string[] = [];
  await withService(
    (request, body, response) => {
      seen.push(
        `${request.method} ${request.url} ${request.headers["content-type"] ?? "-"} ${String(request.headers["x-key"] ?? "-")} ${body}`,
      );
      if (request.url === "/api/text") return response.end("plain");
      if (request.method === "DELETE") return response.writeHead(204).end();
      if (request.url === "/api/send") return json(response, 200, { bytes: body.length });
      return json(
        response,
        request.method === "POST" ? 201 : 200,
        request.url === "/api/things" && request.method === "GET" ? [1, 2] : { id: "x" },
      );
    },
    async (baseUrl) => {
      const client = createClient(operations, { baseUrl, headers: () => ({ "x-key": "k" }) });
      assert.deepEqual(await client.things.list({}), [1, 2]);
      assert.deepEqual(await client.things.create({ body: { name: "n" } }), { id: "x" });
      assert.equal(await client.things.remove({ params: { id: "x" } }), undefined);
      assert.equal(await (await client.things.text({})).text(), "plain");
      assert.deepEqual(await client.things.send({ body: "a,b" }), { bytes: 3 });
    },
  );
  assert.deepEqual(seen, [
    "GET /api/things - k ",
    'POST /api/things application/json k {"name":"n"}',
    "DELETE /api/things/x - k ",
    "GET /api/text - k ",
    "POST /api/send text/csv k a,b",
  ]);
});

test("a refusal carries status, code, message and details; a page of an intermediary its text", async () => {
  const responses: ((response: ServerResponse) => void)[] = [
    (response) =>
      json(response, 400, { error: "No", code: "VALIDATION_ERROR", details: [{ path: "a", message: "b" }] }),
    (response) => response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>"),
    (response) => response.writeHead(500).end(),
  ];
  const failures: ApiFailure[] = [];
  await withService(
    (_request, _body, response) => responses.shift()?.(response),
    async (baseUrl) => {
      const client = createClient(operations, { baseUrl });
      for (let count = 0; count < 3; count += 1) {
        await client.things.list({}).catch((error: unknown) => {
          assert.ok(error instanceof ApiFailure);
          failures.push(error);
        });
      }
    },
  );
  assert.deepEqual(
    failures.map(({ status, code, message }) => [status, code, message]),
    [
      [400, "VALIDATION_ERROR", "No"],
      [502, "HTTP_ERROR", "<h1>Bad gateway</h1>"],
      [500, "HTTP_ERROR", "Internal Server Error"],
    ],
  );
  assert.deepEqual(failures[0]?.details, [{ path: "a", message: "b" }]);
});

test("a service that cannot be reached is a failure with status 0, an abort stays an abort", async () => {
  const baseUrl = await withService(
    () => undefined,
    async (url) => url,
  );
  const client = createClient(operations, { baseUrl });
  await assert.rejects(
    client.things.list({}),
    (error) => error instanceof ApiFailure && error.status === 0 && error.code === "UNREACHABLE",
  );
  await assert.rejects(client.things.list({ signal: AbortSignal.abort() }), { name: "AbortError" });
});
