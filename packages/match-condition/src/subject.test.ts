import assert from "node:assert/strict";
import { test } from "node:test";
import { messageSubject } from "./index.ts";

test("a URL is split as written", () => {
  const cases: readonly (readonly [url: string, expected: readonly unknown[]])[] = [
    ["https://A.test", ["https", "a.test", 443, "/", ""]],
    ["http://a.test:8080/x/../y?q=1?2#f", ["http", "a.test", 8080, "/x/../y", "q=1?2"]],
    ["http://u:p@[::1]:99/a%2Fb", ["http", "::1", 99, "/a%2Fb", ""]],
    ["WSS://a.test/?", ["wss", "a.test", 443, "/", ""]],
    ["tcp://a.test/", ["tcp", "a.test", 0, "/", ""]],
    ["/relative?a=b", ["", "", 0, "/", ""]],
    ["", ["", "", 0, "/", ""]],
  ];
  for (const [url, expected] of cases) {
    const { scheme, host, port, path, query } = messageSubject({ method: "GET", url }, null, "request");
    assert.deepEqual([scheme, host, port, path, query], expected, url);
  }
});

test("ordered fields take precedence over joined ones, and a response exists in its phase only", () => {
  const request = { method: "GET", url: "http://a.test/", headers: { a: "1" }, headers_list: [["a", "2"] as const] };
  const response = { status_code: 204, headers: { b: "3" }, body: "x" };
  const early = messageSubject(request, response, "request");
  assert.deepEqual([early.requestFields(), early.responseFields()], [["a", "2"], []]);
  assert.deepEqual([early.status, early.responseText()], [undefined, undefined]);
  const late = messageSubject(request, response, "response");
  assert.deepEqual([late.status, late.responseFields(), late.responseText()], [204, ["b", "3"], "x"]);
});

test("only text bodies without a coding are read", () => {
  const text = (body: string | null, rest: object = {}) =>
    messageSubject({ method: "POST", url: "http://a.test/", body, ...rest }, null, "request").requestText();
  const json = { headers: { "Content-Type": "application/json" } };
  assert.equal(text("a"), "a");
  assert.equal(text(null), undefined);
  assert.equal(text(""), undefined);
  assert.equal(text("a", { headers: { "Content-Encoding": "gzip" } }), undefined);
  assert.equal(text("a", { headers: { "Content-Encoding": "identity" } }), "a");
  assert.equal(text("base64:eyJhIjoxfQ==", json), '{"a":1}');
  assert.equal(text("base64:eyJhIjoxfQ=="), undefined);
  assert.equal(text("base64:/w==", json), undefined);
  assert.equal(text("base64:%%%", json), undefined);
  assert.equal(text("base64:x", { body_encoding: "utf8" }), "base64:x");
  const read = messageSubject({ method: "POST", url: "http://a.test/", body: "x" }, null, "request", () => "decoded");
  assert.equal(read.requestText(), "decoded");
});
