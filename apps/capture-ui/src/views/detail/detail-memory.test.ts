import assert from "node:assert/strict";
import { test } from "node:test";
import { neighbourTab, usableTab } from "./detail-memory.ts";

test("stepping through tabs wraps at the ends and skips hidden tabs", () => {
  const shown = ["overview", "messages", "timing"] as const;
  assert.equal(neighbourTab("messages", shown, 1), "timing");
  assert.equal(neighbourTab("timing", shown, 1), "overview");
  assert.equal(neighbourTab("overview", shown, -1), "timing");
});

test("a remembered tab that an entry lacks falls back to the first tab", () => {
  assert.equal(usableTab("cookies", ["overview", "messages"]), "overview");
  assert.equal(usableTab("messages", ["overview", "messages"]), "messages");
});
