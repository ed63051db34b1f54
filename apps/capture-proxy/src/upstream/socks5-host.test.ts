import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAddress, parseAddress } from "@headworks/host-patterns";
import fc from "fast-check";
import { addressOfOctets, socks5Host } from "./socks5-host.ts";

test("addresses go as octets and come back in canonical text; all else goes by name", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
      const host = socks5Host(text);
      const address = parseAddress(text);
      assert.ok(host.kind !== "name" && address);
      assert.equal(host.octets.length, host.kind === "ipv4" ? 4 : 16);
      assert.equal(addressOfOctets(host.octets), formatAddress(address));
    }),
  );
  assert.deepEqual(socks5Host("127.0.0.1"), { kind: "ipv4", octets: Uint8Array.of(127, 0, 0, 1) });
  assert.deepEqual(socks5Host("127.1"), { kind: "name", name: "127.1" });
  assert.deepEqual(socks5Host("origin.test"), { kind: "name", name: "origin.test" });
});
