import assert from "node:assert/strict";
import { test } from "node:test";
import {
  rawClient,
  readResponse,
  startOrigin,
  temporaryDirectory,
  waitUntil,
  type RawResponse,
} from "@headworks/testkit";
import { RejectedDocumentError } from "#gateway.ts";
import { serving, startGateway, type TestRequest } from "../gateway-rig.ts";
import { errorOf, proxied, responding, type RouteInput } from "../route-documents.ts";

const DEPRECATION = {
  since: "Thu, 01 Jan 2026 00:00:00 GMT",
  sunset: "Fri, 31 Dec 2049 23:59:59 GMT",
  uri: "https://docs.test/v2",
};
const SAID = ["@1767225600", "Fri, 31 Dec 2049 23:59:59 GMT", '<https://docs.test/v2>; rel="deprecation"'];

const saidBy = (response: RawResponse): (string | undefined)[] =>
  ["deprecation", "sunset", "link"].map((name) => response.header(name));
const all = (response: RawResponse, name: string): string[] =>
  response.headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);

const old = (name: string, more: Partial<RouteInput> = {}): RouteInput =>
  proxied(name, `/${name}`, { service: "api", deprecation: DEPRECATION, ...more });

test("deprecation rule 1: every response of a route with the block has the three headers: proxied, redirected and respond, errors of the action included", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => {
      if (request.url === "/proxied/404") response.writeHead(404);
      if (request.url === "/proxied/304") response.writeHead(304);
      response.end();
    },
  });
  const dead = serving("dead", [1]);
  const api = serving("api", [origin.port]);
  await using gateway = await startGateway({
    upstreams: [...api.upstreams, ...dead.upstreams],
    services: [...api.services, ...dead.services],
    routes: [
      old("proxied"),
      old("dead", { service: "dead" }),
      responding("respond", "/respond", { deprecation: DEPRECATION }),
      responding("teapot", "/teapot", { deprecation: DEPRECATION, action: { type: "respond", status: 500 } }),
      responding("redirect", "/redirect", {
        deprecation: DEPRECATION,
        action: { type: "redirect", status: 308, path: "/v2" },
      }),
    ],
  });
  for (const [method, path, status] of [
    ["GET", "/proxied", 200],
    ["HEAD", "/proxied", 200],
    ["GET", "/proxied/404", 404],
    ["GET", "/proxied/304", 304],
    ["GET", "/respond", 200],
    ["HEAD", "/respond", 200],
    ["GET", "/teapot", 500],
    ["GET", "/redirect", 308],
    ["GET", "/dead", 502],
  ] as const) {
    const response = await gateway.send({ method, path });
    assert.deepEqual([response.status, ...saidBy(response)], [status, ...SAID], `${method} ${path}`);
  }
});

test("deprecation rule 3: upstream values are replaced on such a route and pass elsewhere; Link is appended after any upstream links", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => {
      response.writeHead(
        200,
        [
          ["Deprecation", "@1"],
          ["deprecation", "@2"],
          ["SUNSET", "Mon, 01 Jan 2035 00:00:00 GMT"],
          ["Link", "</next>; rel=next"],
          ["Link", "</old>; rel=deprecation"],
        ].flat(),
      );
      response.end();
    },
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [old("old"), proxied("plain", "/plain", { service: "api" })],
  });
  const replaced = await gateway.send({ path: "/old" });
  assert.deepEqual([all(replaced, "deprecation"), all(replaced, "sunset")], [[SAID[0]], [SAID[1]]]);
  assert.equal(all(replaced, "link").join(", "), `</next>; rel=next, </old>; rel=deprecation, ${SAID[2]}`);
  const passed = await gateway.send({ path: "/plain" });
  assert.deepEqual(all(passed, "deprecation"), ["@1", "@2"]);
  assert.deepEqual(all(passed, "sunset"), ["Mon, 01 Jan 2035 00:00:00 GMT"]);
});

/** Every short circuit of a deprecated route that asks for a media type; `before` is sent first, and does not matter. */
const SHORT_CIRCUITS: readonly {
  readonly what: string;
  readonly status: number;
  readonly code?: string;
  readonly request: TestRequest;
  readonly before?: TestRequest;
}[] = [
  { what: "401 from authentication", status: 401, code: "unauthorized", request: { path: "/closed" } },
  {
    what: "403",
    status: 403,
    code: "forbidden",
    request: { path: "/forbidden", fields: ["X-API-Key: spent"] },
  },
  {
    what: "429 from rate limiting",
    status: 429,
    code: "rate_limit_exceeded",
    request: { path: "/limited" },
    before: { path: "/limited" },
  },
  {
    what: "429 of a quota",
    status: 429,
    code: "quota_exceeded",
    request: { path: "/plain", fields: ["X-API-Key: spent"] },
    before: { path: "/plain", fields: ["X-API-Key: spent"] },
  },
  { what: "413 from request limits", status: 413, request: { method: "POST", path: "/small", body: "x".repeat(50) } },
  {
    what: "413 in the middle of a body",
    status: 413,
    request: {
      method: "POST",
      path: "/small",
      fields: ["Transfer-Encoding: chunked"],
      body: `32\r\n${"x".repeat(50)}\r\n0\r\n\r\n`,
    },
  },
  { what: "431 from request limits", status: 431, request: { path: "/small", fields: [`X: ${"x".repeat(2000)}`] } },
  { what: "405", status: 405, request: { method: "DELETE", path: "/closed", fields: ["X-API-Key: spent"] } },
  { what: "503 of maintenance", status: 503, code: "maintenance", request: { path: "/down" } },
];

const ACCEPT = "application/vnd.test.v1+json";

for (const { what, status, code, request, before } of SHORT_CIRCUITS) {
  test(`deprecation rule 4 and accept rule 3: ${what} has no deprecation headers, but Vary: Accept`, async () => {
    await using origin = await startOrigin();
    await using state = await temporaryDirectory();
    const versioned = (name: string, more: Partial<RouteInput> = {}): RouteInput =>
      old(name, { match: { path: { type: "prefix", value: `/${name}` }, accept: ACCEPT }, ...more });
    await using gateway = await startGateway(
      {
        ...serving("api", [origin.port]),
        consumers: [{ name: "c", credentials: [{ type: "api_key", key: "spent" }], quotas: { daily_requests: 1n } }],
        policies: [{ name: "one", rate_limits: [{ selector: ["route"], requests_per: { hour: 1 } }] }],
        routes: [
          versioned("plain"),
          versioned("closed", { auth_required: true, methods: ["GET"] }),
          versioned("forbidden", { authorization: { denied_consumers: ["c"] } }),
          versioned("limited", { policies: ["one"] }),
          versioned("small", { limits: { max_body_bytes: 10, max_header_bytes: 1000 } }),
          versioned("down", { maintenance: {} }),
        ],
      },
      { environment: { GATEWAY_STATE_DB: state.file("state.db") } },
    );
    const accepting = (asked: TestRequest): TestRequest => ({
      ...asked,
      fields: [...(asked.fields ?? []), `Accept: ${ACCEPT}`],
    });
    if (before !== undefined) {
      const passed = await gateway.send(accepting(before));
      assert.deepEqual([passed.status, ...saidBy(passed)], [200, ...SAID]);
    }
    const response = await gateway.send(accepting(request));
    assert.equal(response.status, status);
    if (code !== undefined) assert.equal(errorOf(response).code, code);
    assert.deepEqual(saidBy(response), [undefined, undefined, undefined]);
    assert.deepEqual(all(response, "vary"), ["Accept"]);
  });
}

test("deprecation rule 4: 503 shedding and CORS preflights have no deprecation headers", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => {
      if (request.url !== "/slow") response.end();
    },
  });
  const cors = { allowed_origins: ["https://a.test"] };
  await using gateway = await startGateway({
    max_concurrent_requests: 1,
    ...serving("api", [origin.port]),
    routes: [old("slow"), old("cors", { cors })],
  });
  await using client = await rawClient(gateway.port());
  await client.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  await waitUntil(() => origin.requests.length === 1);
  const shed = await gateway.send({ path: "/cors" });
  assert.deepEqual(
    [shed.status, errorOf(shed).code, ...saidBy(shed)],
    [503, "gateway_saturated", undefined, undefined, undefined],
  );
  client.reset();
  await waitUntil(async () => (await gateway.send({ path: "/cors" })).status === 200);
  const preflight = await gateway.send({
    method: "OPTIONS",
    path: "/cors",
    fields: ["Origin: https://a.test", "Access-Control-Request-Method: GET"],
  });
  assert.deepEqual([preflight.status, ...saidBy(preflight)], [204, undefined, undefined, undefined]);
  assert.equal(preflight.header("access-control-allow-origin"), "https://a.test");
});

test("deprecation rule 6: a stale sunset rejects the whole configuration at reload, the previous one keeps serving and keeps emitting its own; at startup nothing starts", async () => {
  const nowMs = { value: Date.UTC(2026, 5, 1) };
  const clock = { now: () => nowMs.value, monotonic: () => performance.now() };
  const document = (body: string) => ({
    routes: [
      responding("r", "/", {
        deprecation: { sunset: "Wed, 01 Jul 2026 00:00:00 GMT" },
        action: { type: "respond", status: 200, body },
      }),
    ],
  });
  await using gateway = await startGateway(document("one"), { clock });
  nowMs.value = Date.UTC(2026, 6, 2);
  assert.equal((await gateway.send({ path: "/" })).header("sunset"), "Wed, 01 Jul 2026 00:00:00 GMT");
  await gateway.reload(document("two"));
  const response = await gateway.send({ path: "/" });
  assert.deepEqual([response.body.toString(), response.header("sunset")], ["one", "Wed, 01 Jul 2026 00:00:00 GMT"]);
  assert.equal(gateway.gateway.generations.current?.number, 1);
  await assert.rejects(startGateway(document("three"), { clock }), RejectedDocumentError);
});

test("accept rules 1 to 4: any entry of any Accept line, in any letter case, with q=0; wildcards, none and a preflight never", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [
      proxied("v1", "/v1", {
        service: "api",
        match: { path: { type: "prefix", value: "/v1" }, accept: "  Application/VND.Test.V1+JSON " },
        cors: { allowed_origins: ["https://a.test"] },
      }),
      proxied("default", "/", { service: "api" }),
    ],
  });
  for (const [fields, status] of [
    [["Accept: application/vnd.test.v1+json"], 200],
    [["Accept: APPLICATION/vnd.TEST.v1+json;q=0"], 200],
    [["Accept: text/html, application/vnd.test.v1+json ; charset=utf-8;q=0.1, */*"], 200],
    [["Accept: text/html", "Accept: application/vnd.test.v1+json"], 200],
    [["Accept: */*"], 404],
    [["Accept: application/*"], 404],
    [["Accept: application/vnd.test.v2+json"], 404],
    [["Accept: application/vnd.test.v1+jsonx"], 404],
    [["Accept:"], 404],
    [[], 404],
  ] as const) {
    const response = await gateway.send({ path: "/v1/x", fields });
    assert.equal(response.status, status, fields.join());
    if (status === 200) assert.ok(all(response, "vary").join(", ").split(", ").includes("Accept"), fields.join());
  }
  const preflight = await gateway.send({
    method: "OPTIONS",
    path: "/v1/x",
    fields: ["Origin: https://a.test", "Access-Control-Request-Method: GET", "Accept: */*"],
  });
  assert.deepEqual([preflight.status, preflight.header("access-control-allow-origin")], [404, undefined]);
});

test("accept rule 3: Vary: Accept is folded into one line with Vary: Origin and Vary: Accept-Encoding", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => {
      response.writeHead(
        200,
        [
          ["Vary", "accept-encoding"],
          ["vary", "X-Other"],
          ["Content-Type", "application/json"],
        ].flat(),
      );
      response.end("{}".padEnd(5000));
    },
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [
      proxied("v1", "/", {
        service: "api",
        match: { path: { type: "prefix", value: "/" }, accept: ACCEPT },
        cors: { allowed_origins: ["https://a.test"] },
        compression: { algorithms: ["gzip"] },
      }),
    ],
  });
  const response = await gateway.send({
    path: "/",
    fields: [`Accept: ${ACCEPT}`, "Origin: https://a.test", "Accept-Encoding: gzip"],
  });
  const [vary, ...more] = all(response, "vary");
  assert.deepEqual(more, []);
  const members = (vary ?? "").split(", ").map((member) => member.toLowerCase());
  assert.deepEqual(members.toSorted(), ["accept", "accept-encoding", "origin", "x-other"]);
});

test("errors: a path that matches a route whose criteria do not is 404, with no fall-through and no shorter prefix", async () => {
  await using gateway = await startGateway({
    routes: [
      responding("v1", "/v1", { match: { path: { type: "prefix", value: "/v1" }, headers: { "x-v": "1" } } }),
      responding("again", "/v1", { match: { path: { type: "prefix", value: "/v1" }, headers: { "x-v": "2" } } }),
      responding("all", "/"),
    ],
  });
  for (const [fields, status] of [
    [["X-V: 1"], 200],
    [["X-V: 2"], 404],
    [["X-V: 1 "], 200],
    [["X-V: 11"], 404],
    [["X-V: 1, 2"], 404],
    [[], 404],
  ] as const) {
    assert.equal((await gateway.send({ path: "/v1/x", fields })).status, status, fields.join());
  }
  assert.equal((await gateway.send({ path: "/v2" })).status, 200);
});

test("a connection goes on after each of these answers", async () => {
  await using gateway = await startGateway({ routes: [responding("r", "/r", { auth_required: true })] });
  await using client = await rawClient(gateway.port());
  for (const [path, status] of [
    ["/r", 401],
    ["/none", 404],
    ["/r/..", 400],
  ] as const) {
    await client.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    assert.equal((await readResponse(client)).status, status);
  }
});
