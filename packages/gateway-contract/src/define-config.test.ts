import assert from "node:assert/strict";
import { test } from "node:test";
import { configText, defineConfig } from "./define-config.ts";

void test("a configuration in TypeScript becomes JSON text with exact numbers of 64 bits", () => {
  const config = defineConfig({
    upstreams: [{ name: "u", endpoints: [{ address: "127.0.0.1", port: 80 }] }],
    consumers: [
      { name: "a", quotas: { daily_requests: 100 } },
      { name: "b", quotas: { monthly_requests: 18446744073709551615n } },
    ],
  });
  const text = configText(config);
  assert.match(text, /"daily_requests": 100\b/);
  assert.match(text, /"monthly_requests": 18446744073709551615\n/);
  assert.ok(text.endsWith("}\n"));
});

void test("mistakes are mistakes of types, and at run time the configuration stays what it is", () => {
  // @ts-expect-error A field that does not exist.
  const config = defineConfig({ upstream: [] });
  // @ts-expect-error A choice that does not exist.
  defineConfig({ upstreams: [{ name: "u", load_balancer: "best" }] });
  // @ts-expect-error A text where a number belongs.
  defineConfig({ listeners: [{ name: "l", address: "::", port: "80" }] });
  // @ts-expect-error A field that does not exist beside those that have to be there.
  defineConfig({ listeners: [{ name: "l", address: "::", port: 80, protocl: "https" }] });
  const match = { path: { type: "prefix", value: "/" } } as const;
  defineConfig({
    routes: [
      // @ts-expect-error A field of another action.
      { name: "r", match, action: { type: "respond", status: 200, rewrite: { type: "strip_prefix" } } },
    ],
  });
  // @ts-expect-error A field that does not exist at the root, beside one that does.
  defineConfig({ listeners: [], webhook: [] });
  // @ts-expect-error A credential without its type.
  defineConfig({ consumers: [{ name: "c", credentials: [{ key: "k" }] }] });
  assert.deepEqual(config, { upstream: [] });
});

void test("numbers that JavaScript has rounded or cannot write are refused", () => {
  const budget = (daily: number): string =>
    configText({ consumers: [{ name: "a", quotas: { daily_requests: daily } }] });
  assert.throws(() => budget(2 ** 53), { name: "RangeError", message: /daily_requests .* 9007199254740992n/ });
  assert.throws(() => budget(Number.NaN), RangeError);
  assert.throws(() => budget(Infinity), RangeError);
});
