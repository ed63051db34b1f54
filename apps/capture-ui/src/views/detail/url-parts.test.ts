import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { urlParts } from "./url-parts.ts";

const strong = (url: string) => urlParts(url).flatMap((part) => (part.strong ? [part.text] : []));

test("the host and the names of parameters stand out", () => {
  assert.deepEqual(strong("https://api.example:8443/v2/orders?expand=items,payment&flag&a=b=c#x"), [
    "api.example:8443",
    "expand=",
    "flag",
    "a=",
  ]);
  assert.deepEqual(strong("tcp://bank.example:443"), ["bank.example:443"]);
});

test("nothing of an address is lost, whatever it is", () => {
  fc.assert(
    fc.property(fc.oneof(fc.webUrl({ withQueryParameters: true, withFragments: true }), fc.string()), (url) => {
      assert.equal(
        urlParts(url)
          .map((part) => part.text)
          .join(""),
        url,
      );
    }),
  );
});
