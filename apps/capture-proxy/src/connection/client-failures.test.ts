import assert from "node:assert/strict";
import { test } from "node:test";
import type { Failure } from "#exchange/failure.ts";
import { failureResponse } from "./client-failures.ts";

const failure: Failure = {
  stage: "connect",
  side: "upstream",
  code: "UPSTREAM_REFUSED",
  message: 'h:80 <script>alert("x")</script> refused',
};

test("browsers get a page with the message escaped", () => {
  const { status, fields, body } = failureResponse(failure, ["Accept", "text/html,application/json;q=0.9"]);
  assert.equal(status, 502);
  assert.equal(fields[fields.indexOf("Content-Type") + 1], "text/html; charset=utf-8");
  assert.equal(Number(fields[fields.indexOf("Content-Length") + 1]), body.length);
  assert.doesNotMatch(body.toString(), /<script>/);
});

test("clients that prefer JSON get the same facts as JSON", () => {
  const { fields, body } = failureResponse(failure, ["accept", "application/problem+json"]);
  assert.equal(fields[fields.indexOf("Content-Type") + 1], "application/json");
  assert.deepEqual(JSON.parse(body.toString()), {
    error: failure.message,
    code: "UPSTREAM_REFUSED",
    stage: "connect",
    side: "upstream",
  });
});
