import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptFilter } from "@headworks/capture-contract";
import { compileMatchFilter } from "./match-filter.ts";

const REQUEST = {
  method: "GET",
  url: "https://api.shop.test/v1/Carts/7?full=1",
  host: "api.shop.test",
  path: "/v1/Carts/7?full=1",
};

const filters: readonly (readonly [filter: ScriptFilter | null, isMatch: boolean])[] = [
  [null, true],
  [{}, true],
  [{ method: "get" }, true],
  [{ method: "POST" }, false],
  [{ url_pattern: "https://api.shop.test/v1/Carts/7?full=1" }, true],
  [{ url_pattern: "HTTPS://*/v1/carts/*" }, true],
  [{ url_pattern: "*/v1/carts" }, false],
  [{ url_pattern: "/v1/*" }, false],
  [{ url_pattern: "https://api.shop.test/v1/carts/??full=?" }, true],
  [{ host_pattern: "*.shop.test" }, true],
  [{ host_pattern: "API.SHOP.TEST" }, true],
  [{ host_pattern: "shop.test" }, false],
  [{ host_pattern: "api?shop?test" }, true],
  [{ host_pattern: "api.shop.tes?t" }, false],
  [{ path_pattern: "/v1/*" }, true],
  [{ path_pattern: "/v1/carts/7" }, false],
  [{ path_pattern: "/v1/carts/7?*" }, true],
  // Characters of regular expressions stand for themselves.
  [{ path_pattern: "/v1/.*" }, false],
  [{ path_pattern: "/v1/(Carts|Orders)/*" }, false],
  [{ path_pattern: "^/v1/*" }, false],
  [{ host_pattern: "*.shop.test", path_pattern: "/v1/*", method: "GET" }, true],
  [{ host_pattern: "*.shop.test", path_pattern: "/v2/*" }, false],
];

for (const [filter, isMatch] of filters) {
  test(`the filter ${JSON.stringify(filter)} ${isMatch ? "matches" : "does not match"}`, () => {
    assert.equal(compileMatchFilter(filter)(REQUEST), isMatch);
  });
}

test("a dot and brackets in a filter match only themselves", () => {
  const matches = compileMatchFilter({ path_pattern: "/a.b[1]+(c)|{d}\\e$" });
  assert.equal(matches({ ...REQUEST, path: "/a.b[1]+(c)|{d}\\e$" }), true);
  assert.equal(matches({ ...REQUEST, path: "/axb[1]+(c)|{d}\\e$" }), false);
});

test("a filter of the greatest length can be compiled, and a hostile text costs little", () => {
  const matches = compileMatchFilter({ path_pattern: "*a".repeat(200) });
  const started = performance.now();
  assert.equal(matches({ ...REQUEST, path: `/${"a".repeat(8000)}b` }), false);
  const slashes = compileMatchFilter({ path_pattern: "/".repeat(400) });
  assert.equal(slashes({ ...REQUEST, path: "/".repeat(400) }), true);
  assert.ok(performance.now() - started < 2000, "exponential or quadratic time would take far longer");
});
