import assert from "node:assert/strict";
import { test } from "node:test";
import { Settings } from "@headworks/capture-contract";
import { REDACTED, redact } from "./load-settings.ts";

test("every field that the schema marks is hidden, at any depth, and nothing else is", () => {
  const settings = {
    socks_auth_username: "anna",
    socks_auth_password: "hunter2",
    upstream_proxy: { auth_username: "bert", auth_password: "hunter3" },
  };
  assert.deepEqual(redact(Settings, settings), {
    socks_auth_username: "anna",
    socks_auth_password: REDACTED,
    upstream_proxy: { auth_username: "bert", auth_password: REDACTED },
  });
});

test("an absent secret stays visibly absent", () => {
  assert.deepEqual(redact(Settings, { socks_auth_password: null }), { socks_auth_password: null });
});

test("secrets in lists are hidden too", () => {
  const schema = { items: { properties: { key: { "x-secret": true } } } };
  assert.deepEqual(redact(schema, [{ key: "k", name: "n" }]), [{ key: REDACTED, name: "n" }]);
});
