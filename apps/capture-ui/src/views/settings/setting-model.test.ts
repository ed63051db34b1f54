import assert from "node:assert/strict";
import { test } from "node:test";
import { Settings } from "@headworks/capture-contract";
import type { ConfigField } from "@headworks/capture-contract";
import {
  fromDraft,
  groupSettings,
  patchOf,
  settingControl,
  settingLabel,
  toDraft,
  valueText,
} from "./setting-model.ts";

/** All settings of the contract, nested ones dotted. */
const fields: ConfigField[] = Object.entries(Settings.properties).flatMap(([name, schema]) => {
  const { properties } = schema as unknown as { properties?: object };
  return properties
    ? Object.entries(properties).map(([inner, innerSchema]) => describe(`${name}.${inner}`, innerSchema))
    : [describe(name, schema)];
});

function describe(name: string, schema: unknown): ConfigField {
  const initial = (schema as { default?: unknown }).default;
  return {
    name,
    applies: "now",
    source: "default",
    default: initial,
    value: initial,
    running: initial,
    restart_pending: false,
    environment: "X",
    flag: null,
    schema,
  };
}

test("every setting is in exactly one group, has a control that fits its schema, and a label", () => {
  const groups = groupSettings(fields);
  assert.deepEqual(
    groups.flatMap((group) => group.fields.map((field) => field.name)).toSorted(),
    fields.map((field) => field.name).toSorted(),
  );
  assert.equal(
    groups.find((group) => group.id === "other"),
    undefined,
  );
  const kindOf = (name: string) => settingControl(fields.find((field) => field.name === name) ?? { schema: null }).kind;
  assert.equal(kindOf("intercept_https"), "switch");
  assert.equal(kindOf("proxy_port"), "number");
  assert.equal(kindOf("max_total_size_mb"), "number");
  assert.equal(kindOf("upstream_proxy.protocol"), "choice");
  assert.equal(kindOf("ignored_domains"), "list");
  assert.equal(kindOf("upstream_proxy.auth_password"), "secret");
  assert.equal(kindOf("public_ip"), "text");
  assert.equal(kindOf("log_config.rotation"), "rotation");
  for (const field of fields) assert.match(settingLabel(field.name), /^[A-Z]/u);
});

test("a default converted by its control and back is unchanged", () => {
  for (const field of fields) {
    const control = settingControl(field);
    const parsed = fromDraft(control, toDraft(control, field.value));
    assert.deepEqual(parsed, { ok: true, value: field.value }, field.name);
  }
});

test("log rotation is a mode or a size", () => {
  const control = { kind: "rotation" } as const;
  for (const value of [{ mode: "never" }, { mode: "daily" }, { mode: "size", size_mb: 50 }]) {
    assert.deepEqual(fromDraft(control, toDraft(control, value)), { ok: true, value });
  }
  for (const draft of ["size:", "size:0", "size:x", "size:1.5"]) {
    assert.equal(fromDraft(control, draft).ok, false, draft);
  }
  assert.equal(valueText({ mode: "size", size_mb: 50 }), "size:50");
});

test("an invalid draft is rejected with the reason", () => {
  const port = { kind: "number", minimum: 1, maximum: 65_535, optional: false } as const;
  for (const draft of ["", "0", "65536", "8o80", "1.5", "1e99"]) assert.equal(fromDraft(port, draft).ok, false, draft);
  assert.deepEqual(fromDraft(port, " 8,080 "), { ok: true, value: 8080 });
  assert.deepEqual(fromDraft({ ...port, optional: true }, ""), { ok: true, value: null });
});

test("blank and repeated lines of a list are dropped", () => {
  assert.deepEqual(fromDraft({ kind: "list", maxItems: 3 }, " a.example \n\n*.b\na.example\n"), {
    ok: true,
    value: ["a.example", "*.b"],
  });
  assert.equal(fromDraft({ kind: "list", maxItems: 1 }, "a\nb").ok, false);
});

test("dotted names become nested objects", () => {
  assert.deepEqual(patchOf({ verbose: true, "upstream_proxy.host": "p", "upstream_proxy.port": 1 }), {
    verbose: true,
    upstream_proxy: { host: "p", port: 1 },
  });
});

test("values have short summaries", () => {
  assert.deepEqual([true, false, null, [], ["a"], ["a", "b"], 5].map(valueText), [
    "on",
    "off",
    "none",
    "none",
    "1 line",
    "2 lines",
    "5",
  ]);
});
