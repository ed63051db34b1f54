import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiFailure } from "@headworks/contract-kit/client";
import { fieldErrors } from "./field-errors.ts";

const known = ["pattern", "upstream_proxy.port", "ignored_domains"];
const refusal = (details: unknown) => new ApiFailure(400, "VALIDATION_ERROR", "The request is not valid", details);

test("each detail goes to its field, however the service writes the path", () => {
  for (const [path, field] of [
    ["pattern", "pattern"],
    ["body.pattern", "pattern"],
    ["/body/upstream_proxy/port", "upstream_proxy.port"],
    ["ignored_domains.3", "ignored_domains"],
    ["body.ignored_domains[0]", "ignored_domains"],
  ] as const) {
    assert.deepEqual(
      fieldErrors(refusal([{ path, message: "is wrong" }]), known),
      { fields: { [field]: "Is wrong" }, general: null },
      path,
    );
  }
});

test("errors of no known field are general", () => {
  assert.equal(fieldErrors(refusal([{ path: "other", message: "is wrong" }]), known).general, "other: is wrong");
  assert.equal(fieldErrors(refusal(undefined), known).general, "The request is not valid");
  assert.equal(fieldErrors(refusal([null, { message: 3 }]), known).general, "The request is not valid");
  assert.equal(fieldErrors(new Error("lost"), known).general, "lost");
});
