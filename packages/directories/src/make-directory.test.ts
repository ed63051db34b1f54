import assert from "node:assert/strict";
import { statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { makeDirectory, makeDirectorySync } from "./index.ts";

const MAKERS = [
  ["in the background", makeDirectory],
  ["at once", async (path: string, mode?: number) => await Promise.resolve(makeDirectorySync(path, mode))],
] as const;

for (const [how, make] of MAKERS) {
  test(`${how}: all that is missing is made for the owner alone, and what is there stays`, async () => {
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

  test(`${how}: a file in the way is told by the file system, at the end of the path or before it`, async () => {
    await using directory = await temporaryDirectory();
    writeFileSync(directory.file("file"), "");
    await assert.rejects(async () => await make(directory.file("file")), { code: "EEXIST" });
    await assert.rejects(async () => await make(directory.file("file/below/it")), { code: "ENOTDIR" });
    symlinkSync(directory.file("nowhere"), directory.file("link"));
    await assert.rejects(async () => await make(directory.file("link")), { code: "EEXIST" });
  });

  test(`${how}: what the system never makes is an error, not work without an end`, async (context) => {
    if (process.platform !== "linux") return context.skip("no /proc");
    await assert.rejects(async () => await make("/proc/headworks/never/made"), { code: "ENOENT" });
  });

  test(`${how}: several at the same time make the same directories`, async () => {
    await using directory = await temporaryDirectory();
    const path = directory.file("a/b/c");
    await Promise.all(Array.from({ length: 8 }, async () => await make(path)));
    assert.ok(statSync(path).isDirectory());
  });
}
