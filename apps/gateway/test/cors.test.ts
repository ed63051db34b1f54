import assert from "node:assert/strict";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import { startOrigin, type Origin, type RawResponse } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

type CorsInput = NonNullable<NonNullable<DocumentInput["routes"]>[number]["cors"]>;

const crossOrigin = (answer: RawResponse): Record<string, string> =>
  Object.fromEntries(
    answer.headers
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
    const answer = await gateway.send({
      method: "OPTIONS",
      path: "/x",
      fields: [
        `Origin: ${from}`,
        `Access-Control-Request-Method: ${method}`,
        ...(headers === undefined ? [] : [`Access-Control-Request-Headers: ${headers}`]),
      ],
    });
    assert.deepEqual([answer.status, answer.body.length, crossOrigin(answer)], [204, 0, expected], what);
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
    const answer = await gateway.send({ method: "OPTIONS", path: "/", fields });
    assert.equal(answer.header("access-control-allow-methods"), expected);
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

test("cors: with * every origin gets *, and gateway refusals carry no CORS headers", async () => {
  await using origin = await startOrigin();
  await using gateway = await gatewayFor(
    origin,
    { allowed_origins: ["*"] },
    { auth_required: false, methods: ["GET"] },
  );
  const fields = ["Origin: null"];
  const answer = await gateway.send({ path: "/", fields });
  assert.deepEqual(crossOrigin(answer), { "access-control-allow-origin": "*", vary: "Origin" });
  const refusal = await gateway.send({ method: "DELETE", path: "/", fields });
  assert.deepEqual([refusal.status, crossOrigin(refusal)], [405, {}]);
});

test("cors: a failure of the action itself carries CORS headers, so that a page can read what went wrong", async () => {
  await using gateway = await startGateway({
    ...serving("api", [1]),
    routes: [proxied("api", "/", { cors: { allowed_origins: ["https://a.test"] } })],
  });
  const answer = await gateway.send({ path: "/", fields: ["Origin: https://a.test"] });
  assert.deepEqual([answer.status, answer.header("access-control-allow-origin")], [502, "https://a.test"]);
});
