import assert from "node:assert/strict";
import { mkdtempSync, symlinkSync } from "node:fs";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { openDatabase, TRAFFIC_MIGRATIONS } from "./database.ts";
import { openCaptureStore } from "./open-capture-store.ts";
import { ForeignFileError, rejectForeignFile, storePaths } from "./store-files.ts";
import { openRig } from "./store-rig.ts";

const data = resolve("/data");

const inData = {
  path: resolve("/data/traffic.db"),
  isElsewhere: false,
  bodiesFolder: resolve("/data/bodies"),
  decodedFolder: resolve("/data/decoded"),
  locks: [
    [resolve("/data/weir.lock"), data],
    [resolve("/data/traffic.db.lock"), resolve("/data/traffic.db")],
  ],
};

for (const [what, databasePath] of [
  ["no file is configured", undefined],
  ["its own path is configured", "/data/./traffic.db"],
] as const) {
  test(`when ${what}, the store is in the data directory with two locks`, () => {
    assert.deepEqual(storePaths("/data", databasePath), inData);
  });
}

for (const chosen of ["/disk/shop.db", "/data/other.db"]) {
  test(`a database in ${chosen} has its folders and a lock beside it, named after it`, () => {
    assert.deepEqual(storePaths("/data", chosen), {
      path: resolve(chosen),
      isElsewhere: true,
      bodiesFolder: resolve(`${chosen}-bodies`),
      decodedFolder: resolve(`${chosen}-decoded`),
      locks: [
        [resolve("/data/weir.lock"), data],
        [resolve(`${chosen}.lock`), resolve(chosen)],
      ],
    });
  });
}

for (const [what, nameOf] of [
  ["by its path", (path) => path],
  ["through a link to it", linkTo],
  ["through a link to its directory", (path) => join(linkTo(dirname(path)), basename(path))],
] as const satisfies [string, (path: string) => string][]) {
  test(`a database that another store has open is rejected when it is named ${what}`, async () => {
    await using directory = await temporaryDirectory();
    for (const chosen of [undefined, directory.file("shop.db")]) {
      const path = chosen ?? directory.file("a", "traffic.db");
      {
        await using first = await openRig(directory.file("a"), {}, chosen);
        const second = openRig(directory.file("b"), {}, nameOf(path));
        await assert.rejects(second, {
          name: "DataDirectoryInUseError",
          message: /Another running proxy uses .*: stop it/u,
        });
        first.add();
      }
      await using _again = await openRig(directory.file("b"), {}, path);
    }
  });
}

test("a database is locked through a link before it exists", async () => {
  await using directory = await temporaryDirectory();
  symlinkSync("later.db", directory.file("link.db"));
  await using _first = await openRig(directory.file("a"), {}, directory.file("link.db"));
  await assert.rejects(openRig(directory.file("b"), {}, directory.file("later.db")), {
    name: "DataDirectoryInUseError",
  });
});

/** A link in a directory of its own. */
function linkTo(path: string): string {
  const link = join(mkdtempSync(join(dirname(path), "link-")), basename(path));
  symlinkSync(path, link);
  return link;
}

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
  test(`a store rejects ${what} as its file and leaves it unchanged`, async () => {
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

test("a store rejects a database with two hard links and leaves both unchanged", async () => {
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
        message: `${name} has 2 hard links: opening it under another name would corrupt it. Replace it with a copy`,
      });
      assert.deepEqual(await readFile(name), before);
    }
    await rm(other);
    await (await openRig(directory.file("data"), {}, path))[Symbol.asyncDispose]();
  }
});

test("missing, empty, own and damaged databases are accepted", async () => {
  await using directory = await temporaryDirectory();
  const own = directory.file("traffic.db");
  openDatabase(own, { migrations: TRAFFIC_MIGRATIONS }).close();
  for (const path of [directory.file("new.db"), await written(directory, ""), own]) rejectForeignFile(path);
  rejectForeignFile(await written(directory, `${SQLITE}and nothing that makes sense`));
});

async function written(directory: TemporaryDirectory, text: string): Promise<string> {
  const path = directory.file("file");
  await writeFile(path, text);
  return path;
}
