import assert from "node:assert/strict";
import { test } from "node:test";
import { neighbourTab, usableTab } from "./detail-memory.ts";

test("stepping through tabs goes round at the ends and skips tabs that are not there", () => {
  const shown = ["overview", "messages", "timing"] as const;
  assert.equal(neighbourTab("messages", shown, 1), "timing");
  assert.equal(neighbourTab("timing", shown, 1), "overview");
  assert.equal(neighbourTab("overview", shown, -1), "timing");
});

test("a remembered tab that an entry does not have falls back to the first", () => {
  assert.equal(usableTab("cookies", ["overview", "messages"]), "overview");
  assert.equal(usableTab("messages", ["overview", "messages"]), "messages");
});
