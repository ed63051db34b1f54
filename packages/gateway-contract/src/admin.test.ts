import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation } from "@headworks/contract-kit";
import { operationProblems } from "@headworks/contract-kit/server";
import { adminOperations } from "./admin.ts";

test("every schema is one by JSON Schema 2020-12", () => {
  for (const [name, operation] of Object.entries(adminOperations) as [string, Operation][]) {
    assert.deepEqual(operationProblems(operation), [], name);
  }
});
