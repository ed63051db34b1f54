import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNKED, NO_BODY, lengthFraming } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import { requestFields } from "./origin-fields.ts";

const REQUESTS: readonly [string, RawFields, string | undefined, RawFields][] = [
  [
    "Connection: keep-alive stays where it was",
    ["A", "1", "Connection", "keep-alive", "B", "2"],
    undefined,
    ["A", "1", "Connection", "keep-alive", "B", "2"],
  ],
  [
    "fields that Connection names go with their name",
    ["Connection", "X-Hop, close", "X-Hop", "1", "A", "1"],
    undefined,
    ["Connection", "close", "A", "1"],
  ],
  [
    "of several Connection fields one is left, with what is true of them all",
    ["Connection", "keep-alive", "A", "1", "connection", "Upgrade, X-Hop", "X-Hop", "1"],
    undefined,
    ["Connection", "keep-alive", "A", "1"],
  ],
  ["a Connection without a true option goes", ["Connection", "X-Hop", "X-Hop", "1"], undefined, []],
  [
    "Connection cannot remove what routing and framing rely on",
    ["Connection", "Host, Authorization", "Host", "h", "Authorization", "x"],
    undefined,
    ["Host", "h", "Authorization", "x"],
  ],
  [
    "Proxy fields and Keep-Alive go",
    ["Proxy-Connection", "x", "Proxy-Authorization", "y", "Keep-Alive", "z", "A", "1"],
    undefined,
    ["A", "1"],
  ],
  [
    "an upgrade that was not offered properly is not passed on",
    ["Connection", "Upgrade", "Upgrade", "h2c", "A", "1"],
    undefined,
    ["A", "1"],
  ],
  [
    "an offered upgrade is passed on",
    ["Connection", "Upgrade", "Upgrade", "websocket"],
    "websocket",
    ["Connection", "Upgrade", "Upgrade", "websocket"],
  ],
  [
    "TE stays, since trailers are passed on",
    ["Connection", "TE", "TE", "trailers"],
    undefined,
    ["Connection", "te", "TE", "trailers"],
  ],
];
for (const [name, fields, upgrade, expected] of REQUESTS) {
  test(name, () => assert.deepEqual(requestFields(fields, NO_BODY, upgrade, undefined), expected));
}

test("the target's authority takes the place of Host, or comes first when there was none", () => {
  assert.deepEqual(requestFields(["A", "1", "HOST", "old"], NO_BODY, undefined, "new"), ["A", "1", "Host", "new"]);
  assert.deepEqual(requestFields(["A", "1"], NO_BODY, undefined, "new"), ["Host", "new", "A", "1"]);
  assert.deepEqual(requestFields(["hOST", "new"], NO_BODY, undefined, "new"), ["hOST", "new"]);
});

test("framing fields say how the body is really sent", () => {
  assert.deepEqual(requestFields(["Content-Length", "3"], lengthFraming(3), undefined, undefined), [
    "Content-Length",
    "3",
  ]);
  assert.deepEqual(requestFields(["transfer-encoding", "chunked"], CHUNKED, undefined, undefined), [
    "transfer-encoding",
    "chunked",
  ]);
});
