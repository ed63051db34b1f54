import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { embeddedIpv4, formatAddress, parseAddress } from "./index.ts";

const inside = (text: string): string[] => {
  const address = parseAddress(text);
  assert.ok(address, text);
  return embeddedIpv4(address).map(formatAddress);
};

const cases: [text: string, embedded: string[], what: string][] = [
  ["64:ff9b::10.1.2.3", ["10.1.2.3"], "NAT64"],
  ["64:ff9b::7f00:1", ["127.0.0.1"], "NAT64 in hexadecimal"],
  ["64:ff9b:0:0:0:1:10.1.2.3", [], "not the well-known NAT64 prefix"],
  ["64:ff9b:1::10.1.2.3", ["10.1.2.3"], "NAT64 of local use"],
  ["64:ff9b:1:abcd::10.1.2.3", ["10.1.2.3"], "NAT64 of local use, with a subnet"],
  ["64:ff9b:2::10.1.2.3", [], "beside NAT64 of local use"],
  ["2002:a01:203::", ["10.1.2.3"], "6to4"],
  ["2002:7f00:1:5::9", ["127.0.0.1"], "6to4 with subnet and host"],
  ["2003:a01:203::", [], "beside 6to4"],
  ["2001:0:a01:203:0:0:80ff:fffe", ["10.1.2.3", "127.0.0.1"], "Teredo: server, and client with its bits turned"],
  ["2001:1:a01:203::", [], "beside Teredo"],
  ["::ffff:0:10.1.2.3", ["10.1.2.3"], "IPv4-translated"],
  ["::10.1.2.3", ["10.1.2.3"], "IPv4-compatible"],
  ["fe80::5efe:10.1.2.3", ["10.1.2.3"], "ISATAP"],
  ["2a00::200:5efe:10.1.2.3", ["10.1.2.3"], "ISATAP with a global address"],
  ["::ffff:10.1.2.3", [], "IPv4-mapped, which is IPv4 already"],
  ["10.1.2.3", [], "IPv4"],
  ["::", [], "unspecified"],
  ["::1", [], "loopback"],
  ["2a00:1450:4001::200e", [], "any other"],
];

for (const [text, embedded, what] of cases) {
  test(`${text} carries ${embedded.join(" and ") || "no IPv4 address"} (${what})`, () => {
    assert.deepEqual(inside(text), embedded);
  });
}

test("every IPv4 address embedded in a translated form is found", () => {
  fc.assert(
    fc.property(fc.ipV4(), (ipv4) => {
      const [a = 0, b = 0, c = 0, d = 0] = ipv4.split(".").map(Number);
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
      const turned = `${(((a << 8) | b) ^ 0xffff).toString(16)}:${(((c << 8) | d) ^ 0xffff).toString(16)}`;
      assert.deepEqual(inside(`64:ff9b::${hex}`), [ipv4]);
      assert.deepEqual(inside(`2002:${hex}::1`), [ipv4]);
      assert.deepEqual(inside(`2001:0:102:304:0:0:${turned}`), ["1.2.3.4", ipv4]);
    }),
  );
});
