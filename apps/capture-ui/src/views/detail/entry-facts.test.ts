import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResponseData } from "@headworks/capture-contract";
import { mayStream, methodColor, statusColor, statusText } from "./entry-facts.ts";

const response = (status: number, message: string | null = null) =>
  ({ status_code: status, status_message: message }) as ResponseData;

test("the status is shown with the received or the standard reason", () => {
  for (const [state, reply, tunnel, text] of [
    ["complete", response(404, "Nope"), false, "404 Nope"],
    ["complete", response(422), false, "422 Unprocessable Content"],
    ["complete", response(299), false, "299"],
    ["pending", null, false, "Waiting"],
    ["pending", null, true, "Open"],
    ["failed", null, false, "Failed"],
    ["failed", response(200, "OK"), false, "200 OK, then failed"],
    ["closed", response(200, "OK"), false, "200 OK, closed by the client"],
    ["complete", null, true, "No response"],
  ] as const) {
    assert.equal(statusText({ state, response: reply, is_passthrough: tunnel, source: "upstream" }), text);
  }
  assert.equal(
    statusText({ state: "failed", response: response(502), is_passthrough: false, source: "slice" }),
    "Failed, Weir responded with 502 Bad Gateway",
  );
});

test("every outcome and every method has a colour", () => {
  for (const status of [101, 200, 304, 404, 503]) {
    assert.match(statusColor({ state: "complete", response: response(status) }), /^var\(--/u);
  }
  assert.equal(statusColor({ state: "failed", response: response(200) }), "var(--server)");
  for (const method of ["GET", "POST", "PATCH", "DELETE", "CONNECT", "odd"]) {
    assert.match(methodColor(method), /^var\(--/u);
  }
});

test("frames are requested for entries that may have some", () => {
  const entry = (url: string, status: number | null, type: string | null) =>
    ({
      request: { url, path: new URL(url).pathname },
      response: status === null ? null : { status_code: status, content_type: type },
    }) as Parameters<typeof mayStream>[0];
  for (const [url, status, type, expected] of [
    ["https://a/x", 200, "text/event-stream; charset=utf-8", true],
    ["https://a/x", 200, "application/x-ndjson", true],
    ["https://a/x", 200, "application/jsonl", true],
    ["https://a/x", 200, "application/geo+json-seq", true],
    ["https://a/x", 200, "application/grpc-web+proto", true],
    ["https://a/x", 101, null, true],
    ["wss://a/x", 101, null, true],
    ["https://a/models/g:streamGenerateContent", 200, "application/json", true],
    ["https://a/x", 200, "application/json", false],
    ["https://a/x", 200, null, false],
    ["https://a/x", null, null, false],
  ] as const) {
    assert.equal(mayStream(entry(url, status, type)), expected, `${url} ${type}`);
  }
});
