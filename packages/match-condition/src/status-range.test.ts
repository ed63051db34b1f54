import assert from "node:assert/strict";
import { test } from "node:test";
import { parseStatusRange } from "./status-range.ts";

/** Both ends included. */
const range = (min: number, max: number) => ({ min, max, minExcluded: false, maxExcluded: false });

test("statuses, classes, ranges and lists are parsed; other texts are not", () => {
  assert.deepEqual(parseStatusRange("404"), [range(404, 404)]);
  assert.deepEqual(parseStatusRange(404), [range(404, 404)]);
  assert.deepEqual(parseStatusRange("5XX"), [range(500, 599)]);
  assert.deepEqual(parseStatusRange(" 2xx , 301 - 308,404"), [range(200, 299), range(301, 308), range(404, 404)]);
  for (const wrong of ["", "x", "2x", "0xx", "40", "4044", "-404", "404-", "500-400", "404,", "4xx-5xx", "1e2", 40.5]) {
    assert.equal(parseStatusRange(wrong), undefined, String(wrong));
  }
});
