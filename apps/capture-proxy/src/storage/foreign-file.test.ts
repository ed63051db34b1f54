import assert from "node:assert/strict";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { DatabaseSync } from "node:sqlite";
import { temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { openDatabase, TRAFFIC_MIGRATIONS } from "./database.ts";
import { ForeignFileError, refuseForeignFile } from "./store-files.ts";
import { openCaptureStore } from "./open-capture-store.ts";
import { openRig } from "./store-rig.ts";

const SQLITE = "SQLite format 3\0";

const program = (directory: TemporaryDirectory): string => {
  const path = directory.file("other.db");
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE notes (text TEXT)");
  database.close();
  return path;
};

const FOREIGN: readonly (readonly [what: string, make: (directory: TemporaryDirectory) => Promise<string> | string])[] =
  [
    ["a text", (directory) => written(directory, "my precious notes\n")],
    ["a text that is shorter than what a database begins with", (directory) => written(directory, "x")],
    ["another program's database", program],
  ];
for (const [what, make] of FOREIGN) {
  test(`a store does not take ${what} for its file, and leaves it as it was`, async () => {
    await using directory = await temporaryDirectory();
    const path = await make(directory);
    const before = await readFile(path);
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const limits = { maxRequests: 0, maxTotalSizeMb: null, maxBodyBytes: 1000 };
    const opening = openCaptureStore({
      dataDir: directory.file("data"),
      databasePath: path,
      limits,
      log,
      clock: { now: () => 0 },
    });
    await assert.rejects(opening, (error) => error instanceof ForeignFileError && error.message.includes(path));
    assert.deepEqual(await readFile(path), before);
  });
}

test("a store does not take its own database while the file has a second name, and leaves both as they were", async () => {
  await using directory = await temporaryDirectory();
  for (const chosen of [undefined, directory.file("shop.db")]) {
    await (await openRig(directory.file("data"), {}, chosen))[Symbol.asyncDispose]();
    const path = chosen ?? directory.file("data", "traffic.db");
    const other = directory.file("other.db");
    const before = await readFile(path);
    await link(path, other);
    for (const name of [path, other]) {
      await assert.rejects(openRig(directory.file("data"), {}, name), {
        name: "ForeignFileError",
        message: `${name} has 2 names (hard links), and whoever opens it by another one destroys it: put a copy in its place`,
      });
      assert.deepEqual(await readFile(name), before);
    }
    await rm(other);
    await (await openRig(directory.file("data"), {}, path))[Symbol.asyncDispose]();
  }
});

test("what is not there, is empty, was ours, or is a database that is damaged is nobody else's", async () => {
  await using directory = await temporaryDirectory();
  const own = directory.file("traffic.db");
  openDatabase(own, { migrations: TRAFFIC_MIGRATIONS }).close();
  for (const path of [directory.file("new.db"), await written(directory, ""), own]) refuseForeignFile(path);
  refuseForeignFile(await written(directory, `${SQLITE}and nothing that makes sense`));
});

async function written(directory: TemporaryDirectory, text: string): Promise<string> {
  const path = directory.file("file");
  await writeFile(path, text);
  return path;
}
