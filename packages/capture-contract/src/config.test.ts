import assert from "node:assert/strict";
import { test } from "node:test";
import { compileValueValidator } from "@headworks/contract-kit/server";
import { ConfigPatch, ProxyConfig, Settings } from "./config.ts";

interface Leaf {
  readonly name: string;
  readonly schema: { readonly default?: unknown; readonly "x-applies"?: string; readonly "x-secret"?: boolean };
}

const leaves: readonly Leaf[] = Object.entries(Settings.properties).flatMap(([name, schema]) => {
  const { properties } = schema as unknown as { properties?: Record<string, unknown> };
  const own: [string, unknown][] = properties
    ? Object.entries(properties).map(([inner, leaf]) => [`${name}.${inner}`, leaf])
    : [[name, schema]];
  return own.map(([leafName, leaf]) => ({ name: leafName, schema: leaf as Leaf["schema"] }));
});

/** A value for every property: its default, or something plausible for derived ones. */
function sample(properties: Record<string, object>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const facts = schema as { default?: unknown; type?: string; properties?: Record<string, object> };
      if (facts.properties) return [name, sample(facts.properties)];
      return [name, facts.default ?? (facts.type === "boolean" ? false : facts.type === "string" ? "x" : null)];
    }),
  );
}

test("every setting says its default and when a change applies", () => {
  for (const { name, schema } of leaves) {
    assert.notEqual(schema.default, undefined, name);
    assert.match(schema["x-applies"] ?? "", /^(?:now|next-cycle|restart)$/, name);
  }
});

test("what the specification says applies after a restart does, and credentials and bypass list apply at once", () => {
  const applies = Object.fromEntries(leaves.map(({ name, schema }) => [name, schema["x-applies"]]));
  const restart = [
    "enable_socks",
    "socks_port",
    "socks_auth_username",
    "socks_auth_password",
    "upstream_proxy.protocol",
    "upstream_proxy.host",
    "upstream_proxy.port",
    "auto_save.enabled",
    "auto_save.interval_seconds",
  ];
  for (const name of restart) assert.equal(applies[name], "restart", name);
  for (const name of [
    "upstream_proxy.auth_username",
    "upstream_proxy.auth_password",
    "upstream_proxy.no_proxy_hosts",
  ]) {
    assert.equal(applies[name], "now", name);
  }
});

test("passwords are marked as secrets and are in no answer", () => {
  assert.deepEqual(
    leaves.filter(({ schema }) => schema["x-secret"]).map(({ name }) => name),
    ["socks_auth_password", "upstream_proxy.auth_password"],
  );
  assert.doesNotMatch(JSON.stringify(ProxyConfig), /password/);
});

test("a change may hold everything that is shown, nothing, or one field, and has no defaults of its own", () => {
  const check = compileValueValidator(ConfigPatch, "body");
  assert.deepEqual(check(sample(ProxyConfig.properties)), []);
  const empty = {};
  assert.deepEqual(check(empty), []);
  assert.deepEqual(empty, {}, "defaults in a change would reset what was not mentioned");
  for (const nested of [{ upstream_proxy: {} }, { mirror: {} }, { auto_save: {} }]) {
    const given = structuredClone(nested);
    assert.deepEqual(check(given), []);
    assert.deepEqual(given, nested);
  }
});

test("what is no setting and what is out of range is refused", () => {
  const check = compileValueValidator(ConfigPatch, "body");
  const bad: readonly object[] = [
    { max_request: 1 },
    { max_requests: -1 },
    { max_requests: 1_000_001 },
    { max_requests: 1.5 },
    { max_body_size: 1_073_741_825 },
    { socks_port: 0 },
    { socks_port: 65_536 },
    { intercept_https: "true" },
    { public_ip: 5 },
    { ignored_domains: "a.test" },
    { ignored_domains: [""] },
    { upstream_proxy: { protocol: "ftp" } },
    { upstream_proxy: null },
    { upstream_proxy: { extra: 1 } },
    { mirror: { extra: 1 } },
    { auto_save: { interval_seconds: 0 } },
    { auto_save: { export_format: "zip" } },
    { auto_save: { rotate_after_requests: 1.5 } },
  ];
  for (const change of bad) assert.notDeepEqual(check(change), [], JSON.stringify(change));
});
