import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { defineOperations, JsonBytes, media, strictObject, Type, upload } from "@headworks/contract-kit";
import { rawClient, readResponse, temporaryDirectory, waitUntil } from "@headworks/testkit";
import fc from "fast-check";
import { startApi } from "../../test/api-rig.ts";
import type { ApiRig } from "../../test/api-rig.ts";
import { ApiError, notFound } from "./api-error.ts";
import type { Principal } from "./gate.ts";

const things = {
  things: defineOperations({
    listThings: {
      method: "GET",
      path: "/things",
      summary: "List",
      access: "things:read",
      query: strictObject({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, default: 100 })) }),
      responseFields: { "X-Total-Count": "All" },
      responses: { 200: Type.Array(Type.Object({})) },
    },
    createThing: {
      method: "POST",
      path: "/things",
      summary: "Create",
      access: "things:write",
      body: strictObject({ name: Type.String() }),
      responses: { 201: strictObject({ name: Type.String() }) },
    },
    listAllThings: {
      method: "GET",
      path: "/things/all",
      summary: "List all",
      access: "public",
      responseFields: { "X-Total-Count": "All" },
      responses: { 200: Type.Array(Type.Object({})) },
    },
    wordy: {
      method: "GET",
      path: "/things/wordy",
      summary: "Says too much",
      access: "public",
      responses: { 200: media("text/plain", "Text") },
    },
    flip: { method: "POST", path: "/things/flip", summary: "Flip", access: "things:write", responses: { 204: null } },
    readThing: {
      method: "GET",
      path: "/things/{id}",
      summary: "One",
      access: "things:read",
      params: strictObject({ id: Type.String({ maxLength: 64 }) }),
      responses: { 200: media("application/octet-stream", "Bytes"), 206: media("application/octet-stream", "Part") },
    },
    importThings: {
      method: "POST",
      path: "/things/import",
      summary: "Import",
      access: "things:write",
      query: strictObject({ fail: Type.Optional(Type.String()) }),
      body: upload(["application/json"], "Anything"),
      responses: { 200: strictObject({ bytes: Type.Integer() }) },
    },
    slow: {
      method: "GET",
      path: "/things/slow/stream",
      summary: "Stream",
      access: "public",
      responses: { 200: media("text/plain", "Text") },
    },
    broken: {
      method: "GET",
      path: "/things/broken",
      summary: "Throws",
      access: "public",
      responses: { 200: media("text/plain", "Never") },
      aliases: ["/broken"],
    },
  }),
};

interface Seen {
  aborted: boolean;
  streamEnded: boolean;
}

function startThings(
  options: Parameters<typeof startApi>[0] = {},
  seen: Seen = { aborted: false, streamEnded: false },
): Promise<ApiRig> {
  const handlers = {
    listThings: ({ query }: { query: { limit: number } }) => ({
      status: 200,
      headers: { "X-Total-Count": "2" },
      body: new JsonBytes(Buffer.from(`[{"limit":${query.limit}}]`)),
    }),
    listAllThings: () => ({ status: 200, body: [{}, {}, {}] }),
    createThing: ({ body }: { body: { name: string } }) => ({ status: 201, body }),
    flip: () => ({ status: 204 }),
    readThing: ({ params, headers }: { params: { id: string }; headers: Record<string, string> }) => {
      if (params.id === "missing") return notFound("thing", params.id);
      if (headers["range"] === undefined) {
        return { status: 200, headers: { "Accept-Ranges": "bytes" }, body: Buffer.from("0123456789") };
      }
      return { status: 206, headers: { "Content-Range": "bytes 2-4/10" }, body: Buffer.from("234") };
    },
    importThings: async ({ body, query }: { body: AsyncIterable<Uint8Array>; query: { fail?: string } }) => {
      let bytes = 0;
      for await (const piece of body) {
        if (query.fail !== undefined) throw new ApiError("BAD_REQUEST", "refused at the first piece");
        bytes += piece.length;
      }
      return { status: 200, body: { bytes } };
    },
    slow: ({ signal }: { signal: AbortSignal }) => {
      signal.addEventListener("abort", () => (seen.aborted = true));
      return {
        status: 200,
        body: (async function* () {
          try {
            for (;;) {
              yield "tick\n";
              await new Promise((resolve) => setImmediate(resolve));
            }
          } finally {
            seen.streamEnded = true;
          }
        })(),
      };
    },
    wordy: () => ({ status: 200, headers: { "X-Secret-Of-Ours": "1" }, body: "" }),
    broken: () => {
      throw new Error("a secret path /home/user");
    },
  };
  return startApi({ operations: things, slices: () => [{ name: "things", operations: handlers }], ...options });
}

/** A request with exactly the given fields and body bytes, which `fetch` would not send. */
async function send(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string | Buffer,
): Promise<{ status: number; headers: IncomingMessage["headers"]; text: string }> {
  const outgoing = httpRequest({ port, host: "127.0.0.1", method, path, headers, agent: false });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  const text = Buffer.concat(await incoming.toArray()).toString();
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, text };
}

const JSON_TYPE = { "content-type": "application/json" };

test("all error responses have one shape", async () => {
  await using api = await startThings();
  const table: readonly (readonly [
    string,
    string,
    Record<string, string>,
    string | undefined,
    number,
    string,
    RegExp,
  ])[] = [
    ["GET", "/api/nothing", {}, undefined, 404, "NOT_FOUND", /nothing at this path/],
    ["GET", "/api", {}, undefined, 404, "NOT_FOUND", /nothing/],
    ["GET", "/api/things/", {}, undefined, 404, "NOT_FOUND", /nothing/],
    ["GET", "/API/things", {}, undefined, 404, "NOT_FOUND", /nothing/],
    ["GET", "//api/things", {}, undefined, 404, "NOT_FOUND", /nothing/],
    ["GET", "/api%2fthings", {}, undefined, 404, "NOT_FOUND", /nothing/],
    ["GET", "/api/things/%zz", {}, undefined, 400, "BAD_REQUEST", /percent/],
    ["GET", "/api/things/missing", {}, undefined, 404, "NOT_FOUND", /^Thing not found$/],
    ["GET", `/api/things/${"x".repeat(65)}`, {}, undefined, 404, "NOT_FOUND", /^Nothing has this id$/],
    ["DELETE", "/api/things", {}, undefined, 405, "METHOD_NOT_ALLOWED", /method/],
    ["PUT", "/api/things/x", JSON_TYPE, "{}", 405, "METHOD_NOT_ALLOWED", /method/],
    ["PROPFIND", "/api/things", {}, undefined, 405, "METHOD_NOT_ALLOWED", /method/],
    ["OPTIONS", "/api/things", {}, undefined, 405, "METHOD_NOT_ALLOWED", /method/],
    ["GET", "/api/things/flip/x", {}, undefined, 404, "NOT_FOUND", /nothing/],
    ["GET", "/ws", {}, undefined, 426, "BAD_REQUEST", /WebSocket/],
    ["GET", "/api/ws?batch=1", {}, undefined, 426, "BAD_REQUEST", /WebSocket/],
    ["POST", "/traffic", JSON_TYPE, "{}", 405, "METHOD_NOT_ALLOWED", /method/],
    ["POST", "/api/nothing", JSON_TYPE, "{}", 404, "NOT_FOUND", /nothing/],
    ["POST", "/api/things", JSON_TYPE, "{", 400, "BAD_REQUEST", /not valid JSON/],
    ["POST", "/api/things", JSON_TYPE, "", 400, "VALIDATION_ERROR", /body is required/],
    ["POST", "/api/things", JSON_TYPE, String.raw`{"name":"\ud800"}`, 400, "VALIDATION_ERROR", /body\/name: .*Unicode/],
    ["POST", "/api/things", JSON_TYPE, "null", 400, "VALIDATION_ERROR", /body/],
    ["POST", "/api/things", JSON_TYPE, '{"name":"a","__proto__":{}}', 400, "VALIDATION_ERROR", /__proto__/],
    ["POST", "/api/things", JSON_TYPE, `${"[".repeat(100_000)}`, 400, "BAD_REQUEST", /JSON/],
    [
      "POST",
      "/api/things",
      { "content-type": "text/plain" },
      '{"name":"a"}',
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      /application\/json/,
    ],
    [
      "POST",
      "/api/things",
      { "content-type": "application/x-www-form-urlencoded" },
      "name=a",
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      /application\/json/,
    ],
    ["POST", "/api/things", {}, '{"name":"a"}', 415, "UNSUPPORTED_MEDIA_TYPE", /application\/json/],
    [
      "POST",
      "/api/things",
      { "content-type": "application/json; charset=utf-16" },
      '{"name":"a"}',
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      /UTF-8/,
    ],
    [
      "POST",
      "/api/things",
      { ...JSON_TYPE, "content-encoding": "gzip" },
      "x",
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      /compressed/,
    ],
    ["POST", "/api/things/flip", JSON_TYPE, '{"enabled":true}', 400, "VALIDATION_ERROR", /body\/enabled/],
    ["POST", "/api/things/flip", JSON_TYPE, "[1]", 400, "VALIDATION_ERROR", /takes no body/],
    [
      "POST",
      "/api/things/import",
      { "content-type": "text/csv" },
      "a,b",
      415,
      "UNSUPPORTED_MEDIA_TYPE",
      /application\/json/,
    ],
    ["POST", "/api/things/import", JSON_TYPE, "", 400, "VALIDATION_ERROR", /body is required/],
    ["GET", "/api/things?limit=0", {}, undefined, 400, "VALIDATION_ERROR", /query\/limit/],
    ["GET", "/api/things?limit=1001", {}, undefined, 400, "VALIDATION_ERROR", /query\/limit/],
    ["GET", "/api/things?limit=ten", {}, undefined, 400, "VALIDATION_ERROR", /query\/limit/],
    ["GET", "/api/things?limit=1&limit=2", {}, undefined, 400, "VALIDATION_ERROR", /more than once/],
    ["GET", "/api/things?lmit=1", {}, undefined, 400, "VALIDATION_ERROR", /query\/lmit/],
    ["GET", "/api/things?__proto__=1", {}, undefined, 400, "VALIDATION_ERROR", /query\/__proto__/],
    ["POST", "/api/things/flip?x=1", {}, undefined, 400, "VALIDATION_ERROR", /query\/x/],
    ["GET", "/api/things/broken", {}, undefined, 500, "INTERNAL", /^Internal error/],
    ["GET", "/api/things/wordy", {}, undefined, 500, "INTERNAL", /^Internal error/],
    ["GET", "/broken", {}, undefined, 500, "INTERNAL", /^Internal error/],
    ["GET", "/assets/none.js", {}, undefined, 404, "NOT_FOUND", /nothing/],
    ["GET", "/..%2f..%2fetc/passwd.txt", {}, undefined, 404, "NOT_FOUND", /nothing/],
  ];
  for (const [method, path, headers, body, status, code, message] of table) {
    const what = `${method} ${path.slice(0, 60)} ${body?.slice(0, 40) ?? ""}`;
    const response = await send(api.port, method, path, headers, body);
    assert.equal(response.status, status, what);
    const parsed = JSON.parse(response.text) as { error: string; code: string };
    assert.equal(parsed.code, code, what);
    assert.match(parsed.error, message, what);
    assert.equal(response.headers["content-type"], "application/json; charset=utf-8", what);
    assert.equal(response.headers["access-control-allow-origin"], undefined);
    assert.equal(response.headers["x-content-type-options"], "nosniff", what);
  }
});

test("the address for WebSocket clients names the required protocol", async () => {
  await using api = await startThings();
  for (const path of ["/ws", "/api/ws"]) {
    const { headers } = await send(api.port, "GET", path);
    assert.deepEqual([headers.upgrade, headers.connection], ["websocket", "close, upgrade"], path);
  }
});

test("a wrong method names the right ones", async () => {
  await using api = await startThings();
  assert.equal((await send(api.port, "DELETE", "/api/things")).headers.allow, "GET, HEAD, POST");
  assert.equal((await send(api.port, "PATCH", "/broken")).headers.allow, "GET, HEAD");
  assert.equal((await send(api.port, "PUT", "/")).headers.allow, "GET, HEAD");
});

test("invalid HTTP gets the same shape, and the connection ends", async () => {
  await using api = await startThings();
  await using connection = await rawClient(api.port);
  await connection.write("NONSENSE\r\n\r\n");
  const text = (await connection.collect()).toString();
  assert.match(text, /^HTTP\/1\.1 400 /);
  assert.match(text, /"code":"BAD_REQUEST"/);
  assert.match(text, /X-Content-Type-Options: nosniff/);
});

const HANDSHAKE = "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n";

test("requests that Node would refuse get the same shape and fields", async () => {
  await using api = await startThings();
  const table: readonly (readonly [string, number, string])[] = [
    ["GET / HTTP/1.1\r\n", 421, "HOST_NOT_ALLOWED"],
    ["GET / HTTP/1.0\r\n", 421, "HOST_NOT_ALLOWED"],
    ["GET / HTTP/1.1\r\nHost: localhost\r\nExpect: cake\r\n", 417, "BAD_REQUEST"],
    ["GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n", 400, "BAD_REQUEST"],
    ["GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n", 400, "BAD_REQUEST"],
    ["GET / HTTP/1.1\r\nHost:\r\n", 421, "HOST_NOT_ALLOWED"],
    ["GET / HTTP/1.1\r\nHost: :3001\r\n", 421, "HOST_NOT_ALLOWED"],
    [`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(66_000)}\r\n`, 431, "BAD_REQUEST"],
    [`GET / HTTP/1.1\r\nHost: localhost\r\n${"X: 12345678\r\n".repeat(9_000)}`, 431, "BAD_REQUEST"],
    [`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(600_000)}\r\n`, 431, "BAD_REQUEST"],
    [`${HANDSHAKE}X: ${"x".repeat(66_000)}\r\n`, 431, "BAD_REQUEST"],
    [HANDSHAKE.replace("/ws", "/nothing"), 404, "NOT_FOUND"],
    ["BREW / HTTP/1.1\r\nHost: localhost\r\n", 400, "BAD_REQUEST"],
    ["GET / HTTP/3.0\r\nHost: localhost\r\n", 505, "BAD_REQUEST"],
    ["PRI * HTTP/2.0\r\n", 505, "BAD_REQUEST"],
    ["CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n", 400, "BAD_REQUEST"],
    ["OPTIONS * HTTP/1.1\r\nHost: localhost\r\n", 400, "BAD_REQUEST"],
    ["TRACE /api/things HTTP/1.1\r\nHost: localhost\r\n", 405, "METHOD_NOT_ALLOWED"],
    ["POST /api/things HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n", 400, "BAD_REQUEST"],
    [
      "POST /api/things HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
      400,
      "BAD_REQUEST",
    ],
    ["GET / HTTP/1.1\r\nHost: localhost\r\nno field\r\n", 400, "BAD_REQUEST"],
  ];
  for (const [head, status, code] of table) {
    await using connection = await rawClient(api.port);
    await connection.write(`${head}Connection: close\r\n\r\n`);
    const text = (await connection.collect()).toString();
    assert.equal(Number(text.slice(9, 12)), status, head.slice(0, 80));
    assert.match(text, new RegExp(`"code":"${code}"`));
    assert.match(text, /Content-Security-Policy: default-src 'none'/i);
  }
});

test("the response to a malformed request follows the one before it, never in its middle", async () => {
  await using api = await startThings();
  await using connection = await rawClient(api.port);
  await connection.write("GET /api/things HTTP/1.1\r\nHost: localhost\r\n\r\nBREW / HTTP/1.1\r\n\r\n");
  const statuses = [(await readResponse(connection)).status, (await readResponse(connection)).status];
  assert.deepEqual(statuses, [200, 400]);
});

test("a request is refused by its Host and its origin before anything else", async () => {
  await using api = await startThings();
  for (const path of ["/api/things", "/", "/assets/x.js", "/api/docs", "/nothing", "/api/things/%zz"]) {
    const rebound = await send(api.port, "GET", path, { host: "evil.test" });
    assert.equal(rebound.status, 421, path);
    assert.equal((JSON.parse(rebound.text) as { code: string }).code, "HOST_NOT_ALLOWED");
    const foreign = await send(api.port, "GET", path, { origin: "https://evil.test" });
    assert.equal(foreign.status, 403, path);
    assert.equal((JSON.parse(foreign.text) as { code: string; message: string }).code, "CROSS_SITE");
  }
  const preflight = await send(api.port, "OPTIONS", "/api/things", {
    origin: "https://evil.test",
    "access-control-request-method": "POST",
  });
  assert.equal(preflight.status, 403);
  assert.equal(preflight.headers["access-control-allow-origin"], undefined);
});

test("names added to the settings are allowed at once", async () => {
  await using api = await startThings();
  assert.equal((await send(api.port, "GET", "/api/things", { host: "weir.corp.test" })).status, 421);
  api.settings.patch({ allowed_api_hosts: ["weir.corp.test"] });
  assert.equal((await send(api.port, "GET", "/api/things", { host: "weir.corp.test" })).status, 200);
});

test("defaults are filled in, counts are sent in fields, and serialized bytes are sent unchanged", async () => {
  await using api = await startThings();
  const { status, headers, json } = await api.call("GET", "/api/things");
  assert.equal(status, 200);
  assert.equal(headers.get("x-total-count"), "2");
  assert.equal(headers.get("cache-control"), "no-store");
  assert.deepEqual(json, [{ limit: 100 }]);
});

test("a complete list without a count is counted", async () => {
  await using api = await startThings();
  const { headers, json } = await api.call("GET", "/api/things/all");
  assert.equal(headers.get("x-total-count"), "3");
  assert.deepEqual(json, [{}, {}, {}]);
});

test("an operation without a body accepts an empty object and has an empty response", async () => {
  await using api = await startThings();
  for (const body of [undefined, {}]) {
    const { status, json } = await api.call("POST", "/api/things/flip", body);
    assert.equal(status, 204);
    assert.equal(json, "");
  }
});

test("ranges and HEAD work for bytes, and HEAD does not run a stream to its end", async () => {
  const seen = { aborted: false, streamEnded: false };
  await using api = await startThings({}, seen);
  const part = await send(api.port, "GET", "/api/things/a", { range: "bytes=2-4" });
  assert.equal(part.status, 206);
  assert.equal(part.headers["content-range"], "bytes 2-4/10");
  assert.equal(part.text, "234");
  const head = await send(api.port, "HEAD", "/api/things/a");
  assert.equal(head.status, 200);
  assert.equal(head.headers["content-length"], "10");
  assert.equal(head.headers["accept-ranges"], "bytes");
  assert.equal(head.text, "");
  assert.equal((await send(api.port, "HEAD", "/api/things/slow/stream")).status, 200);
});

test("an upload of any size reaches the handler as a stream, JSON over the limit is refused", async () => {
  await using api = await startThings();
  const large = Buffer.alloc(12 * 1024 * 1024, "x");
  const imported = await send(api.port, "POST", "/api/things/import", JSON_TYPE, large);
  assert.deepEqual(JSON.parse(imported.text), { bytes: large.length });
  const announced = await send(api.port, "POST", "/api/things", {
    ...JSON_TYPE,
    "content-length": String(10 * 1024 * 1024 + 1),
  }).catch((error: unknown) => error);
  assert.ok(!(announced instanceof Error));
  assert.equal((announced as { status: number }).status, 413);
  await using connection = await rawClient(api.port);
  await connection.write(
    "POST /api/things HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
  );
  const chunk = `100000\r\n${"x".repeat(0x100000)}\r\n`;
  for (let count = 0; count < 11; count += 1) await connection.write(chunk).catch(() => undefined);
  assert.match((await connection.readUntil("}")).toString(), /HTTP\/1\.1 413 [\s\S]*PAYLOAD_TOO_LARGE/);
});

test("a client that sends its whole body before it reads gets an early response", async () => {
  await using api = await startThings();
  const body = Buffer.alloc(12 * 1024 * 1024, "x");
  const table: readonly (readonly [string, Record<string, string>, RegExp])[] = [
    ["/api/things", JSON_TYPE, /^HTTP\/1\.1 413 [^]*"PAYLOAD_TOO_LARGE"/],
    ["/api/things", { ...JSON_TYPE, host: "elsewhere.example" }, /^HTTP\/1\.1 421 /],
    ["/api/things", { ...JSON_TYPE, "sec-fetch-site": "cross-site" }, /^HTTP\/1\.1 403 [^]*"CROSS_SITE"/],
    ["/api/nothing", { connection: "close" }, /^HTTP\/1\.1 404 [^]*"NOT_FOUND"/],
    ["/api/things/import?fail=true", { ...JSON_TYPE, connection: "close" }, /^HTTP\/1\.1 400 [^]*at the first piece/],
  ];
  for (const [path, fields, expected] of table) {
    await using connection = await rawClient(api.port);
    const all = { host: "localhost", "content-length": String(body.length), ...fields };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    await connection.write(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
    await connection.write(body);
    assert.match((await connection.readUntil("}")).toString(), expected, path);
  }
});

test("a client that goes away ends the stream it was reading and aborts the signal", async () => {
  const seen = { aborted: false, streamEnded: false };
  await using api = await startThings({}, seen);
  await using connection = await rawClient(api.port);
  await connection.write("GET /api/things/slow/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await connection.readUntil("tick");
  connection.reset();
  await waitUntil(() => seen.aborted && seen.streamEnded);
});

test("the operation's access and the caller's scopes decide on a call", async () => {
  const identify = (headers: Readonly<Record<string, string | string[] | undefined>>): Principal | undefined => {
    const name = headers["x-test-caller"];
    if (name === "bad") throw new ApiError("INVALID_API_KEY");
    return typeof name === "string" ? { name, scopes: [name] } : undefined;
  };
  await using api = await startThings({ identify });
  const table: readonly (readonly [string | undefined, string, string, number, string | undefined])[] = [
    [undefined, "GET", "/api/things", 401, "UNAUTHORIZED"],
    ["bad", "GET", "/api/things", 401, "INVALID_API_KEY"],
    ["things:write", "GET", "/api/things", 403, "FORBIDDEN"],
    ["things:read", "GET", "/api/things", 200, undefined],
    ["things:read", "HEAD", "/api/things", 200, undefined],
    ["things:*", "POST", "/api/things/flip", 204, undefined],
    ["*:read", "POST", "/api/things/flip", 403, "FORBIDDEN"],
    [undefined, "GET", "/api/things/slow/../../things", 401, "UNAUTHORIZED"],
  ];
  for (const [caller, method, path, status, code] of table) {
    const response = await api.call(method, path, undefined, caller === undefined ? {} : { "x-test-caller": caller });
    assert.equal(response.status, status, `${caller} ${method} ${path}`);
    const body = response.json as { code?: string; error?: string; message?: string };
    assert.equal(method === "HEAD" ? undefined : body.code, code);
    if (code !== undefined) assert.equal(body.message, body.error);
  }
});

test("the UI's files have their cache rules, its routes get its document, and API paths never do", async () => {
  await using directory = await temporaryDirectory();
  mkdirSync(directory.file("assets"));
  writeFileSync(directory.file("index.html"), "<!doctype html><title>UI</title>");
  writeFileSync(directory.file("assets", "app-1a2b.js"), "export {};");
  writeFileSync(directory.file("favicon.svg"), "<svg/>");
  writeFileSync(directory.file(".secret"), "no");
  await using api = await startThings({ uiDirectory: directory.path });
  for (const path of ["/", "/traffic", "/sessions/abc", "/index.html"]) {
    const { status, headers, text } = await send(api.port, "GET", path);
    assert.equal(status, 200, path);
    assert.match(text, /<title>UI/);
    assert.equal(headers["cache-control"], "no-cache");
    assert.match(headers["content-type"] ?? "", /^text\/html/);
    assert.match(String(headers["content-security-policy"]), /default-src 'none'; script-src 'self';/);
    assert.equal(headers["x-frame-options"], "DENY");
    assert.equal(headers["referrer-policy"], "no-referrer");
    assert.equal(headers["cross-origin-resource-policy"], "same-origin");
  }
  const asset = await send(api.port, "GET", "/assets/app-1a2b.js");
  assert.equal(asset.headers["cache-control"], "public, max-age=31536000, immutable");
  assert.match(asset.headers["content-type"] ?? "", /javascript/);
  const again = await send(api.port, "GET", "/assets/app-1a2b.js", { "if-none-match": String(asset.headers.etag) });
  assert.equal(again.status, 304);
  assert.equal((await send(api.port, "GET", "/favicon.svg")).headers["cache-control"], "no-cache");
  for (const path of ["/.secret", "/assets/missing.js", "/api/traffic", "/assets/..%2f.secret", "/..%5c.secret"]) {
    assert.equal((await send(api.port, "GET", path)).status, 404, path);
  }
});

test("without a build, the page explains how to build, and the API works", async () => {
  await using api = await startThings();
  const { status, text } = await send(api.port, "GET", "/traffic");
  assert.equal(status, 200);
  assert.match(text, /npm run build/);
  assert.equal((await send(api.port, "GET", "/api/things")).status, 200);
});

test("the API describes itself for programs and for people, without a script", async () => {
  await using api = await startThings();
  const openApi = JSON.parse((await send(api.port, "GET", "/api/openapi.json")).text) as {
    paths: Record<string, object>;
  };
  assert.ok(openApi.paths["/api/things/{id}"]);
  const docs = await send(api.port, "GET", "/api/docs");
  assert.match(docs.text, /id="importThings"/);
  assert.doesNotMatch(docs.text, /`/);
  assert.doesNotMatch(docs.text, /<script/);
});

test("pages outside the contract may bring a content policy of their own", async () => {
  await using api = await startThings({
    pages: [{ path: "/setup", render: () => ({ html: "<p>hi</p>", contentSecurityPolicy: "default-src 'none'" }) }],
  });
  const { headers, text } = await send(api.port, "GET", "/setup");
  assert.equal(text, "<p>hi</p>");
  assert.equal(headers["content-security-policy"], "default-src 'none'");
});

test("a store failure is 503 with its own code, without the reason", async () => {
  await using api = await startThings({
    slices: ({ database }) => [
      {
        name: "things",
        operations: {
          ...Object.fromEntries(Object.keys(things.things).map((name) => [name, () => ({ status: 204 })])),
          broken: () => database.exec("INSERT INTO no_such_table VALUES (1)"),
        },
      },
    ],
  });
  const { status, json } = await api.call("GET", "/api/things/broken");
  assert.equal(status, 503);
  assert.deepEqual(json, { error: "The store does not respond", code: "CORE_DATABASE" });
});

test("errors of the store have the code of their name, and their message", async () => {
  let error = new Error("none");
  await using api = await startThings({
    slices: () => [
      {
        name: "things",
        operations: {
          ...Object.fromEntries(Object.keys(things.things).map((name) => [name, () => ({ status: 204 })])),
          broken: async () => await Promise.reject(error),
        },
      },
    ],
  });
  const codes: readonly (readonly [name: string, status: number, code: string])[] = [
    ["CursorError", 400, "VALIDATION_ERROR"],
    ["FilterError", 400, "VALIDATION_ERROR"],
    ["ImportRefusedError", 400, "BAD_REQUEST"],
    ["ReaderBusyError", 503, "SERVICE_UNAVAILABLE"],
    ["StorageError", 503, "CORE_DATABASE"],
    ["CancelledError", 499, "CANCELLED"],
    ["AbortError", 499, "CANCELLED"],
  ];
  for (const [name, status, code] of codes) {
    error = Object.assign(new Error("why"), { name });
    const response = await api.call("GET", "/api/things/broken");
    assert.equal(response.status, status, name);
    assert.deepEqual(response.json, { error: "why", code }, name);
  }
  for (const name of ["Error", "constructor", "__proto__"]) {
    error = Object.assign(new Error("why"), { name });
    const response = await api.call("GET", "/api/things/broken");
    assert.deepEqual([response.status, (response.json as { code: string }).code], [500, "INTERNAL"], name);
  }
});

test("any request gets a valid response with the agreed shape, and the service survives", async () => {
  await using api = await startThings();
  const token = fc.constantFrom(
    "/",
    "api",
    "things",
    "..",
    "%2e%2e",
    "%2f",
    "%00",
    "%zz",
    "?",
    "&",
    "=",
    "#",
    ";",
    "\\",
    "x",
    "*",
    "http://",
    "a@b",
    ":",
    "ü",
    "\t",
    " ",
  );
  const target = fc.array(token, { maxLength: 8 }).map((parts) => `/${parts.join("")}`);
  const method = fc.constantFrom(
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "PROPFIND",
    "get",
    "BREW",
  );
  const field = fc.tuple(
    fc.constantFrom(
      "Host",
      "Origin",
      "Content-Type",
      "Content-Length",
      "Transfer-Encoding",
      "Connection",
      "Upgrade",
      "Expect",
      "Range",
    ),
    fc.constantFrom(
      "localhost",
      "evil.test",
      "null",
      "application/json",
      "0",
      "5",
      "-1",
      "chunked",
      "keep-alive",
      "websocket",
      "100-continue",
      "bytes=0-",
      "",
      "ü",
    ),
  );
  await fc.assert(
    fc.asyncProperty(
      method,
      target,
      fc.array(field, { maxLength: 4 }),
      fc.string({ maxLength: 40 }),
      async (verb, path, fields, body) => {
        await using connection = await rawClient(api.port);
        const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
        await connection.write(
          `${verb} ${path} HTTP/1.1\r\nHost: localhost\r\n${lines}Connection: close\r\n\r\n${body}`,
        );
        connection.end();
        const text = (await connection.collect()).toString();
        if (text === "") return;
        assert.match(text, /^HTTP\/1\.1 \d{3} /);
        const status = Number(text.slice(9, 12));
        assert.ok(status !== 500, text);
        if (status >= 400 && verb !== "HEAD" && !path.includes(":")) {
          assert.match(text, /"code":"[A-Z_]+"/, text);
        }
      },
    ),
    { numRuns: 300 },
  );
  assert.equal((await send(api.port, "GET", "/api/things")).status, 200);
});

test("a port in use is reported", async () => {
  await using api = await startThings();
  await using other = await startThings();
  const { createApiServer } = await import("./server.ts");
  const server = createApiServer({
    slices: [],
    operations: {},
    settings: other.settings,
    events: other.events,
    log: other.host.log,
    uiDirectory: "/none",
  });
  await assert.rejects(server.listen(api.port, "127.0.0.1"), { code: "EADDRINUSE" });
  await server.close(0);
});

test("closing ends an endless request after the grace period", async () => {
  const api = await startThings();
  const connection = await rawClient(api.port);
  await connection.write("GET /api/things/slow/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await connection.readUntil("tick");
  const closed = api[Symbol.asyncDispose]();
  await connection.collect();
  await closed;
  connection.destroy();
});
