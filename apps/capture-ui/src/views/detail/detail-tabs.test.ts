import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestData, ResponseData, TrafficEntry } from "@headworks/capture-contract";
import { parseSetCookie } from "@headworks/http-fields";
import fc from "fast-check";
import { cookieConcerns, cookieCount, cookieLife, tabsOf, urlParts } from "./detail-tabs.ts";

/** The parts of an entry that determine its tabs. */
function entry({
  url = "https://a.example/",
  type = null,
  sent = [],
  received = [],
  sizes = [0, 0],
  isTunnel = false,
}: {
  readonly url?: string;
  readonly type?: string | null;
  readonly sent?: readonly (readonly [string, string])[];
  readonly received?: readonly (readonly [string, string])[];
  /** Stored body bytes of request and response. */
  readonly sizes?: readonly [request: number, response: number];
  readonly isTunnel?: boolean;
}): TrafficEntry {
  return {
    request: { url, content_type: type, headers_list: sent, body_stored_size: sizes[0] },
    response: { headers_list: received, body_stored_size: sizes[1] },
    is_passthrough: isTunnel,
  } as unknown as TrafficEntry;
}

test("an entry has the tabs that have content", () => {
  const cases: readonly [TrafficEntry, boolean, string][] = [
    [entry({}), false, "overview messages timing"],
    [entry({}), true, "overview messages stream timing"],
    [entry({ url: "https://a.example/?q=1" }), false, "overview messages params timing"],
    [
      entry({ type: "application/x-www-form-urlencoded; charset=utf-8", sizes: [3, 0] }),
      false,
      "overview messages params timing",
    ],
    [entry({ type: "application/x-www-form-urlencoded" }), false, "overview messages timing"],
    [entry({ sent: [["Cookie", "a=1"]] }), false, "overview messages cookies timing"],
    [entry({ received: [["Set-Cookie", "a=1"]] }), false, "overview messages cookies timing"],
    [entry({ isTunnel: true }), false, "overview timing"],
    // Response that explains why the tunnel failed.
    [entry({ isTunnel: true, sizes: [0, 40] }), false, "overview messages timing"],
  ];
  for (const [each, hasStream, tabs] of cases) assert.equal(tabsOf(each, hasStream).join(" "), tabs);
});

test("cookies of all fields in both directions are counted", () => {
  const request = {
    headers_list: [
      ["Cookie", "a=1; b=2"],
      ["cookie", "c=3"],
    ],
  } as unknown as RequestData;
  const response = { headers_list: [["Set-Cookie", "d=4"]] } as unknown as ResponseData;
  assert.equal(cookieCount({ request, response }), 4);
  assert.equal(cookieCount({ request, response: null }), 3);
});

test("the lifetime of a cookie is described in words", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  assert.equal(cookieLife(parseSetCookie("a=1"), now), "Session");
  assert.equal(cookieLife(parseSetCookie("a=1; Max-Age=120"), now), "2 min");
  assert.equal(cookieLife(parseSetCookie("a=1; Max-Age=-1"), now), "Removed");
  assert.equal(cookieLife(parseSetCookie("a=1; Expires=Fri, 02 Jan 2026 00:00:00 GMT"), now), "1 d");
});

test("cookies that browsers reject are listed as concerns", () => {
  assert.deepEqual(cookieConcerns(parseSetCookie("a=1; Secure; HttpOnly; SameSite=Lax"), true), []);
  assert.match(cookieConcerns(parseSetCookie("a=1; SameSite=None"), true)[0] ?? "", /without Secure/u);
  assert.match(cookieConcerns(parseSetCookie("a=1; Secure"), false)[0] ?? "", /plain HTTP/u);
  assert.match(cookieConcerns(parseSetCookie("__Host-a=1; Secure"), true)[0] ?? "", /__Host-/u);
});

const strong = (url: string) => urlParts(url).flatMap((part) => (part.strong ? [part.text] : []));

test("host and parameter names are emphasised", () => {
  assert.deepEqual(strong("https://api.example:8443/v2/orders?expand=items,payment&flag&a=b=c#x"), [
    "api.example:8443",
    "expand=",
    "flag",
    "a=",
  ]);
  assert.deepEqual(strong("tcp://bank.example:443"), ["bank.example:443"]);
});

test("the parts of any URL join to the URL", () => {
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
