import assert from "node:assert/strict";
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { realPlace } from "./index.ts";

test("a place has one name, through links to files, to directories, and to what is not there yet", async () => {
  await using directory = await temporaryDirectory();
  const root = realpathSync(directory.path);
  mkdirSync(join(root, "a"));
  writeFileSync(join(root, "a", "x.db"), "");
  const links = [
    ["dir", "a"],
    ["file.db", "a/x.db"],
    ["again.db", "file.db"],
    ["coming.db", "dir/later/y.db"],
  ] as const;
  for (const [name, target] of links) symlinkSync(target, join(root, name));
  const cases = [
    ["a/x.db", "a/x.db"],
    ["dir/../dir/x.db", "a/x.db"],
    ["file.db", "a/x.db"],
    ["again.db", "a/x.db"],
    ["dir/later/y.db", "a/later/y.db"],
    ["coming.db", "a/later/y.db"],
    ["none/at/all", "none/at/all"],
  ] as const;
  for (const [named, real] of cases) assert.equal(realPlace(join(root, named)), join(root, real), named);
});

test("links that lead in a circle are an error of the file system", async () => {
  await using directory = await temporaryDirectory();
  symlinkSync("two", directory.file("one"));
  symlinkSync("one", directory.file("two"));
  assert.throws(() => realPlace(directory.file("one")), { code: "ELOOP" });
});
