import assert from "node:assert/strict";
import { test } from "node:test";
import { TrustedProxies } from "./client-identity.ts";

const CASES: readonly [string, string[], string, string[], string][] = [
  ["no trusted proxies: the peer is the client", [], "10.0.0.1", ["X-Forwarded-For", "1.2.3.4"], "10.0.0.1"],
  [
    "an untrusted peer is the client whatever its header",
    ["10.0.0.0/8"],
    "9.9.9.9",
    ["X-Forwarded-For", "1.2.3.4"],
    "9.9.9.9",
  ],
  ["a trusted peer names the client", ["10.0.0.0/8"], "10.0.0.1", ["X-Forwarded-For", "1.2.3.4"], "1.2.3.4"],
  [
    "addresses that the client prepended are ignored",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", "6.6.6.6, 1.2.3.4"],
    "1.2.3.4",
  ],
  [
    "chains of trusted proxies are walked",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", "1.2.3.4, 10.0.0.2"],
    "1.2.3.4",
  ],
  [
    "several lines are one list",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", "1.2.3.4", "x-forwarded-for", "10.0.0.2"],
    "1.2.3.4",
  ],
  [
    "if all are trusted, the leftmost one is the client",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", "10.0.0.3, 10.0.0.2"],
    "10.0.0.3",
  ],
  [
    "empty members are ignored",
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", ", 1.2.3.4,, 10.0.0.2 ,", "X-Forwarded-For", ""],
    "1.2.3.4",
  ],
  ["garbage ends the walk", ["10.0.0.0/8"], "10.0.0.1", ["X-Forwarded-For", "1.2.3.4, unknown, 10.0.0.2"], "10.0.0.2"],
  ...[
    ["9.9.9.9:51234", "9.9.9.9"],
    ["[2001:db8::9]:51234", "2001:db8::9"],
    ["[2001:db8::9]", "2001:db8::9"],
    ['"[2001:db8::9]:51234"', "2001:db8::9"],
    ['"9.9.9.9"', "9.9.9.9"],
    ["9.9.9.9:51234, 10.0.0.2:443", "9.9.9.9"],
    ["2001:db8::9", "2001:db8::9"],
    ["2001:DB8:0::0:9", "2001:db8::9"],
    ["::ffff:9.9.9.9", "9.9.9.9"],
    ["[::FFFF:909:909]:1", "9.9.9.9"],
  ].map(([members = "", client = ""]): (typeof CASES)[number] => [
    `the address is parsed from ${members}`,
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", members],
    client,
  ]),
  ...[
    "9.9.9.9:",
    "9.9.9.9:http",
    ":443",
    "[9.9.9.9]",
    "[2001:db8::9",
    "[2001:db8::9]x",
    '"9.9.9.9',
    '""',
    "_hidden",
  ].map((member): (typeof CASES)[number] => [
    `no address is parsed from ${member}`,
    ["10.0.0.0/8"],
    "10.0.0.1",
    ["X-Forwarded-For", `1.2.3.4, ${member}, 10.0.0.2`],
    "10.0.0.2",
  ]),
  ["without the field it is the peer", ["10.0.0.0/8"], "10.0.0.1", [], "10.0.0.1"],
  [
    "IPv6 networks and mapped addresses count",
    ["2001:db8::/32", "::ffff:10.0.0.0/104"],
    "2001:db8::1",
    ["X-Forwarded-For", "2a00::5"],
    "2a00::5",
  ],
];
for (const [name, trusted, peer, fields, expected] of CASES) {
  test(name, () => assert.equal(new TrustedProxies(trusted).clientAddress(peer, fields), expected));
}
