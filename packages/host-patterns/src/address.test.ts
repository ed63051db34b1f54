import assert from "node:assert/strict";
import { BlockList, isIP, isIPv4 } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import {
  embeddedIpv4,
  formatAddress,
  isLoopback,
  isPrivate,
  isUnspecified,
  networkContains,
  parseAddress,
  parseNetwork,
} from "./index.ts";

const canonical = (text: string): string | undefined => {
  const address = parseAddress(text);
  return address === undefined ? undefined : formatAddress(address);
};

const spellings: [text: string, canonical: string | undefined][] = [
  ["10.0.0.1", "10.0.0.1"],
  ["0.0.0.0", "0.0.0.0"],
  ["255.255.255.255", "255.255.255.255"],
  ["256.0.0.1", undefined],
  ["01.2.3.4", undefined],
  ["1.2.3", undefined],
  ["1.2.3.4.5", undefined],
  ["1.2.3.4 ", undefined],
  ["[1.2.3.4]", undefined],
  ["1.2.3.4%eth0", undefined],
  ["::", "::"],
  ["[::1]", "::1"],
  ["::1%eth0", "::1"],
  ["::1%", undefined],
  ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
  ["::ffff:1.2.3.4", "::ffff:1.2.3.4"],
  ["::ffff:102:304", "::ffff:1.2.3.4"],
  ["64:ff9b::1.2.3.4", "64:ff9b::102:304"],
  ["1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["1:2:3:4:5:6:7:8::", undefined],
  ["1::2::3", undefined],
  [":::", undefined],
  [":1", undefined],
  ["12345::", undefined],
  ["g::", undefined],
  ["1.2.3.4::", undefined],
  ["", undefined],
];

for (const [text, expected] of spellings) {
  test(`the address text "${text}" is ${expected ?? "refused"}`, () => {
    assert.equal(canonical(text), expected);
  });
}

const addressLike = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4Extended(),
  fc.stringMatching(/^[0-9a-f:.]{0,20}$/),
  fc.tuple(fc.ipV6(), fc.ipV4()).map(([a, b]) => `${a.slice(0, a.lastIndexOf(":") + 1)}${b}`),
  fc.string({ maxLength: 12 }),
);

test("an address is what node accepts as one", () => {
  fc.assert(
    fc.property(addressLike, (text) => {
      const withoutZone = !text.includes("%") && !text.startsWith("[");
      assert.equal(parseAddress(text)?.version ?? 0, withoutZone ? isIP(text) : (parseAddress(text)?.version ?? 0));
    }),
    { numRuns: 2000 },
  );
});

test("canonical text is that of URLs, and parses to the same address", () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      const address = parseAddress(text);
      assert.ok(address);
      const formatted = formatAddress(address);
      assert.deepEqual(parseAddress(formatted), address);
      if (!formatted.startsWith("::ffff:")) assert.equal(new URL(`http://[${text}]/`).hostname, `[${formatted}]`);
    }),
  );
});

const networks: [text: string, isGood: boolean][] = [
  ["10.0.0.0/8", true],
  ["10.1.2.3/8", true],
  ["10.0.0.0/33", false],
  ["10.0.0.0/08", false],
  ["10.0.0.0/", false],
  ["10.0.0.0/-1", false],
  ["10.0.0/8", false],
  ["fd00::/8", true],
  ["[fd00::]/8", true],
  ["::/0", true],
  ["::/129", false],
  ["0.0.0.0/0", true],
  ["10.0.0.0/8/8", false],
];

for (const [text, isGood] of networks) {
  test(`"${text}" is ${isGood ? "a" : "no"} network`, () => {
    assert.equal(parseNetwork(text) !== undefined, isGood);
  });
}

/** Addresses near the network, so that hits and misses both occur. */
const nearbyV4 = fc.tuple(fc.nat(3), fc.nat(3), fc.nat(255), fc.nat(255)).map((parts) => parts.join("."));

const nearbyV6 = fc
  .array(fc.constantFrom("0", "1", "ffff", "fd00"), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.join(":"));

test("a network contains what node's BlockList contains", () => {
  const both = fc.oneof(
    nearbyV4,
    nearbyV6,
    nearbyV4.map((v4) => `::ffff:${v4}`),
  );
  let hits = 0;
  fc.assert(
    fc.property(fc.oneof(nearbyV4, nearbyV6), fc.nat(32), both, (base, bits, text) => {
      const family = isIPv4(base) ? "ipv4" : "ipv6";
      const prefix = family === "ipv4" ? bits : bits * 4;
      const isMappedRule = (parseNetwork(`${base}/${prefix}`)?.value ?? 0n) >> 32n === 0xffffn;
      fc.pre(family === "ipv4" || !isMappedRule);
      const list = new BlockList();
      list.addSubnet(base, prefix, family);
      const network = parseNetwork(`${base}/${prefix}`);
      const address = parseAddress(text);
      assert.ok(network && address);
      const contains = networkContains(network, address);
      hits += Number(contains);
      // BlockList matches a short IPv6 prefix of zeros against every IPv4 address; here IPv6 networks contain IPv6
      // only.
      const isOtherFamily = family === "ipv6" && isIPv4(text);
      const expected = !isOtherFamily && list.check(text, isIPv4(text) ? "ipv4" : "ipv6");
      assert.equal(contains, expected, `${base}/${prefix} ${text}`);
    }),
    { numRuns: 3000 },
  );
  assert.ok(hits > 100, "the generators reach both results");
});

const kinds: [text: string, kind: "loopback" | "private" | "unspecified" | "other"][] = [
  ["127.0.0.1", "loopback"],
  ["127.255.255.255", "loopback"],
  ["::1", "loopback"],
  ["[::1]", "loopback"],
  ["::ffff:127.0.0.1", "loopback"],
  ["::ffff:7f00:1", "loopback"],
  ["10.1.2.3", "private"],
  ["172.16.0.1", "private"],
  ["172.32.0.1", "other"],
  ["192.168.1.1", "private"],
  ["::ffff:192.168.1.1", "private"],
  ["169.254.1.1", "private"],
  ["100.64.0.1", "private"],
  ["fe80::1%eth0", "private"],
  ["fd12::1", "private"],
  ["0.0.0.0", "unspecified"],
  ["::", "unspecified"],
  ["::ffff:0.0.0.0", "unspecified"],
  ["8.8.8.8", "other"],
  ["2001:db8::1", "other"],
  ["localhost", "other"],
  ["127.0.0.1.example.com", "other"],
  ["", "other"],
];

for (const [text, kind] of kinds) {
  test(`"${text}" is ${kind}`, () => {
    assert.deepEqual(
      { loopback: isLoopback(text), private: isPrivate(text), unspecified: isUnspecified(text) },
      { loopback: kind === "loopback", private: kind === "private", unspecified: kind === "unspecified" },
    );
  });
}

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
