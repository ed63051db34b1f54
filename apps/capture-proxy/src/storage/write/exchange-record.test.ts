import assert from "node:assert/strict";
import { test } from "node:test";
import { readFields, type ResourceHints, resourceTypeOf } from "./exchange-record.ts";

test("the field size is the sum of names, values and four bytes each; the first media type counts, without parameters", () => {
  assert.deepEqual(readFields(["Host", "a.test", "content-TYPE", "Text/HTML; charset=x", "Content-Type", "b/c"]), {
    sizeBytes: 4 + 6 + 4 + (12 + 20 + 4) + (12 + 3 + 4),
    mediaType: "text/html",
  });
  assert.deepEqual(readFields([]), { sizeBytes: 0, mediaType: null });
  assert.equal(readFields(["Content-Type", " ;x"]).mediaType, null);
});

test("the resource type comes from the protocol, then the response type, the path and the request type", () => {
  const plain: ResourceHints = {
    scheme: "https",
    method: "GET",
    path: "/",
    status: 200,
    requestType: null,
    responseType: null,
    passthrough: false,
  };
  const cases: readonly [Partial<ResourceHints>, string][] = [
    [{ passthrough: true, responseType: "text/html" }, "tunnel"],
    [{ method: "CONNECT" }, "tunnel"],
    [{ scheme: "wss" }, "websocket"],
    [{ status: 101 }, "websocket"],
    [{ requestType: "application/grpc+proto", responseType: "text/html" }, "grpc"],
    [{ responseType: "application/json", path: "/x.png" }, "json"],
    [{ responseType: "application/octet-stream", path: "/font.woff2?v=1" }, "font"],
    [{ responseType: "application/octet-stream", path: "/data" }, "binary"],
    [{ path: "/app.js" }, "script"],
    [{ requestType: "application/x-www-form-urlencoded", path: "/send" }, "form"],
    [{}, "other"],
  ];
  for (const [hints, expected] of cases) {
    assert.equal(resourceTypeOf({ ...plain, ...hints }), expected, JSON.stringify(hints));
  }
});
