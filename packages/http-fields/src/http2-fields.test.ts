import assert from "node:assert/strict";
import { test } from "node:test";
import { appendHttp2Fields, withoutPseudoFields } from "./http2-fields.ts";

test("fields for HTTP/2 are in lower case, in order, with repeats, without those of a connection", () => {
  const into = [":status", "200"];
  const fields = ["Set-Cookie", "a=1", "X-B", "One", "Connection", "close", "Keep-Alive", "timeout=5"];
  fields.push("Set-Cookie", "b=2", "Transfer-Encoding", "chunked", "Upgrade", "h2c", "Proxy-Connection", "close");
  appendHttp2Fields([...fields, "HTTP2-Settings", "AAMAAABk", "Host", "a.test"], into);
  assert.deepEqual(into, [":status", "200", "set-cookie", "a=1", "x-b", "One", "set-cookie", "b=2"]);
});

test("TE says trailers or nothing (RFC 9113, 8.2.2)", () => {
  const into: string[] = [];
  appendHttp2Fields(["TE", "trailers", "TE", "gzip", "te", "trailers, deflate"], into);
  assert.deepEqual(into, ["te", "trailers"]);
});

test("pieces of Cookie are one field where the first of them stood (RFC 9113, 8.2.3)", () => {
  const section = [":method", "GET", "cookie", "a=1", "x", "1", "cookie", "b=2", "x", "2", "cookie", "c=3"];
  assert.deepEqual(withoutPseudoFields(section), ["cookie", "a=1; b=2; c=3", "x", "1", "x", "2"]);
});
