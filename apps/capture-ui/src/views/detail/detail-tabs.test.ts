import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrafficEntry } from "@headworks/capture-contract";
import { tabsOf } from "./detail-tabs.ts";

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

test("an entry has the tabs that have something to show", () => {
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
