import assert from "node:assert/strict";
import { test } from "node:test";
import { Command } from "commander";
import { addSettingOptions, settingFlags } from "#cli/serve.ts";
import { SETTING_FIELDS, SETTING_INPUTS } from "#settings/setting-inputs.ts";
import { type Flags, valuesOfFlags } from "#settings/setting-sources.ts";

function parsed(args: readonly string[]): Flags {
  const command = new Command("serve").exitOverride().configureOutput({ writeErr: () => undefined });
  addSettingOptions(command);
  command.parse(args, { from: "user" });
  return settingFlags(command);
}

const cases: readonly (readonly [string, Flags])[] = [
  ["", {}],
  [
    "-p 9000 -a 9001 -H 0.0.0.0 -m 5 -v",
    { "proxy-port": "9000", "api-port": "9001", host: "0.0.0.0", "max-requests": "5", verbose: true },
  ],
  ["--no-https", { "no-https": true }],
  ["--no-intercept-https", { "intercept-https": false }],
  ["--intercept-https", { "intercept-https": true }],
  ["--allowed-ip 10.0.0.1 --allowed-ip 10.1.0.0/16", { "allowed-ip": ["10.0.0.1", "10.1.0.0/16"] }],
  [
    "--public-ip 192.0.2.1 --upstream-ca roots.pem --upstream-insecure",
    { "public-ip": "192.0.2.1", "upstream-ca": "roots.pem", "upstream-insecure": true },
  ],
  ["--upstream-proxy proxy:3128 --upstream-auth a:b", { "upstream-proxy": "proxy:3128", "upstream-auth": "a:b" }],
  [
    "--upstream-proxy-enabled --upstream-protocol socks5",
    { "upstream-proxy-enabled": true, "upstream-protocol": "socks5" },
  ],
];
for (const [line, flags] of cases) {
  test(`the flags ${JSON.stringify(line)} reach the settings as they were given`, () => {
    assert.deepEqual(parsed(line.split(" ").filter((word) => word !== "")), flags);
  });
}

test("a value that no setting takes is a wrong command line", () => {
  for (const [line, message] of [
    ["-p abc", '--proxy-port must be a whole number from 0 to 65535; it is "abc"'],
    ["--proxy-port 70000", /^--proxy-port must be /],
    ["--upstream-proxy nowhere", /^--upstream-proxy must be host:port/],
    ["--allowed-ip nonsense", /^--allowed-ip "nonsense" is neither/],
  ] as const) {
    assert.throws(() => parsed(line.split(" ")), { name: "CommandFailure", exitCode: 2, message }, line);
  }
});

test("every setting with a flag is on the command line, described, and understood by the settings", () => {
  const command = new Command("serve");
  addSettingOptions(command);
  const known = new Map(command.options.map((option) => [option.long, option]));
  for (const input of SETTING_INPUTS) {
    if (input.flag === null) continue;
    const option = known.get(`--${input.flag}`);
    assert.ok(option, `--${input.flag}`);
    assert.match(option.description, /env WEIR_[A-Z]/);
    assert.deepEqual(option.argChoices, input.choices && [...input.choices], input.flag);
  }
  assert.deepEqual(known.get("--upstream-protocol")?.argChoices, ["http", "https", "socks5"]);
  assert.equal(known.get("--max-total-size-mb")?.flags, "--max-total-size-mb <number>");
  for (const field of SETTING_FIELDS) {
    if (typeof field.default !== "number" || field.name.includes(".")) continue;
    const option = known.get(`--${field.name.replaceAll("_", "-")}`);
    assert.match(option?.description ?? "", new RegExp(`default ${field.default}\\b`), field.name);
  }
});

test("two flags never share a letter or a name", () => {
  const command = new Command("serve");
  addSettingOptions(command);
  const names = command.options.flatMap((option) => [option.short, option.long]).filter((name) => name !== undefined);
  assert.equal(new Set(names).size, names.length);
});

test("a switch given twice is what was said last", () => {
  assert.deepEqual(valuesOfFlags(parsed(["--capture-enabled", "--no-capture-enabled"])), { capture_enabled: false });
});
