import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { storePlaces } from "./store-files.ts";

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
  ["nobody chooses", undefined],
  ["its own place is chosen", "/data/./traffic.db"],
] as const) {
  test(`when ${what}, all of the store is in the data directory, behind its lock and that of the file`, () => {
    assert.deepEqual(storePlaces("/data", databasePath), inData);
  });
}

for (const chosen of ["/disk/shop.db", "/data/other.db"]) {
  test(`a database in ${chosen} has its folders and a lock beside it, called after it`, () => {
    assert.deepEqual(storePlaces("/data", chosen), {
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
