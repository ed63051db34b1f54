import assert from "node:assert/strict";
import { test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

test("transforms: headers and query of the request are changed after the rewrite, headers of the answer before the client has them", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => response.writeHead(200, { Server: "secret", "X-Old": "kept" }).end("ok"),
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [
      proxied("api", "/v1", {
        action: { type: "proxy", rewrite: { type: "strip_prefix" } },
        transforms: {
          request: {
            headers: { set: { "X-Set": "yes" }, remove: ["X-Gone"], rename: { "X-From": "X-To" } },
            query: { set: { tenant: "a b" }, remove: ["debug"] },
          },
          response: { headers: { remove: ["server"], rename: { "x-old": "X-New" }, add: { "X-Added": "1" } } },
        },
      }),
      proxied("plain", "/plain", { service: "api" }),
    ],
  });
  const fields = ["X-Gone: 1", "X-Set: mine", "x-from: value", "X-Forwarded-For: 6.6.6.6"];
  const response = await gateway.send({ path: "/v1/x?%64ebug=1&q=%2F&tenant=evil", fields });
  assert.deepEqual(
    ["server", "x-old", "x-new", "x-added"].map((name) => response.header(name)),
    [undefined, undefined, "kept", "1"],
  );
  const [seen] = origin.requests;
  assert.equal(seen?.url, "/x?q=%2F&tenant=a%20b");
  const value = (name: string): string[] =>
    (seen?.rawHeaders ?? []).filter((_text, at, all) => at % 2 === 1 && all[at - 1]?.toLowerCase() === name);
  assert.deepEqual([value("x-set"), value("x-gone"), value("x-from"), value("x-to")], [["yes"], [], [], ["value"]]);
  await gateway.send({ path: "/plain?debug=1", fields });
  assert.equal(origin.requests[1]?.url, "/plain?debug=1", "other routes are as they were");
});

test("transforms: values of headers may be references to secrets, on the way to the upstream and to the client", async () => {
  await using origin = await startOrigin({ handler: (_request, response) => response.end("ok") });
  await using gateway = await startGateway(
    {
      ...serving("api", [origin.port]),
      routes: [
        proxied("api", "/", {
          transforms: {
            request: { headers: { set: { Authorization: "${UPSTREAM_AUTH}" }, add: { "X-Key": "${UPSTREAM_KEY}" } } },
            response: { headers: { set: { "X-Set": "${UPSTREAM_KEY}" }, add: { "X-Empty": "" } } },
          },
        }),
      ],
    },
    { environment: { UPSTREAM_AUTH: "Basic dTpw", UPSTREAM_KEY: "k-1" } },
  );
  const response = await gateway.send({ path: "/" });
  const seen = origin.requests[0]?.rawHeaders ?? [];
  assert.deepEqual(
    ["Authorization", "X-Key"].map((name) => seen[seen.indexOf(name) + 1]),
    ["Basic dTpw", "k-1"],
  );
  assert.deepEqual([response.header("x-set"), response.header("x-empty")], ["k-1", ""]);
});

test("transforms: text beyond ASCII is UTF-8 on the wire, as a route's own answers and criteria have it", async () => {
  await using origin = await startOrigin({ handler: (_request, response) => response.end("ok") });
  const changes = { headers: { set: { "X-Cup": "é☕" }, add: { "X-More": "ü" } } };
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/", { transforms: { request: changes, response: changes } })],
  });
  const response = await gateway.send({ path: "/" });
  const text = (latin1: string | undefined): string => Buffer.from(latin1 ?? "", "latin1").toString();
  assert.deepEqual([text(response.header("x-cup")), text(response.header("x-more"))], ["é☕", "ü"]);
  const seen = origin.requests[0]?.rawHeaders ?? [];
  assert.deepEqual(
    ["X-Cup", "X-More"].map((name) => text(seen[seen.indexOf(name) + 1])),
    ["é☕", "ü"],
  );
});
