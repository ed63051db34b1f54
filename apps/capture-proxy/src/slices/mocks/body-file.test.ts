import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { readBodyFile } from "./body-file.ts";

async function withFiles(use: (root: string, outside: string) => Promise<void>): Promise<void> {
  const directory = await temporaryDirectory();
  try {
    const root = join(directory.path, "bodies");
    const outside = join(directory.path, "outside");
    mkdirSync(join(root, "deep"), { recursive: true });
    mkdirSync(outside);
    writeFileSync(join(root, "a.json"), "{}");
    writeFileSync(join(root, "deep", "b.txt"), "deep");
    writeFileSync(join(root, "..c"), "dots");
    writeFileSync(join(outside, "secret"), "secret");
    await use(root, outside);
  } finally {
    await directory.remove();
  }
}

const textOf = async (path: string, root: string, limit = 1000): Promise<string> => {
  const reading = await readBodyFile(path, ["/nowhere/at/all", root], limit);
  return reading.ok ? reading.bytes.toString() : `refused: ${reading.problem}`;
};

test("files below a directory are read by relative and absolute path, with their current content", async () => {
  await withFiles(async (root) => {
    assert.equal(await textOf("a.json", root), "{}");
    assert.equal(await textOf("deep/b.txt", root), "deep");
    assert.equal(await textOf("deep/../a.json", root), "{}");
    assert.equal(await textOf(join(root, "deep", "b.txt"), root), "deep");
    assert.equal(await textOf("..c", root), "dots");
    writeFileSync(join(root, "a.json"), "[1]");
    assert.equal(await textOf("a.json", root), "[1]");
  });
});

test("nothing outside of the directories is read, by any path or link", async () => {
  await withFiles(async (root, outside) => {
    symlinkSync(join(outside, "secret"), join(root, "link"));
    symlinkSync(outside, join(root, "folder"));
    mkdirSync(`${root}-beside`);
    writeFileSync(join(`${root}-beside`, "x"), "beside");
    for (const path of [
      "../outside/secret",
      "deep/../../outside/secret",
      join(outside, "secret"),
      "link",
      "folder/secret",
      `${root}-beside/x`,
      "/etc/passwd",
      "missing",
      "",
      ".",
      "a.json\0",
      "a.json/x",
    ]) {
      assert.match(await textOf(path, root), /^refused: /, JSON.stringify(path));
    }
  });
});

test("a link that stays inside is followed", async () => {
  await withFiles(async (root) => {
    symlinkSync(join(root, "deep", "b.txt"), join(root, "inside"));
    assert.equal(await textOf("inside", root), "deep");
  });
});

test("folders, pipes and files above the limit are rejected without blocking", async () => {
  await withFiles(async (root) => {
    execFileSync("mkfifo", [join(root, "pipe")]);
    assert.match(await textOf("pipe", root), /refused: .*regular file/);
    assert.match(await textOf("deep", root), /refused: .*regular file/);
    assert.match(await textOf("deep/b.txt", root, 3), /refused: .*larger than 3 bytes/);
    assert.equal(await textOf("deep/b.txt", root, 4), "deep");
  });
});
