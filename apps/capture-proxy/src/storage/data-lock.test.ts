import assert from "node:assert/strict";
import { mkdtempSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { openRig } from "./store-rig.ts";

for (const [what, nameOf] of [
  ["by its path", (path) => path],
  ["through a link to it", linkTo],
  ["through a link to its directory", (path) => join(linkTo(dirname(path)), basename(path))],
] as const satisfies [string, (path: string) => string][]) {
  test(`a database that another store has open is refused when it is named ${what}, its own or not`, async () => {
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

test("a database is held through a link before it is there", async () => {
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
