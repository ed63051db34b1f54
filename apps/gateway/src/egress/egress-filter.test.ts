import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { SsrfFilter } from "@headworks/gateway-contract";
import { EgressFilter, isEnabled, type EgressVerdict } from "./egress-filter.ts";

const PRIVATE = ["127.0.0.0/8", "10.0.0.0/8", "169.254.0.0/16", "::1/128", "fc00::/7", "fe80::/10"];

const cases: [rule: string, filter: SsrfFilter, address: string, verdict: EgressVerdict][] = [
  ["egress rule 2: an address in a denied range", { deny: PRIVATE }, "10.200.3.4", "denied"],
  ["egress rule 2: an address outside of all denied ranges", { deny: PRIVATE }, "11.0.0.1", "permitted"],
  ["egress rule 2: an IPv6 address in a denied range", { deny: PRIVATE }, "fd12::1", "denied"],
  ["egress rule 2: a link-local address with its zone", { deny: PRIVATE }, "fe80::1%eth0", "denied"],
  ["an address in both lists is allowed", { deny: PRIVATE, allow: ["10.1.0.0/16"] }, "10.1.2.3", "permitted"],
  ["an address in deny only, beside an allowed range", { deny: PRIVATE, allow: ["10.1.0.0/16"] }, "10.2.2.3", "denied"],
  ["the older spelling of allow", { deny: PRIVATE, allowlist: ["10.1.0.0/16"] }, "10.1.2.3", "permitted"],
  ["allow alone denies nothing", { deny: ["10.0.0.0/8"], allow: ["10.1.2.3"] }, "192.168.1.1", "permitted"],
  ["a single address as a range", { deny: ["192.0.2.7"] }, "192.0.2.7", "denied"],
  ["everything of IPv4", { deny: ["0.0.0.0/0"] }, "8.8.8.8", "denied"],
  ["everything of IPv4 is not IPv6", { deny: ["0.0.0.0/0"] }, "2a00::1", "permitted"],
  ["everything of IPv6 is not IPv4", { deny: ["::/0"] }, "8.8.8.8", "permitted"],
  ["IPv4-mapped is judged as IPv4", { deny: PRIVATE }, "::ffff:10.0.0.1", "denied"],
  ["IPv4-mapped in hexadecimal", { deny: PRIVATE }, "::ffff:a00:1", "denied"],
  [
    "IPv4-mapped is judged as IPv4 even when embedded addresses are not",
    { deny: PRIVATE, normalize_embedded_ipv4: false },
    "::ffff:127.0.0.1",
    "denied",
  ],
  ["IPv4-mapped of an allowed address", { deny: PRIVATE, allow: ["10.0.0.1"] }, "::ffff:10.0.0.1", "permitted"],
  ["NAT64 of a denied address", { deny: PRIVATE }, "64:ff9b::10.0.0.1", "denied"],
  ["NAT64 of a public address", { deny: PRIVATE }, "64:ff9b::8.8.8.8", "permitted"],
  ["NAT64, unless switched off", { deny: PRIVATE, normalize_embedded_ipv4: false }, "64:ff9b::10.0.0.1", "permitted"],
  ["NAT64 of an allowed address", { deny: PRIVATE, allow: ["10.0.0.1"] }, "64:ff9b::10.0.0.1", "permitted"],
  [
    "allowing NAT64's prefix does not allow the addresses behind it",
    { deny: PRIVATE, allow: ["64:ff9b::/96"] },
    "64:ff9b::a00:1",
    "denied",
  ],
  ["6to4 of a denied address", { deny: PRIVATE }, "2002:7f00:1::", "denied"],
  ["Teredo with a denied server", { deny: PRIVATE }, "2001:0:a00:1:0:0:f7f7:f7f7", "denied"],
  ["Teredo with a denied client", { deny: PRIVATE }, "2001:0:808:808:0:0:80ff:fffe", "denied"],
  ["Teredo with public ends", { deny: PRIVATE }, "2001:0:808:808:0:0:f7f7:f7f7", "permitted"],
  ["unspecified IPv4 reaches this host", { deny: ["127.0.0.0/8"] }, "0.0.0.0", "denied"],
  ["unspecified IPv6 reaches this host", { deny: ["::1"] }, "::", "denied"],
  ["unspecified IPv6 reaches this host over IPv4 too", { deny: ["127.0.0.0/8"] }, "::", "denied"],
  ["unspecified IPv4, mapped", { deny: ["127.0.0.0/8"] }, "::ffff:0.0.0.0", "denied"],
  ["unspecified with loopback allowed", { deny: PRIVATE, allow: ["127.0.0.1", "::1"] }, "0.0.0.0", "permitted"],
  ["a text that is no address", { deny: ["10.0.0.0/8"] }, "localhost", "unreadable"],
  ["shorthand IPv4 is no address", { deny: ["10.0.0.0/8"] }, "127.1", "unreadable"],
  ["octal IPv4 is no address", { deny: ["10.0.0.0/8"] }, "0177.0.0.1", "unreadable"],
  ["an empty text", { deny: ["10.0.0.0/8"] }, "", "unreadable"],
];

for (const [rule, filter, address, verdict] of cases) {
  test(`${rule}: ${address || "(empty)"} is ${verdict}`, () => {
    assert.equal(new EgressFilter(filter).judge(address), verdict);
  });
}

test("a block is enabled by default", () => {
  assert.deepEqual(
    [undefined, {}, { enabled: true }, { enabled: false }].map((block) => isEnabled(block)),
    [false, true, true, false],
  );
});

/** The 128 bits of an address as text, IPv4 in its mapped form; independent of the product's parser. */
function bitsOf(address: string): string {
  if (address.includes(".")) {
    const octets = address.split(".").map((part) => Number(part).toString(2).padStart(8, "0"));
    return "0".repeat(80) + "1".repeat(16) + octets.join("");
  }
  const [head = "", tail] = address.split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const missing = 8 - groups(head).length - groups(tail ?? "").length;
  const all = [...groups(head), ...Array<string>(tail === undefined ? 0 : missing).fill("0"), ...groups(tail ?? "")];
  return all.map((group) => Number.parseInt(group, 16).toString(2).padStart(16, "0")).join("");
}

/** A naive form of the rule, for addresses without embedded ones. */
function naive(deny: readonly string[], allow: readonly string[], address: string): EgressVerdict {
  const holds = (network: string): boolean => {
    const [base = "", bits = ""] = network.split("/");
    if (base.includes(".") !== address.includes(".")) return false;
    const length = Number(bits) + (base.includes(".") ? 96 : 0);
    return bitsOf(base).slice(0, length) === bitsOf(address).slice(0, length);
  };
  return deny.some(holds) && !allow.some(holds) ? "denied" : "permitted";
}

const v4 = fc
  .tuple(fc.constantFrom(10, 11, 192), fc.nat(3), fc.nat(3), fc.integer({ min: 1, max: 3 }))
  .map((p) => p.join("."));
const v6 = fc
  .tuple(fc.constantFrom("fc00", "fd00", "2a00"), fc.constantFrom("0", "1", "8000"), fc.constantFrom("1", "2"))
  .map(([a, b, c]) => `${a}:${b}::${c}`);
const network = fc.oneof(
  fc.tuple(v4, fc.nat(32)).map(([base, bits]) => `${base}/${bits}`),
  fc.tuple(v6, fc.nat(128)).map(([base, bits]) => `${base}/${bits}`),
);

test("the filter agrees with a naive form of its rule on random lists and addresses", () => {
  const seen = { denied: 0, permitted: 0, unreadable: 0 };
  fc.assert(
    fc.property(
      fc.array(network, { maxLength: 4 }),
      fc.array(network, { maxLength: 3 }),
      fc.oneof(v4, v6),
      (deny, allow, address) => {
        const verdict = new EgressFilter({ deny, allow }).judge(address);
        seen[verdict] += 1;
        assert.equal(verdict, naive(deny, allow, address), `${deny.join()} but ${allow.join()}: ${address}`);
      },
    ),
    { numRuns: 3000 },
  );
  assert.ok(seen.denied > 200 && seen.permitted > 200, "both verdicts occur often");
});

test("no IPv6 form of an IPv4 address bypasses its denial", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.nat(32), (ipv4, bits) => {
      const filter = new EgressFilter({ deny: [`${ipv4}/${bits}`] });
      const [a = 0, b = 0, c = 0, d = 0] = ipv4.split(".").map(Number);
      const high = ((a << 8) | b).toString(16);
      const low = ((c << 8) | d).toString(16);
      const turned = [(a << 8) | b, (c << 8) | d].map((part) => (part ^ 0xffff).toString(16)).join(":");
      for (const form of [
        ipv4,
        `::ffff:${ipv4}`,
        `::ffff:${high}:${low}`,
        `64:ff9b::${ipv4}`,
        `2002:${high}:${low}::1`,
        `2001:0:${high}:${low}::1`,
        `2001::${turned}`,
      ]) {
        assert.equal(filter.judge(form), "denied", form);
      }
    }),
  );
});
