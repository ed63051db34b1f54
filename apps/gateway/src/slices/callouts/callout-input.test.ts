import assert from "node:assert/strict";
import { test } from "node:test";
import { requestFor } from "../../../test/routing/requests.ts";
import { calloutInput } from "./callout-gate.ts";

const queries: [target: string, names: string[]][] = [
  ["/", []],
  ["/?", []],
  ["/?a=1&b=2", ["a", "b"]],
  ["/?a&a=1", ["a", "a"]],
  ["/?&&=x&c=", ["c"]],
  ["/?a=b=c&%61=d", ["a", "%61"]],
];
for (const [target, names] of queries) {
  test(`of the query in ${target} the names ${names.join() || "(none)"} are told`, () => {
    assert.deepEqual(calloutInput(requestFor({ target })).query_names, names);
  });
}

test("unknown consumer, host and route are null", () => {
  const { consumer, host, route, path } = calloutInput(requestFor({ target: "/x?y" }));
  assert.deepEqual({ consumer, host, route, path }, { consumer: null, host: null, route: null, path: "/x" });
});

test("fields that may carry credentials are left out, whatever the letter case", () => {
  const fields = ["AUTHORIZATION", "a", "cookie", "b", "X-API-KEY", "c", "Referer", "http://x/?token=d", "Origin", "o"];
  assert.deepEqual(calloutInput(requestFor({ fields })).headers, { origin: "o" });
});

test("claims of a verified token are included", () => {
  const request = requestFor();
  request.consumer = {
    name: "acme",
    groups: [],
    priority: undefined,
    credential: "jwt",
    claims: { sub: "7", admin: true },
  };
  assert.deepEqual(calloutInput(request).consumer, {
    name: "acme",
    groups: [],
    credential: "jwt",
    claims: { sub: "7", admin: true },
  });
});

test("forwarded fields are included only from trusted proxies", () => {
  const fields = ["X-Forwarded-Host", "public.test", "X-Forwarded-Proto", "https"];
  assert.deepEqual(calloutInput(requestFor({ fields })).headers, {});
  assert.deepEqual(calloutInput(requestFor({ fields, trusted: ["127.0.0.1"] })).headers, {
    "x-forwarded-host": "public.test",
    "x-forwarded-proto": "https",
  });
});
