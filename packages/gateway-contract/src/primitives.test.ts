import assert from "node:assert/strict";
import { test } from "node:test";
import { DocumentSchema } from "./document.ts";
import { MAX_MS } from "./primitives.ts";

/** Every field of the schema whose name says milliseconds, with the highest number it may have. */
function* durations(schema: unknown, path = ""): Generator<readonly [string, unknown]> {
  if (typeof schema !== "object" || schema === null) return;
  for (const [name, member] of Object.entries(schema)) {
    if (name.endsWith("_ms")) yield [`${path}/${name}`, (member as { maximum?: number }).maximum];
    yield* durations(member, `${path}/${name}`);
  }
}

test("no duration of a document is longer than a timer can wait", () => {
  const found = [...durations(DocumentSchema)];
  assert.ok(found.length > 20, `${found.length} fields`);
  for (const [path, maximum] of found) assert.ok(typeof maximum === "number" && maximum <= MAX_MS, path);
  assert.ok(MAX_MS < 2 ** 31 - 1);
});
