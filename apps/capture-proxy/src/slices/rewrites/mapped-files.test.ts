import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import type { TemporaryDirectory } from "@headworks/testkit";
import { fileType } from "./rewrite-actions.ts";
import { createMappedFiles } from "./mapped-files.ts";
import type { MappedFiles } from "./mapped-files.ts";

let directory: TemporaryDirectory;
let files: MappedFiles;
let root: string;
let limitBytes = 1000;

before(async () => {
  directory = await temporaryDirectory();
  root = directory.file("root");
  mkdirSync(join(root, "site/deep"), { recursive: true });
  mkdirSync(directory.file("root-beside"));
  mkdirSync(directory.file("second"));
  for (const [name, text] of [
    ["secret.txt", "secret"],
    ["root-beside/s.txt", "secret"],
    ["root/a.json", "{}"],
    ["root/site/index.html", "home"],
    ["root/site/deep/x y.css", "css"],
    ["second/b.txt", "second"],
  ] as const) {
    writeFileSync(directory.file(name), text);
  }
  symlinkSync(directory.file("secret.txt"), join(root, "link.txt"));
  symlinkSync(directory.path, join(root, "site/up"));
  symlinkSync(join(root, "a.json"), join(root, "inside.json"));
  symlinkSync(join(root, "a.json"), join(root, "site/beside.json"));
  execFileSync("mkfifo", [join(root, "pipe")]);
  files = createMappedFiles(
    () => [root, directory.file("second")],
    () => limitBytes,
  );
});
after(() => directory.remove());

async function text(path: string, rest?: string): Promise<string> {
  const search = await files.read(path, rest);
  return search.kind === "found" ? search.bytes.toString() : search.kind;
}

test("files are found below the directories, relative paths below the first", async () => {
  assert.equal(await text("a.json"), "{}");
  assert.equal(await text(join(root, "a.json")), "{}");
  assert.equal(await text(directory.file("second/b.txt")), "second");
  assert.equal(await text("inside.json"), "{}");
  assert.equal(await text("none.txt"), "missing");
});

test("nothing outside is read through dots, links or a common name prefix", async () => {
  for (const path of [
    "../secret.txt",
    directory.file("secret.txt"),
    directory.file("root-beside/s.txt"),
    "link.txt",
    "site/../../secret.txt",
    "site/up/secret.txt",
    "/etc/hostname",
    "pipe",
  ]) {
    assert.equal(await text(path), "refused", path);
  }
  for (const path of ["../x", "/etc/passwd", "a\0b"]) assert.notEqual(files.problem(path), undefined, path);
  for (const path of ["a/b", join(root, "new"), root]) assert.equal(files.problem(path), undefined, path);
});

test("a folder maps the rest of a path, and nothing outside of it", async () => {
  assert.equal(await text("site", ""), "home");
  assert.equal(await text("site", "/"), "home");
  assert.equal(await text("site", "/deep/x%20y.css"), "css");
  assert.equal(await text("site", "//deep//x%20y.css"), "css");
  assert.equal(await text("site", "/deep"), "missing");
  assert.equal(await text("site", "/none"), "missing");
  for (const rest of [
    "/../a.json",
    "/%2e%2e/a.json",
    "/..%2fa.json",
    "/.%2e/a.json",
    "/deep/..%5c..%5ca.json",
    "/a%00.json",
    "/%ff",
    "/%",
    "/up/secret.txt",
    "/beside.json",
    "/./index.html",
  ]) {
    assert.equal(await text("site", rest), "refused", rest);
  }
});

test("a file over the limit is not read", async () => {
  limitBytes = 1;
  assert.equal(await text("a.json"), "too-large");
  limitBytes = 1000;
});

test("the extension determines the media type, in any case", () => {
  assert.equal(fileType("/x/A.HTML"), "text/html; charset=utf-8");
  assert.equal(fileType("a.json"), "application/json");
  assert.equal(fileType("a.constructor"), "application/octet-stream");
  assert.equal(fileType("noextension"), "application/octet-stream");
});
