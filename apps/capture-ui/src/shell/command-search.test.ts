import assert from "node:assert/strict";
import { test } from "node:test";
import { findCommands, matchScore, type Command } from "./command-search.ts";

const command = (label: string, words?: string): Command => ({
  id: label,
  label,
  run: () => undefined,
  ...(words === undefined ? {} : { words }),
});

test("every typed word must occur", () => {
  assert.equal(matchScore("export har", "Export all requests (HAR)") > 0, true);
  assert.equal(matchScore("export pdf", "Export all requests (HAR)"), 0);
});

test("matches at word starts rank first, and labels before search words", () => {
  const found = findCommands("re", [
    command("Compare", ""),
    command("Show more"),
    command("Record"),
    command("Dark", "reset"),
    command("Do the rest"),
  ]);
  assert.deepEqual(
    found.map(({ label }) => label),
    ["Record", "Do the rest", "Compare", "Show more", "Dark"],
  );
});

test("an empty search returns everything in order", () => {
  const all = [command("b"), command("a")];
  assert.deepEqual(findCommands("  ", all), all);
});
