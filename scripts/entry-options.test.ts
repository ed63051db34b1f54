import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { entryOptions } from "./entry-options.ts";
import { repositoryRoot } from "./source-tree.ts";

const WEIR = entryOptions(join(repositoryRoot, "apps/capture-proxy/bin/weir.js"));
const SLUICE = entryOptions(join(repositoryRoot, "apps/gateway/bin/sluice.js"));

test("both services have Node options in their first line, Sluice all of Weir's except two", () => {
  assert.ok(WEIR.length > 1);
  assert.deepEqual(
    WEIR.filter((option) => !SLUICE.includes(option)),
    ["--invocation-count-for-turbofan=500", "--no-memory-reducer"],
    "decisions 030 and 031",
  );
});

test("docs/gateway/deploy.md starts Sluice with the options of its first line, in the unit and in the container", () => {
  const page = readFileSync(join(repositoryRoot, "docs/gateway/deploy.md"), "utf8");
  const starts = page.split("\n").filter((line) => /^(?:ExecStart=|ENTRYPOINT )/u.test(line));
  assert.equal(starts.length, 2);
  for (const line of starts) assert.deepEqual(line.match(/--[^\s"]+/gu), SLUICE, line);
});
