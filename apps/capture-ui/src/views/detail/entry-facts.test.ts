import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResponseData } from "@headworks/capture-contract";
import { methodColor, statusColor, statusText } from "./entry-facts.ts";

const response = (status: number, message: string | null = null) =>
  ({ status_code: status, status_message: message }) as ResponseData;

test("the status is given with its reason, sent or standard", () => {
  for (const [state, answer, tunnel, text] of [
    ["complete", response(404, "Nope"), false, "404 Nope"],
    ["complete", response(422), false, "422 Unprocessable Content"],
    ["complete", response(299), false, "299"],
    ["pending", null, false, "Waiting"],
    ["pending", null, true, "Open"],
    ["failed", null, false, "Failed"],
    ["failed", response(200, "OK"), false, "200 OK, then failed"],
    ["complete", null, true, "No response"],
  ] as const) {
    assert.equal(statusText({ state, response: answer, is_passthrough: tunnel, source: "upstream" }), text);
  }
  assert.equal(
    statusText({ state: "failed", response: response(502), is_passthrough: false, source: "slice" }),
    "Failed, answered with 502 Bad Gateway",
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
