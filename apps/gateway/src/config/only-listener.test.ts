import assert from "node:assert/strict";
import { test } from "node:test";
import { generationRig } from "../../test/config/generation-rig.ts";
import { onlyListenerOf } from "./check-listeners.ts";

for (const [text, address, port] of [
  ["127.0.0.1:8080", "127.0.0.1", 8080],
  ["0.0.0.0:0", "0.0.0.0", 0],
  ["[::1]:65535", "::1", 65_535],
  ["localhost:80", "localhost", 80],
] as const) {
  test(`GATEWAY_BIND=${text} is ${address}, port ${port}`, () => {
    assert.deepEqual(onlyListenerOf({ GATEWAY_BIND: text }), { name: "bind", address, port });
  });
}

test("without GATEWAY_BIND, or with nothing in it, documents say where to listen", () => {
  assert.equal(onlyListenerOf({}), undefined);
  assert.equal(onlyListenerOf({ GATEWAY_BIND: "" }), undefined);
});

for (const text of ["8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80", "[::1]", "[x]:1"]) {
  test(`GATEWAY_BIND=${text} is refused with a sentence`, () => {
    assert.throws(() => onlyListenerOf({ GATEWAY_BIND: text }), /^Error: GATEWAY_BIND must be an address and a port/);
  });
}

test("the listeners of a document are not looked at beside it, nor where something else could not be read", async () => {
  const { generations } = generationRig({ onlyListener: { name: "bind", address: "127.0.0.1", port: 8080 } });
  const listeners = "listeners: [{name: a, address: '::1', port: 80}, {name: b, address: '::1', port: 80}]";
  const errors = async (more: string): Promise<string[]> =>
    (await generations.check(`${listeners}\n${more}`))
      .filter(({ severity }) => severity === "error")
      .map(({ code, path }) => `${code} ${path}`);
  assert.deepEqual(await errors(""), []);
  assert.deepEqual(await errors("policies: [5]"), ["type /policies/0"]);
});
