import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAddress, networkContains, parseAddress, parseNetwork } from "@headworks/host-patterns";
import fc from "fast-check";
import { AddressSet, isEverything } from "./address-set.ts";

function holds(networks: readonly string[], text: string): boolean {
  const address = parseAddress(text);
  assert.ok(address !== undefined, `${text} is an address`);
  return new AddressSet(networks).has(address);
}

test("a set holds what its networks hold, in both families", () => {
  const cases: readonly [networks: readonly string[], address: string, isIn: boolean][] = [
    [["10.0.0.0/8"], "10.255.255.255", true],
    [["10.0.0.0/8"], "11.0.0.0", false],
    [["10.1.2.3/8"], "10.9.9.9", true],
    [["192.0.2.7"], "192.0.2.7", true],
    [["192.0.2.7"], "192.0.2.8", false],
    [["192.0.2.0/24"], "::ffff:192.0.2.9", true],
    [["::ffff:192.0.2.0/120"], "192.0.2.9", true],
    [["2001:db8::/32"], "2001:db8:ffff::1", true],
    [["2001:db8::/32"], "2001:db9::", false],
    [["::/0"], "192.0.2.1", false],
    [["::/0"], "2001:db8::1", true],
    [["0.0.0.0/0"], "2001:db8::1", false],
    [["0.0.0.0/0"], "255.255.255.255", true],
    [["10.0.0.0/8", "192.0.2.0/24", "::1"], "::1", true],
    [[], "::1", false],
    [["nonsense", "10.0.0.0/99"], "10.0.0.1", false],
  ];
  for (const [networks, address, isIn] of cases) {
    assert.equal(holds(networks, address), isIn, `${address} in ${networks.join(", ")}`);
  }
});

test("however many networks there are, a set agrees with asking each of them", () => {
  const address = fc
    .tuple(fc.constantFrom(4 as const, 6 as const), fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), fc.boolean())
    .map(([version, value, isNear]) => {
      const near = isNear ? value & 0x3n : value;
      const text =
        version === 4 ? { version, value: (0xffffn << 32n) | (near & 0xffff_ffffn) } : { version, value: near };
      return formatAddress(text);
    });
  const network = fc
    .tuple(address, fc.nat(128))
    .map(([text, bits]) => `${text}/${text.includes(":") ? bits : bits % 33}`);
  fc.assert(
    fc.property(fc.array(network, { maxLength: 12 }), address, (networks, text) => {
      const parsed = parseAddress(text);
      if (parsed === undefined) return false;
      const naive = networks.some((each) => {
        const known = parseNetwork(each);
        return known !== undefined && networkContains(known, parsed);
      });
      return new AddressSet(networks).has(parsed) === naive;
    }),
    { numRuns: 500 },
  );
});

test("a network that covers a whole address family is detected", () => {
  for (const text of ["0.0.0.0/0", "10.0.0.0/0", "::/0", "2001:db8::/0", "::ffff:0.0.0.0/96"]) {
    assert.equal(isEverything(text), true, text);
  }
  for (const text of ["0.0.0.0/1", "128.0.0.0/1", "::/1", "0.0.0.0", "::", "nonsense"]) {
    assert.equal(isEverything(text), false, text);
  }
});
