import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseImfFixdate } from "./http-date.ts";

const DATES: readonly (readonly [string, number])[] = [
  ["Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777],
  ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ["Wed, 31 Dec 1969 23:59:59 GMT", -1],
  ["Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000],
  ["Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400],
  ["Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799],
  ["Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200],
];
for (const [text, epochS] of DATES) {
  test(`"${text}" is ${epochS}`, () => assert.deepEqual(parseImfFixdate(text), { kind: "date", epochS }));
}

const MALFORMED: readonly string[] = [
  "",
  "2024-02-29T12:00:00Z",
  "Sunday, 06-Nov-94 08:49:37 GMT",
  "Sun Nov  6 08:49:37 1994",
  "06 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 08:49:37 UTC",
  "Sun, 06 Nov 1994 08:49:37 gmt",
  "Sun, 06 Nov 1994 08:49:37",
  "Sun, 06 Nov 1994 08:49:37 +0000",
  "sun, 06 Nov 1994 08:49:37 GMT",
  "Sun, 06 nov 1994 08:49:37 GMT",
  "Sun, 6 Nov 1994 08:49:37 GMT",
  "Sun,06 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 94 08:49:37 GMT",
  "Sun, 06 Nov 1994 8:49:37 GMT",
  "Sun, 06 Nov 1994 24:00:00 GMT",
  "Sun, 06 Nov 1994 08:60:37 GMT",
  "Sat, 31 Dec 2016 23:59:60 GMT",
  "Sun, 00 Nov 1994 08:49:37 GMT",
  "Thu, 31 Nov 1994 08:49:37 GMT",
  "Wed, 29 Feb 2023 12:00:00 GMT",
  "Thu, 29 Feb 1900 12:00:00 GMT",
  "Sun, 06 Foo 1994 08:49:37 GMT",
  " Sun, 06 Nov 1994 08:49:37 GMT",
  "Sun, 06 Nov 1994 08:49:37 GMT\n",
  "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
  "Sun, ٠٦ Nov 1994 08:49:37 GMT",
];
for (const text of MALFORMED) {
  test(`${JSON.stringify(text)} is no IMF-fixdate`, () => assert.equal(parseImfFixdate(text).kind, "malformed"));
}

test("a weekday that does not agree is told from a malformed date, with the right one", () => {
  const date = parseImfFixdate("Mon, 06 Nov 1994 08:49:37 GMT");
  assert.deepEqual(date, { kind: "weekday-mismatch", epochS: 784_111_777, weekday: "Sun" });
  assert.equal(parseImfFixdate("Wed, 31 Dec 1969 23:59:59 GMT").kind, "date");
  assert.equal(parseImfFixdate("Thu, 31 Dec 1969 23:59:59 GMT").kind, "weekday-mismatch");
});

test("every second from year 0 to 9999 that Node writes is read back", () => {
  const seconds = fc.integer({ min: -62_167_219_200, max: 253_402_300_799 });
  fc.assert(
    fc.property(seconds, (epochS) => {
      assert.deepEqual(parseImfFixdate(new Date(epochS * 1000).toUTCString()), { kind: "date", epochS });
    }),
    { numRuns: 5000 },
  );
});

test("exactly one of the seven weekdays agrees with a day that exists, and none with one that does not", () => {
  fc.assert(
    fc.property(fc.nat(9999), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 31 }), (year, month, day) => {
      const name = new Date(Date.UTC(2000, month - 1)).toUTCString().slice(8, 11);
      const kinds = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].map(
        (weekday) =>
          parseImfFixdate(
            `${weekday}, ${String(day).padStart(2, "0")} ${name} ${String(year).padStart(4, "0")} 00:00:00 GMT`,
          ).kind,
      );
      const exists = new Date(`${String(year).padStart(4, "0")}-${String(month).padStart(2, "0")}-01T00:00:00Z`);
      exists.setUTCDate(day);
      const isReal = exists.getUTCMonth() === month - 1;
      assert.equal(kinds.filter((kind) => kind === "date").length, isReal ? 1 : 0);
      assert.equal(kinds.filter((kind) => kind === "malformed").length, isReal ? 0 : 7);
    }),
    { numRuns: 3000 },
  );
});
