import assert from "node:assert/strict";
import { test } from "node:test";
import { ERRORS } from "@headworks/capture-contract";
import type { ErrorCode } from "@headworks/capture-contract";
import { ApiError, notFound, validationError } from "./api-error.ts";

test("every code has its own status and a sentence without a full stop", () => {
  for (const [code, { status, message }] of Object.entries(ERRORS)) {
    const error = new ApiError(code as ErrorCode);
    assert.equal(error.status, status);
    assert.equal(error.message, message);
    assert.match(message, /^[A-Z].*[^.]$/);
  }
});

test("the error of a missing thing names it but does not repeat the id", () => {
  assert.throws(
    () => notFound("block entry", "<script>"),
    (error) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.code, "NOT_FOUND");
      assert.equal(error.message, "Block entry not found");
      return true;
    },
  );
});

test("a validation error's message has the first field, and its details have all", () => {
  const details = [
    { path: "body/pattern", message: "is required" },
    { path: "query/limit", message: "must be <= 1000" },
  ];
  const error = validationError(details);
  assert.equal(error.status, 400);
  assert.equal(error.message, "body/pattern: is required");
  assert.deepEqual(error.details, details);
});
