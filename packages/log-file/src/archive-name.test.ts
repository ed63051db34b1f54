import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { archiveNames, archiveStamp, parseArchiveName } from "./archives.ts";

test("every name that is given is read again, in the order of its second", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 253_402_300_799_999 }),
      fc.integer({ min: 0, max: 30 }),
      fc.constantFrom("weir.log", "a+b(c.log", "x", "weir.log.2026-01-01_00-00-00"),
      (atMs, copy, file) => {
        const names = archiveNames(file, atMs)
          .take(copy + 1)
          .toArray();
        assert.deepEqual(parseArchiveName(file, names[copy] ?? ""), { stamp: archiveStamp(atMs), copy });
        assert.equal(new Set(names).size, copy + 1);
      },
    ),
  );
});

test("a name that would not be given is none", () => {
  for (const name of [
    "",
    "weir.log",
    "weir.log.",
    "weir.log.2026-01-01",
    "weir.log.2026-01-01_00-00-00.",
    "weir.log.2026-01-01_00-00-00.0",
    "weir.log.2026-01-01_00-00-00.01",
    "weir.log.2026-01-01_00-00-00.1.1",
    "weir.log.2026-01-01_00-00-00.gz",
    "weir.log.2026-01-01_00-00-00\n",
    "xweir.log.2026-01-01_00-00-00",
    "weirXlog.2026-01-01_00-00-00",
    "weir.log/2026-01-01_00-00-00",
  ]) {
    assert.equal(parseArchiveName("weir.log", name), undefined, name);
  }
});
