import assert from "node:assert/strict";
import { test } from "node:test";
import {
  environmentName,
  flagName,
  nested,
  parseSettingText,
  SETTING_FIELDS,
  SETTING_INPUTS,
  settingField,
  valueAt,
} from "./setting-inputs.ts";
import { normalizeSetting, settingProblem } from "./setting-rules.ts";

test("text is read by the schema of its field", () => {
  const boolean = { type: "boolean" };
  const integer = { type: "integer" };
  const list = { type: "array" };
  const nullable = { anyOf: [integer, { type: "null" }] };
  const table: readonly (readonly [object, string, unknown])[] = [
    [boolean, "TRUE", true],
    [boolean, "off", false],
    [boolean, "2", undefined],
    [boolean, "", undefined],
    [integer, "42", 42],
    [integer, "-1", -1],
    [integer, "0x10", undefined],
    [integer, "1e3", undefined],
    [integer, "", undefined],
    [integer, "9".repeat(30), undefined],
    [list, "a, b,,c ", ["a", "b", "c"]],
    [list, "", []],
    [{ type: "string", enum: ["http"] }, "http", "http"],
    [{ type: "string", enum: ["http"] }, "HTTP", undefined],
    [{ type: "string" }, " as it is ", " as it is "],
    [nullable, "null", null],
    [nullable, "", null],
    [nullable, "7", 7],
    [nullable, "x", undefined],
  ];
  for (const [schema, text, expected] of table) {
    const parsed = parseSettingText(schema, text);
    if (expected === undefined) assert.ok("problem" in parsed, `${JSON.stringify(schema)} ${text}`);
    else assert.deepEqual(parsed, { value: expected }, text);
  }
});

test("every default satisfies its own schema and rules", () => {
  for (const field of SETTING_FIELDS) {
    assert.deepEqual(field.problems(field.default), [], field.name);
    assert.equal(settingProblem(field.name, normalizeSetting(field.name, field.default)), undefined, field.name);
  }
});

test("every field can be set from the environment and from the command line, and no two share a name", () => {
  const variables = SETTING_INPUTS.flatMap((input) => input.environment);
  assert.equal(new Set(variables).size, variables.length);
  const flags = SETTING_INPUTS.flatMap((input) => (input.flag === null ? [] : [input.flag]));
  assert.equal(new Set(flags).size, flags.length);
  for (const field of SETTING_FIELDS) {
    assert.match(environmentName(field), /^WEIR_[A-Z0-9_]+$/, field.name);
    assert.match(flagName(field) ?? "", /^--[a-z0-9-]+$/, field.name);
  }
});

test("the specification's variables and flags exist", () => {
  const flags = new Set(SETTING_INPUTS.map((input) => input.flag));
  for (const flag of [
    "upstream-proxy-enabled",
    "upstream-proxy",
    "upstream-protocol",
    "upstream-auth",
    "upstream-no-proxy",
    "enable-socks",
    "socks-port",
    "socks-username",
    "socks-password",
    "no-https",
    "host",
  ]) {
    assert.ok(flags.has(flag), flag);
  }
  const variables = new Set(SETTING_INPUTS.flatMap((input) => input.environment));
  for (const name of [
    "UPSTREAM_PROXY_ENABLED",
    "UPSTREAM_PROXY",
    "UPSTREAM_PROTOCOL",
    "UPSTREAM_AUTH",
    "UPSTREAM_NO_PROXY",
    "ENABLE_SOCKS",
    "SOCKS_PORT",
    "SOCKS_USERNAME",
    "SOCKS_PASSWORD",
  ]) {
    assert.ok(variables.has(name), name);
  }
});

test("passwords and nothing else are secrets", () => {
  assert.deepEqual(
    SETTING_FIELDS.filter((field) => field.isSecret).map((field) => field.name),
    ["socks_auth_password", "upstream_proxy.auth_password"],
  );
});

test("flat and nested forms are the same values", () => {
  const flat = Object.fromEntries(SETTING_FIELDS.map((field) => [field.name, field.default]));
  const settings = nested(flat);
  for (const field of SETTING_FIELDS) assert.deepEqual(valueAt(settings, field), field.default);
  const host = settingField("upstream_proxy.host");
  assert.ok(host);
  assert.equal(valueAt({ upstream_proxy: null }, host), undefined);
  assert.equal(valueAt(5, host), undefined);
});
