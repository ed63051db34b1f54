import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNKED, lengthFraming, NO_BODY, type RawFields } from "@headworks/http1";
import {
  hasPassed,
  newViaPseudonym,
  ourMembers,
  removeOurMembers,
  requestFields,
  viaMember,
  viaOf,
} from "./origin-fields.ts";

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

test("the target's authority replaces Host, or is added in front", () => {
  assert.deepEqual(requestFields(["A", "1", "HOST", "old"], NO_BODY, undefined, "new"), ["A", "1", "Host", "new"]);
  assert.deepEqual(requestFields(["A", "1"], NO_BODY, undefined, "new"), ["Host", "new", "A", "1"]);
  assert.deepEqual(requestFields(["hOST", "new"], NO_BODY, undefined, "new"), ["hOST", "new"]);
});

test("framing fields describe the body as sent", () => {
  assert.deepEqual(requestFields(["Content-Length", "3"], lengthFraming(3), undefined, undefined), [
    "Content-Length",
    "3",
  ]);
  assert.deepEqual(requestFields(["transfer-encoding", "chunked"], CHUNKED, undefined, undefined), [
    "transfer-encoding",
    "chunked",
  ]);
});

const ONE = "h0123456789abcdef";
const OTHER = "hfedcba9876543210";

test("a Via pseudonym is unique per process and reveals neither product nor machine", () => {
  const names = Array.from({ length: 100 }, newViaPseudonym);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^h[0-9a-f]{16}$/);
});

for (const [what, fields, hasCome] of [
  ["no Via", ["Host", "a"], false],
  ["a stranger's Via", ["Via", "1.1 squid (squid/6.1)"], false],
  ["another one's", ["Via", viaMember(OTHER)], false],
  ["its own", ["via", viaMember(ONE)], true],
  ["its own between others", ["VIA", `1.0 a, 1.1 ${ONE} , 1.1 b`], true],
  ["its own in a later line", ["Via", "1.1 a", "X", "y", "Via", viaMember(ONE)], true],
  ["its own with another version", ["Via", `HTTP/2.0 ${ONE}`], true],
] as const) {
  test(`a request with ${what} ${hasCome ? "was here before" : "is new"}`, () => {
    assert.equal(hasPassed(viaOf(fields), ONE), hasCome);
  });
}

for (const [what, sent, kept] of [
  ["no Via", ["Host", "a"], ["Host", "a"]],
  ["a client's own Via, blanks and all", ["Via", " 1.1  a ,1.0 b"], ["Via", " 1.1  a ,1.0 b"]],
  ["a name that only looks similar", ["Via", "1.1 h0123456789abcde"], ["Via", "1.1 h0123456789abcde"]],
  ["a comment behind such a name", ["Via", `1.1 ${ONE} (x)`], ["Via", `1.1 ${ONE} (x)`]],
  ["one of ours", ["A", "1", "Via", viaMember(ONE), "B", "2"], ["A", "1", "B", "2"]],
  ["several of ours in lines", ["Via", viaMember(ONE), "A", "1", "via", viaMember(OTHER)], ["A", "1"]],
  ["ours behind a client's", ["Via", `1.0 a (x, y), 1.1 ${ONE}`], ["Via", "1.0 a (x, y)"]],
  ["ours before a proxy's", ["Via", `1.1 ${ONE}, 1.1 squid`], ["Via", "1.1 squid"]],
  ["ours between both", ["Via", `1.1 a, 1.1 ${ONE},1.1 ${OTHER}, 1.1 b`], ["Via", "1.1 a, 1.1 b"]],
] as const) {
  test(`an origin receives ${what} without our members`, () => {
    const fields: string[] = [...sent];
    removeOurMembers(fields);
    assert.deepEqual(fields, kept);
  });
}

test("our members are collected from all Via fields of a tunnel", () => {
  assert.deepEqual(ourMembers([`1.1 a, 1.1 ${ONE}`, ` 1.1 ${OTHER}`]), [viaMember(ONE), viaMember(OTHER)]);
  assert.deepEqual(ourMembers(["1.1 a"]), []);
});
