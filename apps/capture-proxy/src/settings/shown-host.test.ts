import assert from "node:assert/strict";
import { test } from "node:test";
import { shownHost } from "./load-settings.ts";
import type { InterfaceAddress } from "./load-settings.ts";

const v4 = (address: string, internal = false): InterfaceAddress => ({ address, family: "IPv4", internal });
const local = { public_ip: null, host: "127.0.0.1" };

test("devices are given the public address, a private one they can probably reach, or the bound one", () => {
  const table: readonly (readonly [Parameters<typeof shownHost>[0], Parameters<typeof shownHost>[1], string])[] = [
    [{ public_ip: "203.0.113.1", host: "127.0.0.1" }, { eth0: [v4("192.168.1.2")] }, "203.0.113.1"],
    [local, { eth0: [v4("10.0.0.2")], wlan0: [v4("192.168.1.2")] }, "192.168.1.2"],
    [local, { a: [v4("172.20.0.5")], b: [v4("10.9.9.9")] }, "10.9.9.9"],
    [local, { a: [v4("172.20.0.5")] }, "172.20.0.5"],
    [local, { a: [v4("172.32.0.5"), v4("198.51.100.9")] }, "127.0.0.1"],
    [local, { docker0: [v4("172.17.0.1")], "br-1a2b": [v4("192.168.9.1")], veth1: [v4("10.1.1.1")] }, "127.0.0.1"],
    [local, { lo: [v4("192.168.0.1", true)] }, "127.0.0.1"],
    [local, { eth0: [{ address: "fd00::1", family: "IPv6", internal: false }] }, "127.0.0.1"],
    [{ public_ip: null, host: "0.0.0.0" }, { none: undefined }, "0.0.0.0"],
  ];
  for (const [settings, interfaces, expected] of table) {
    assert.equal(shownHost(settings, interfaces), expected, JSON.stringify(interfaces));
  }
});
