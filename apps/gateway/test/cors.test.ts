import assert from "node:assert/strict";
import { test } from "node:test";
import type { Match } from "@headworks/gateway-contract";
import { startOrigin, startRawServer, type Origin, type RawResponse } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied, responding, type RouteInput } from "./route-documents.ts";

type CorsInput = NonNullable<RouteInput["cors"]>;

const crossOrigin = (response: RawResponse): Record<string, string> =>
  Object.fromEntries(
    response.headers
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => name.startsWith("access-control-") || name === "vary"),
  );

const PREFLIGHT_VARY = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";
const block: CorsInput = {
  allowed_origins: ["https://A.test:443", "http://b.test:8080"],
  allowed_methods: ["GET", "put"],
  allowed_headers: ["X-One", "Content-Type"],
  expose_headers: ["X-Seen", "X-Too"],
  allow_credentials: true,
  max_age_secs: 0,
};

async function gatewayFor(origin: Origin, cors: CorsInput, more = {}): Promise<TestGateway> {
  return await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/", { cors, auth_required: true, ...more })],
  });
}

const refused = { vary: PREFLIGHT_VARY };
const allowed = (origin: string): Record<string, string> => ({
  "access-control-allow-origin": origin,
  "access-control-allow-credentials": "true",
  "access-control-allow-methods": "GET, PUT",
  "access-control-allow-headers": "X-One, Content-Type",
  "access-control-max-age": "0",
  vary: PREFLIGHT_VARY,
});

test("cors preflight: 204 by the gateway before authentication, never proxied; refused policy = 204 with no CORS headers", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(origin, block);
  for (const [what, fields, expected] of [
    ["an allowed one", ["https://a.test", "PUT", "x-one,CONTENT-TYPE"], allowed("https://a.test")],
    ["no headers asked", ["http://b.test:8080", "GET"], allowed("http://b.test:8080")],
    ["the origin in another spelling, echoed as it came", ["HTTPS://A.TEST", "GET"], allowed("HTTPS://A.TEST")],
    ["another origin", ["https://evil.test", "GET"], refused],
    ["a suffix of an origin", ["https://a.test.evil.test", "GET"], refused],
    ["another port", ["https://a.test:8443", "GET"], refused],
    ["another scheme", ["http://a.test", "GET"], refused],
    ["the origin null", ["null", "GET"], refused],
    ["another method", ["https://a.test", "DELETE"], refused],
    ["a method in lower case", ["https://a.test", "put"], refused],
    ["another header", ["https://a.test", "PUT", "X-One, X-Two"], refused],
  ] as const) {
    const [from, method, headers] = fields;
    const response = await gateway.send({
      method: "OPTIONS",
      path: "/x",
      fields: [
        `Origin: ${from}`,
        `Access-Control-Request-Method: ${method}`,
        ...(headers === undefined ? [] : [`Access-Control-Request-Headers: ${headers}`]),
      ],
    });
    assert.deepEqual([response.status, response.body.length, crossOrigin(response)], [204, 0, expected], what);
  }
  assert.equal(origin.requests.length, 0);
});

test("cors preflight: without allowed_methods, those of the route are allowed, and all others would be refused", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(origin, { allowed_origins: ["*"] }, { methods: ["GET", "HEAD"] });
  for (const [method, expected] of [
    ["GET", "GET, HEAD"],
    ["PUT", undefined],
  ] as const) {
    const fields = ["Origin: http://a.test", `Access-Control-Request-Method: ${method}`];
    const response = await gateway.send({ method: "OPTIONS", path: "/", fields });
    assert.equal(response.header("access-control-allow-methods"), expected);
  }
});

test("cors: an OPTIONS that is no preflight goes the way of every request", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(origin, block, { auth_required: false });
  assert.equal((await gateway.send({ method: "OPTIONS", path: "/", fields: ["Origin: https://a.test"] })).status, 200);
  assert.equal(origin.requests.length, 1);
});

test("cors actual responses: origin echo, credentials, expose, Vary: Origin folded; the upstream's own fields are replaced", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => {
      response.setHeader("Vary", ["Accept-Language", "origin"]);
      response.setHeader("Access-Control-Allow-Origin", "*");
      response.setHeader("ACCESS-CONTROL-ALLOW-METHODS", "DELETE");
      response.end("ok");
    },
  });
  await using gateway = await gatewayFor(origin, block, { auth_required: false });
  const from = async (...fields: string[]): Promise<Record<string, string>> =>
    crossOrigin(await gateway.send({ path: "/", fields }));
  assert.deepEqual(await from("Origin: https://a.test"), {
    "access-control-allow-origin": "https://a.test",
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "X-Seen, X-Too",
    vary: "Accept-Language, origin",
  });
  assert.deepEqual(await from("Origin: https://evil.test"), { vary: "Accept-Language, origin" });
  assert.deepEqual(await from(), { vary: "Accept-Language, origin" });
});

test("cors: with * every origin gets *", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(origin, { allowed_origins: ["*"] }, { auth_required: false });
  const response = await gateway.send({ path: "/", fields: ["Origin: null"] });
  assert.deepEqual(crossOrigin(response), { "access-control-allow-origin": "*", vary: "Origin" });
});

/** The preflight of a request by a page of https://a.test, as browsers send it: without credentials, with any Accept. */
async function preflight(
  gateway: TestGateway,
  path: string,
  method: string,
  headers?: string,
): Promise<Record<string, string | number>> {
  const fields = ["Origin: https://a.test", `Access-Control-Request-Method: ${method}`, "Accept: */*"];
  if (headers !== undefined) fields.push(`Access-Control-Request-Headers: ${headers}`);
  const response = await gateway.send({ method: "OPTIONS", path, fields });
  return { status: response.status, ...crossOrigin(response) };
}

const EVERY = { allowed_origins: ["https://a.test"], allowed_methods: ["*"], allowed_headers: ["*"] };
const ECHO = { status: 204, "access-control-allow-origin": "https://a.test", vary: PREFLIGHT_VARY };
const ALL = "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS";

test("cors preflight: * in allowed_headers and allowed_methods allows the asked names, Authorization too", async () => {
  await using gateway = await startGateway({
    routes: [
      responding("all", "/all", { cors: EVERY }),
      responding("some", "/some", { cors: EVERY, methods: ["GET", "PURGE"] }),
      responding("headers", "/headers", { cors: { ...EVERY, allowed_methods: ["GET"], allow_credentials: false } }),
    ],
  });
  for (const [path, method, headers, expected] of [
    ["/all", "PURGE", "authorization, X-Any", ["PURGE", "authorization, X-Any"]],
    ["/all", "GET", undefined, ["GET", undefined]],
    ["/all", "GET", " , a,, b", ["GET", "a, b"]],
    ["/some", "PURGE", "authorization", ["GET, PURGE", "authorization"]],
    ["/headers", "GET", "authorization", ["GET", "authorization"]],
  ] as const) {
    const [methods, names] = expected;
    assert.deepEqual(await preflight(gateway, path, method, headers), {
      ...ECHO,
      "access-control-allow-methods": methods,
      ...(names === undefined ? {} : { "access-control-allow-headers": names }),
    });
  }
  const refusedToo = { status: 204, vary: PREFLIGHT_VARY };
  for (const [path, method, headers] of [
    ["/some", "PUT", undefined],
    ["/headers", "PUT", undefined],
    ["/all", "GET", "x y"],
    ["/all", "GET", "a, <b>"],
    ["/all", "G T", undefined],
  ] as const) {
    assert.deepEqual(await preflight(gateway, path, method, headers), refusedToo, `${method} ${headers}`);
  }
});

test("cors preflight: a route answers it where it would take the request that comes then, whatever it asks of requests", async () => {
  const cors = { allowed_origins: ["https://a.test"], allowed_headers: ["x-version", "x-other"] };
  const at = (path: string, more: Partial<Match>): Partial<RouteInput> => ({
    cors,
    match: { path: { type: "prefix", value: path }, ...more },
  });
  await using gateway = await startGateway({
    consumers: [{ name: "c", credentials: [{ type: "api_key", key: "k" }] }],
    routes: [
      responding("methods", "/", at("/methods", { methods: ["GET", "POST"] })),
      responding("header", "/", at("/header", { headers: { "x-version": "2" } })),
      responding("cookie", "/", at("/cookie", { cookies: [{ name: "a" }] })),
      responding("query", "/", at("/query", { query: [{ name: "v", value: "2" }] })),
      responding("host", "/", at("/host", { host: "gateway.test" })),
      responding("other", "/", at("/other", { host: "other.test" })),
      responding("shut", "/", { ...at("/shut", {}), auth_required: true, maintenance: {} }),
      responding("bare", "/", { match: { path: { type: "prefix", value: "/bare" }, methods: ["GET"] } }),
      responding("accept", "/", at("/accept", { accept: "application/vnd.x+json" })),
    ],
  });
  const allowedHeaders = { "access-control-allow-headers": "x-version, x-other" };
  for (const [path, method, headers, methods] of [
    ["/methods", "POST", undefined, "GET, POST"],
    ["/header", "GET", "X-Other, X-Version", ALL],
    ["/cookie", "GET", undefined, ALL],
    ["/query?v=2", "GET", undefined, ALL],
    ["/host", "GET", undefined, ALL],
    ["/shut", "PUT", undefined, ALL],
  ] as const) {
    const expected = { ...ECHO, ...allowedHeaders, "access-control-allow-methods": methods };
    assert.deepEqual(await preflight(gateway, path, method, headers), expected, path);
  }
  for (const [path, method, headers] of [
    ["/methods", "PUT", undefined],
    ["/header", "GET", undefined],
    ["/header", "GET", "x-versions"],
    ["/query?v=3", "GET", undefined],
    ["/other", "GET", undefined],
    ["/bare", "GET", undefined],
    ["/accept", "GET", "accept"],
  ] as const) {
    assert.deepEqual(await preflight(gateway, path, method, headers), { status: 404 }, `${path} ${method}`);
  }
  // A preflight does not carry the fields that it asks for.
  assert.equal(
    (await gateway.send({ method: "OPTIONS", path: "/methods", fields: ["Origin: https://a.test"] })).status,
    404,
  );
});

test("cors: what the gateway itself says on a route can be read by pages of its origins: 401, 404, 405, 413, 429, 431, 502, 503, 504", async () => {
  await using silent = await startRawServer(async (connection) => void (await connection.closed));
  const cors = { allowed_origins: ["https://a.test"], expose_headers: ["X-RateLimit-Limit"] };
  const documents = [
    serving("dead", [1]),
    serving("late", [silent.port], { timeouts: { read_ms: 50 } }),
    serving("broken", [1], { breaker: { consecutive_failures: 1 } }),
  ];
  const route = (name: string, more: Partial<RouteInput>): RouteInput =>
    responding(name, `/${name}`, { cors, ...more });
  const proxy: Partial<RouteInput> = { action: { type: "proxy" } };
  await using gateway = await startGateway({
    upstreams: documents.flatMap(({ upstreams }) => upstreams),
    services: documents.flatMap(({ services }) => services),
    consumers: [{ name: "c", credentials: [{ type: "api_key", key: "k" }] }],
    policies: [{ name: "once", rate_limits: [{ selector: ["route"], requests_per: { hour: 1 } }] }],
    routes: [
      route("auth", { auth_required: true }),
      route("ip", { authorization: { ip_acl: { allow: ["192.0.2.1"], default: "deny" } } }),
      route("miss", { match: { path: { type: "prefix", value: "/miss" }, headers: { "x-a": "1" } } }),
      route("methods", { methods: ["PUT"] }),
      route("small", { limits: { max_body_bytes: 1, max_header_count: 4 } }),
      route("limited", { policies: ["once"] }),
      route("down", { maintenance: {} }),
      route("dead", { ...proxy, service: "dead" }),
      route("late", { ...proxy, service: "late" }),
      route("broken", { ...proxy, service: "broken" }),
    ],
  });
  await gateway.send({ path: "/limited" });
  await gateway.send({ path: "/broken" });
  for (const [status, path, fields = [], body = ""] of [
    [401, "/auth"],
    [403, "/ip"],
    [404, "/miss"],
    [405, "/methods"],
    [413, "/small", [], "too long"],
    [431, "/small", ["A: 1", "B: 2", "C: 3"]],
    [429, "/limited"],
    [503, "/down"],
    [502, "/dead"],
    [504, "/late"],
    [503, "/broken"],
  ] as const) {
    for (const [origin, expected] of [
      ["https://a.test", { "access-control-allow-origin": "https://a.test" }],
      ["https://evil.test", {}],
    ] as const) {
      const response = await gateway.send({ path, fields: [`Origin: ${origin}`, ...fields], body });
      assert.equal(response.status, status, path);
      const { vary, ...said } = crossOrigin(response);
      const exposed = origin === "https://a.test" ? { "access-control-expose-headers": "X-RateLimit-Limit" } : {};
      assert.deepEqual([said, vary], [{ ...expected, ...exposed }, "Origin"], `${status} to ${origin}`);
    }
  }
  const nowhere = await gateway.send({ path: "/nowhere", fields: ["Origin: https://a.test"] });
  assert.deepEqual([nowhere.status, crossOrigin(nowhere)], [404, {}]);
});

test("cors: a failure of the action itself carries CORS headers, so that a page can read what went wrong", async () => {
  await using gateway = await startGateway({
    ...serving("api", [1]),
    routes: [proxied("api", "/", { cors: { allowed_origins: ["https://a.test"] } })],
  });
  const response = await gateway.send({ path: "/", fields: ["Origin: https://a.test"] });
  assert.deepEqual([response.status, response.header("access-control-allow-origin")], [502, "https://a.test"]);
});
