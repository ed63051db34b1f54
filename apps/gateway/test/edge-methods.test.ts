import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";
import { errorOf, proxied, responding } from "./route-documents.ts";

const asking = ["Origin: https://a.test", "Access-Control-Request-Method: PUT"];
const open = { allowed_origins: ["https://a.test"] };

test("methods: a method that is not on the allowlist is 405 with Allow and never reaches the upstream", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/", { methods: ["GET", "post"] })],
  });
  for (const method of ["DELETE", "PUT", "get", "HEAD", "OPTIONS", "TRACE"]) {
    const response = await gateway.send({ method, path: "/x", fields: asking });
    assert.deepEqual([response.status, response.header("allow")], [405, "GET, POST"], method);
    if (method !== "HEAD") assert.equal(errorOf(response).code, "method_not_allowed");
  }
  assert.equal(origin.requests.length, 0);
  assert.equal((await gateway.send({ path: "/x" })).status, 200);
});

test("methods: preflights are exempt, but only where the gateway answers them itself", async () => {
  await using gateway = await startGateway({
    routes: [
      responding("with", "/with", { methods: ["GET"], cors: open }),
      responding("bare", "/bare", { methods: ["GET"] }),
    ],
  });
  assert.equal((await gateway.send({ method: "OPTIONS", path: "/with", fields: asking })).status, 204);
  assert.equal((await gateway.send({ method: "OPTIONS", path: "/with" })).status, 405);
  assert.equal((await gateway.send({ method: "OPTIONS", path: "/bare", fields: asking })).status, 405);
});

test("a 204 has no Content-Length, whatever its upstream says (RFC 9110, 8.6); what HEAD and 304 have describes a body", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => {
      const status = Number(request.url?.slice(1));
      response.socket?.end(`HTTP/1.1 ${status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    },
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("all", "/", { service: "api" })],
  });
  const lengthOf = async (path: string, method = "GET"): Promise<string | undefined> =>
    (await gateway.send({ path, method })).header("content-length");
  assert.deepEqual(
    [await lengthOf("/204"), await lengthOf("/304"), await lengthOf("/200", "HEAD")],
    [undefined, "0", "0"],
  );
});

test("maintenance: 503 with Retry-After, before the allowlist, and without asking the upstream", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [
      proxied("plain", "/plain", { service: "api", maintenance: {} }),
      proxied("told", "/told", {
        service: "api",
        methods: ["GET"],
        maintenance: { retry_after_secs: 5, message: "Back at nine" },
      }),
    ],
  });
  for (const [path, method, retryAfter, message] of [
    ["/plain", "GET", "60", "route under maintenance"],
    ["/told", "GET", "5", "Back at nine"],
    ["/told", "DELETE", "5", "Back at nine"],
  ] as const) {
    const response = await gateway.send({ method, path });
    const error = errorOf(response);
    assert.deepEqual(
      [response.status, response.header("retry-after"), error.code, error.message],
      [503, retryAfter, "maintenance", message],
    );
  }
  assert.equal(origin.requests.length, 0);
});

test("maintenance: preflights are answered, and the 503 carries CORS headers", async () => {
  await using gateway = await startGateway({ routes: [responding("r", "/", { maintenance: {}, cors: open })] });
  const preflight = await gateway.send({ method: "OPTIONS", path: "/", fields: asking });
  assert.deepEqual([preflight.status, preflight.header("access-control-allow-origin")], [204, "https://a.test"]);
  assert.equal(preflight.headers.filter(([name]) => /^access-control-allow-origin$/i.test(name)).length, 1);
  const response = await gateway.send({ path: "/", fields: asking });
  assert.deepEqual(
    [response.status, response.header("access-control-allow-origin"), response.header("vary")],
    [503, "https://a.test", "Origin"],
  );
});
