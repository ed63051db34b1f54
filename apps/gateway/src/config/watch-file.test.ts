import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, readlink, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { readConfigFile, replaceFile, watchFile, type FileWatch, type WatchOptions } from "./watch-file.ts";
import { MAX_DOCUMENT_BYTES } from "./yaml-source.ts";

/** Without polls, so that nothing but the system's word can be what was noticed. */
const noPoll: WatchOptions = { quietMs: 10, pollMs: 3_600_000 };

interface Seen extends AsyncDisposable {
  readonly texts: string[];
  readonly watch: FileWatch;
}

function watching(path: string, first: string | undefined, options = noPoll): Seen {
  const texts: string[] = [];
  const watch = watchFile(
    path,
    first,
    async (outcome) => {
      texts.push(outcome.ok ? outcome.text : `(${outcome.why})`);
      await Promise.resolve();
    },
    options,
  );
  return { texts, watch, [Symbol.asyncDispose]: async () => await watch.close() };
}

void test("writing in place, and renaming over the file as editors do, are noticed", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("gateway.yaml");
  await writeFile(path, "one");
  await using seen = watching(path, "one");
  await delay(50);
  await writeFile(path, "two");
  await waitUntil(() => seen.texts.at(-1) === "two");
  await writeFile(directory.file("gateway.yaml.swp"), "three");
  await rename(directory.file("gateway.yaml.swp"), path);
  await waitUntil(() => seen.texts.at(-1) === "three");
  await replaceFile(path, "four");
  await waitUntil(() => seen.texts.at(-1) === "four");
  assert.deepEqual(
    seen.texts.filter((text, at) => text !== seen.texts[at - 1]),
    seen.texts,
    "each content once",
  );
});

void test("removal and return of a file are both reported", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("gateway.yaml");
  await writeFile(path, "one");
  await using seen = watching(path, "one");
  await delay(50);
  await rm(path);
  await waitUntil(() => seen.texts.at(-1) === "(does not exist)");
  await writeFile(path, "one");
  await waitUntil(() => seen.texts.at(-1) === "one");
});

void test("a swap of the symbolic link that Kubernetes keeps its files behind is noticed, again and again", async () => {
  await using directory = await temporaryDirectory();
  const publish = async (name: string): Promise<void> => {
    await mkdir(directory.file(name));
    await writeFile(directory.file(name, "gateway.yaml"), name);
    await symlink(name, directory.file("..data_tmp"));
    await rename(directory.file("..data_tmp"), directory.file("..data"));
  };
  await publish("v1");
  await symlink("..data/gateway.yaml", directory.file("gateway.yaml"));
  await using seen = watching(directory.file("gateway.yaml"), "v1");
  for (const version of ["v2", "v3", "v4"]) {
    await delay(30);
    await publish(version);
    await waitUntil(() => seen.texts.at(-1) === version, { what: `noticing ${version}` });
  }
});

void test("a link to a file elsewhere: changes there are noticed", async () => {
  await using directory = await temporaryDirectory();
  await mkdir(directory.file("real"));
  await mkdir(directory.file("linked"));
  await writeFile(directory.file("real", "a.yaml"), "one");
  await symlink(directory.file("real", "a.yaml"), directory.file("linked", "gateway.yaml"));
  await using seen = watching(directory.file("linked", "gateway.yaml"), undefined);
  await waitUntil(() => seen.texts.length === 1);
  await writeFile(directory.file("real", "a.yaml"), "two");
  await waitUntil(() => seen.texts.at(-1) === "two");
});

void test("the poll notices what the system does not tell, such as a directory that comes later", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("later", "gateway.yaml");
  await using seen = watching(path, undefined, { quietMs: 10, pollMs: 20 });
  await waitUntil(() => seen.texts.length === 1);
  await mkdir(directory.file("later"));
  await writeFile(path, "here");
  await waitUntil(() => seen.texts.at(-1) === "here");
});

void test("unchanged content is not reported, whatever happens to the file", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("gateway.yaml");
  await writeFile(path, "one");
  await using seen = watching(path, "one", { quietMs: 5, pollMs: 10 });
  for (let round = 0; round < 5; round++) {
    await replaceFile(path, "one");
    await delay(20);
  }
  // Whole, since a file written in place may be seen empty on the way.
  await replaceFile(path, "two");
  await waitUntil(() => seen.texts.at(-1) === "two");
  assert.deepEqual(seen.texts, ["two"]);
});

void test("calls come one after the other, and none after the end", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("gateway.yaml");
  await writeFile(path, "0");
  let running = 0;
  let max = 0;
  let last = "";
  const watch = watchFile(
    path,
    "0",
    async (outcome) => {
      max = Math.max(max, ++running);
      await delay(15);
      running -= 1;
      last = outcome.ok ? outcome.text : "";
    },
    { quietMs: 1, pollMs: 3 },
  );
  for (let round = 1; round <= 20; round++) {
    await replaceFile(path, `${round}`);
    await delay(4);
  }
  await waitUntil(() => last === "20");
  assert.equal(max, 1);
  await replaceFile(path, "21");
  await watch.close();
  assert.equal(running, 0, "a call under way is waited for");
  const atEnd = last;
  await replaceFile(path, "22");
  await delay(40);
  assert.equal(last, atEnd);
});

void test("what is no UTF-8, too large or not there is a reason, not a text", async () => {
  await using directory = await temporaryDirectory();
  await writeFile(directory.file("binary"), Buffer.from([0xc3, 0x28]));
  await writeFile(directory.file("large"), Buffer.alloc(MAX_DOCUMENT_BYTES + 1, "x"));
  await writeFile(directory.file("bom"), "\ufeffname: x");
  assert.deepEqual(await readConfigFile(directory.file("binary")), { ok: false, why: "is not UTF-8" });
  assert.deepEqual(await readConfigFile(directory.file("large")), { ok: false, why: "is larger than 4194304 bytes" });
  assert.deepEqual(await readConfigFile(directory.file("none")), { ok: false, why: "does not exist" });
  assert.deepEqual(await readConfigFile(directory.path), { ok: false, why: "is not a regular file" });
  execFileSync("mkfifo", [directory.file("pipe")]);
  assert.deepEqual(await readConfigFile(directory.file("pipe")), { ok: false, why: "is not a regular file" });
  const [fromPipe] = await Promise.all([
    readConfigFile(directory.file("pipe"), { allowsPipes: true }),
    writeFile(directory.file("pipe"), "name: y"),
  ]);
  assert.deepEqual(fromPipe, { ok: true, text: "name: y" });
  assert.deepEqual(await readConfigFile("/dev/zero", { allowsPipes: true }), {
    ok: false,
    why: "is larger than 4194304 bytes",
  });
  assert.deepEqual(await readConfigFile(directory.file("bom")), { ok: true, text: "name: x" });
});

void test("replacing keeps the mode and links, leaves nothing behind, and a failure leaves the old content", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("gateway.yaml");
  await writeFile(path, "old");
  await chmod(path, 0o640);
  await symlink("gateway.yaml", directory.file("link"));
  await replaceFile(directory.file("link"), "new");
  assert.equal(await readFile(path, "utf8"), "new");
  assert.equal(await readlink(directory.file("link")), "gateway.yaml");
  assert.equal((await stat(path)).mode & 0o777, 0o640);
  await replaceFile(directory.file("created"), "first");
  assert.equal((await stat(directory.file("created"))).mode & 0o777, 0o600);
  await mkdir(directory.file("folder"));
  await writeFile(directory.file("folder", "inside"), "");
  await assert.rejects(replaceFile(directory.file("folder"), "x"));
  await assert.rejects(replaceFile(directory.file("nowhere", "file"), "x"), { code: "ENOENT" });
  const names = await readdir(directory.path);
  assert.deepEqual(names.toSorted(), ["created", "folder", "gateway.yaml", "link"]);
});

void test("a reader during the replacement sees one complete content or the other", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("gateway.yaml");
  const contents = ["a".repeat(300_000), "b".repeat(200_000)];
  await writeFile(path, contents[0] ?? "");
  let writes = 0;
  const writer = (async () => {
    for (; writes < 15; writes++) await replaceFile(path, contents[writes % 2] ?? "");
  })();
  let reads = 0;
  for (; writes < 15; reads++) assert.ok(contents.includes(await readFile(path, "utf8")));
  await writer;
  assert.ok(reads > 0);
});
