import assert from "node:assert/strict";
import { mkdirSync, realpathSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { canonicalPath, makeDirectory, makeDirectorySync } from "./directories.ts";

const MAKERS = [
  ["makeDirectory", makeDirectory],
  ["makeDirectorySync", async (path: string, mode?: number) => await Promise.resolve(makeDirectorySync(path, mode))],
] as const;

for (const [how, make] of MAKERS) {
  test(`${how}: missing directories are created with mode 0700, existing ones keep theirs`, async () => {
    await using directory = await temporaryDirectory();
    const there = directory.file("there");
    await make(there, 0o755);
    await make(join(there, "a", "b", "..", "c"));
    await make(join(there, "a", "c"));
    const modes = [there, join(there, "a"), join(there, "a", "c")].map((path) => statSync(path).mode & 0o777);
    assert.deepEqual(modes, [0o755, 0o700, 0o700]);
    symlinkSync(there, directory.file("link"));
    await make(directory.file("link"));
    await make(directory.file("link/a/d"));
    assert.ok(statSync(join(there, "a", "d")).isDirectory());
  });

  test(`${how}: a file at the path or above it is an error of the file system`, async () => {
    await using directory = await temporaryDirectory();
    writeFileSync(directory.file("file"), "");
    await assert.rejects(async () => await make(directory.file("file")), { code: "EEXIST" });
    await assert.rejects(async () => await make(directory.file("file/below/it")), { code: "ENOTDIR" });
    symlinkSync(directory.file("nowhere"), directory.file("link"));
    await assert.rejects(async () => await make(directory.file("link")), { code: "EEXIST" });
  });

  test(`${how}: a directory that cannot be created is an error, not an endless loop`, async (context) => {
    if (process.platform !== "linux") return context.skip("no /proc");
    await assert.rejects(async () => await make("/proc/headworks/never/made"), { code: "ENOENT" });
  });

  test(`${how}: concurrent calls create the same directories`, async () => {
    await using directory = await temporaryDirectory();
    const path = directory.file("a/b/c");
    await Promise.all(Array.from({ length: 8 }, async () => await make(path)));
    assert.ok(statSync(path).isDirectory());
  });
}

test("links to files, to directories and to missing targets are resolved", async () => {
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
  for (const [named, real] of cases) assert.equal(canonicalPath(join(root, named)), join(root, real), named);
});

test("a cycle of links is an error of the file system", async () => {
  await using directory = await temporaryDirectory();
  symlinkSync("two", directory.file("one"));
  symlinkSync("one", directory.file("two"));
  assert.throws(() => canonicalPath(directory.file("one")), { code: "ELOOP" });
});
