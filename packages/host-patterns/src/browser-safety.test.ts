import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

/** The modules that `entry` reaches through relative imports and exports, and everything else they name. */
function importsFrom(entry: URL): { modules: Set<string>; outside: string[] } {
  const modules = new Set<string>();
  const outside: string[] = [];
  const queue = [entry];
  for (const url of queue) {
    if (modules.has(url.href)) continue;
    modules.add(url.href);
    for (const [, specifier = ""] of readFileSync(url, "utf8").matchAll(/(?:from|import)\s*\(?\s*["']([^"']+)["']/g)) {
      if (specifier.startsWith(".")) queue.push(new URL(specifier, url));
      else outside.push(`${url.pathname.split("/").at(-1)}: ${specifier}`);
    }
  }
  return { modules, outside };
}

test("the main entry needs nothing that a browser lacks", () => {
  const { modules, outside } = importsFrom(new URL("./index.ts", import.meta.url));
  assert.ok(modules.size > 4, "the walk follows imports");
  assert.deepEqual(outside, []);
  for (const module of modules) assert.doesNotMatch(readFileSync(new URL(module), "utf8"), /\b(?:Buffer|process)\b/);
});
