import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FEATURES } from "@headworks/capture-contract";
import { temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { ApiError } from "#api/api-error.ts";
import { loadSettings } from "./load-settings.ts";
import { SETTING_FIELDS, valueAt } from "./setting-inputs.ts";
import type { Environment, Flags } from "./setting-sources.ts";
import { type SettingsStore, StartupError } from "./settings.ts";

interface Sources {
  readonly file?: string | object;
  readonly environment?: Environment;
  readonly flags?: Flags;
}

function load(directory: TemporaryDirectory, sources: Sources = {}, warnings: object[] = []): SettingsStore {
  if (sources.file !== undefined) {
    writeFileSync(
      directory.file("config.json"),
      typeof sources.file === "string" ? sources.file : JSON.stringify(sources.file),
    );
  }
  const log = { warn: (facts: object) => void warnings.push(facts), error: () => undefined };
  return loadSettings({
    dataDir: directory.path,
    environment: sources.environment ?? {},
    flags: sources.flags ?? {},
    log,
  });
}

const stored = (directory: TemporaryDirectory): Record<string, unknown> =>
  JSON.parse(readFileSync(directory.file("config.json"), "utf8")) as Record<string, unknown>;

test("defaults are below the file, the file below the environment, the environment below flags", async () => {
  await using directory = await temporaryDirectory();
  const file = { proxy_port: 1001, api_port: 1002, socks_port: 1003, upstream_proxy: { host: "file.test", port: 1 } };
  const environment = { WEIR_API_PORT: "2002", WEIR_SOCKS_PORT: "2003", SERVICE_SOCKS_PORT: "2999" };
  const settings = load(directory, { file, environment, flags: { "socks-port": "3003" } });
  const { proxy_port, api_port, socks_port, max_requests, upstream_proxy } = settings.running;
  assert.deepEqual(
    [proxy_port, api_port, socks_port, max_requests, upstream_proxy.host],
    [1001, 2002, 3003, 100_000, "file.test"],
  );
  const sources = Object.fromEntries(settings.describe().map(({ name, source }) => [name, source]));
  assert.equal(sources["proxy_port"], "file");
  assert.equal(sources["api_port"], "environment");
  assert.equal(sources["socks_port"], "flag");
  assert.equal(sources["max_requests"], "default");
});

test("variables and flags set the fields they are meant for, in both spellings", async () => {
  await using directory = await temporaryDirectory();
  const table: readonly (readonly [Sources, string, unknown])[] = [
    [{ environment: { WEIR_ENABLE_SOCKS: "true" } }, "enable_socks", true],
    [{ environment: { SERVICE_ENABLE_SOCKS: "1" } }, "enable_socks", true],
    [{ environment: { SERVICE_SOCKS_USERNAME: "u", SERVICE_SOCKS_PASSWORD: "p" } }, "socks_auth_password", "p"],
    [{ environment: { SERVICE_UPSTREAM_PROXY: "proxy.test:3128" } }, "upstream_proxy.port", 3128],
    [{ environment: { WEIR_UPSTREAM_PROXY: "[::1]:3128" } }, "upstream_proxy.host", "::1"],
    [{ environment: { WEIR_UPSTREAM_PROXY: "proxy.test:3128" } }, "upstream_proxy.enabled", true],
    [
      { environment: { WEIR_UPSTREAM_PROXY: "proxy.test:3128", WEIR_UPSTREAM_PROXY_ENABLED: "off" } },
      "upstream_proxy.enabled",
      false,
    ],
    [{ environment: { WEIR_UPSTREAM_PROTOCOL: "socks5" } }, "upstream_proxy.protocol", "socks5"],
    [{ environment: { WEIR_UPSTREAM_AUTH: "user:pa:ss" } }, "upstream_proxy.auth_password", "pa:ss"],
    [
      { environment: { SERVICE_UPSTREAM_NO_PROXY: "b.test, A.test,,b.test" } },
      "upstream_proxy.no_proxy_hosts",
      ["a.test", "b.test"],
    ],
    [{ environment: { WEIR_NO_HTTPS: "yes" } }, "intercept_https", false],
    [{ environment: { WEIR_HOST_IP: "192.168.7.7" } }, "public_ip", "192.168.7.7"],
    [{ environment: { WEIR_ALLOWED_IPS: "10.0.0.0/8,::1" } }, "allowed_ips", ["10.0.0.0/8", "::1"]],
    [{ environment: { WEIR_MAX_TOTAL_SIZE_MB: "" } }, "max_total_size_mb", null],
    [{ flags: { "no-https": true } }, "intercept_https", false],
    [{ flags: { "allowed-ip": ["10.0.0.1", "::1"] } }, "allowed_ips", ["10.0.0.1", "::1"]],
    [{ flags: { "upstream-proxy": "proxy.test:1", "upstream-protocol": "https" } }, "upstream_proxy.protocol", "https"],
    [{ flags: { "public-ip": "null" } }, "public_ip", null],
    [{ flags: { "max-requests": 5 } }, "max_requests", 5],
    [{ flags: { host: "0.0.0.0", "api-host": "::1" } }, "api_host", "::1"],
    [{ flags: { "socks-username": "u" } }, "socks_auth_username", "u"],
  ];
  for (const [sources, name, expected] of table) {
    const field = SETTING_FIELDS.find((candidate) => candidate.name === name);
    assert.ok(field, name);
    assert.deepEqual(valueAt(load(directory, sources).running, field), expected, JSON.stringify(sources));
  }
});

test("a value that cannot be used stops the start with a sentence naming where it stands", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("config.json");
  const table: readonly (readonly [Sources, string])[] = [
    [
      { environment: { WEIR_PROXY_PORT: "eighty" } },
      'WEIR_PROXY_PORT must be a whole number from 0 to 65535; it is "eighty"',
    ],
    [
      { environment: { WEIR_PROXY_PORT: "70000" } },
      'WEIR_PROXY_PORT must be a whole number from 0 to 65535; it is "70000"',
    ],
    [
      { environment: { SERVICE_UPSTREAM_PROTOCOL: "ftp" } },
      'SERVICE_UPSTREAM_PROTOCOL must be one of http, https, socks5; it is "ftp"',
    ],
    [{ environment: { WEIR_INTERCEPT_HTTPS: "maybe" } }, 'WEIR_INTERCEPT_HTTPS must be true or false; it is "maybe"'],
    [
      { environment: { WEIR_UPSTREAM_PROXY: "proxy.test" } },
      "WEIR_UPSTREAM_PROXY must be host:port; the port is missing",
    ],
    [
      { environment: { WEIR_UPSTREAM_PROXY: "http://proxy.test:1" } },
      "WEIR_UPSTREAM_PROXY must be host:port. Write an IPv6 address in brackets, such as [::1]:443",
    ],
    [{ environment: { WEIR_UPSTREAM_AUTH: "nobody" } }, "WEIR_UPSTREAM_AUTH must be user:pass"],
    [{ environment: { WEIR_PUBLIC_IP: "example.com" } }, "WEIR_PUBLIC_IP must be an IP address or null"],
    [
      { flags: { "allowed-ip": ["10.0.0.300"] } },
      '--allowed-ip "10.0.0.300" is neither an IP address nor a CIDR block',
    ],
    [
      { flags: { "ignored-domain": "http://x" } },
      '--ignored-domain "http://x": Give a host without a scheme, such as example.com',
    ],
    [{ flags: { "allowed-api-host": "*" } }, '--allowed-api-host "*" would allow every name'],
    [{ flags: { "no-such": "1" } }, "--no-such is not a setting"],
    [
      { flags: { "upstream-proxy-enabled": true } },
      "The setting upstream_proxy.host is required when the upstream proxy is enabled",
    ],
    [{ flags: { "socks-password": "p" } }, "The setting socks_auth_password needs socks_auth_username"],
    [{ file: { proxy_port: "8888" } }, `${path}: proxy_port must be integer`],
    [
      { file: { upstream_proxy: { protocol: "ftp" } } },
      `${path}: upstream_proxy.protocol must be one of "http", "https", "socks5"`,
    ],
    [{ file: { upstream_proxy: 5 } }, `${path}: upstream_proxy must be an object`],
    [{ file: { ignored_domains: ["ok.test", 5] } }, `${path}: ignored_domains entry 1 must be string`],
    [
      { file: { allowed_ips: ["nonsense"] } },
      `${path}: allowed_ips "nonsense" is neither an IP address nor a CIDR block`,
    ],
    [{ file: "[]" }, `${path} must hold a JSON object`],
    [{ file: "" }, `${path} is not valid JSON: the file is empty`],
    [
      { file: '{\n  "proxy_port": 1,\n  oops\n}' },
      `${path} is not valid JSON: line 3, column 3: Expected double-quoted property name`,
    ],
  ];
  for (const [sources, message] of table) {
    assert.throws(
      () => load(directory, { file: {}, ...sources }),
      (error) => {
        assert.ok(error instanceof StartupError, String(error));
        assert.equal(error.message, message);
        return true;
      },
    );
  }
});

test("a malformed file is left as it is", async () => {
  await using directory = await temporaryDirectory();
  assert.throws(() => load(directory, { file: "{ broken" }), StartupError);
  assert.equal(readFileSync(directory.file("config.json"), "utf8"), "{ broken");
});

test("keys that are no settings are named in a warning and survive a change", async () => {
  await using directory = await temporaryDirectory();
  const warnings: object[] = [];
  const file = { plugin_config: { enabled: true }, proxyport: 1, upstream_proxy: { hots: "x" }, verbose: true };
  const settings = load(directory, { file }, warnings);
  assert.deepEqual(warnings, [
    { path: directory.file("config.json"), keys: ["plugin_config", "proxyport", "upstream_proxy.hots"] },
  ]);
  settings.patch({ max_requests: 7 });
  assert.deepEqual(stored(directory), { ...file, max_requests: 7 });
});

test("a change is normalized, persisted in a private file, published once and survives a restart", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory);
  const seen: number[] = [];
  settings.onChange((running, previous) => seen.push(running.max_requests, previous.max_requests));
  settings.patch({ ignored_domains: [" B.test ", "a.test", "b.TEST"], max_requests: 5 });
  assert.deepEqual(settings.running.ignored_domains, ["a.test", "b.test"]);
  assert.deepEqual(seen, [5, 100_000]);
  assert.deepEqual(stored(directory), { ignored_domains: ["a.test", "b.test"], max_requests: 5 });
  assert.equal(statSync(directory.file("config.json")).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(directory.path), ["config.json"]);
  assert.deepEqual(load(directory).running, settings.running);
});

test("a change goes where the file's link leads, also to a file that is not there yet", async () => {
  await using directory = await temporaryDirectory();
  mkdirSync(directory.file("versioned"));
  symlinkSync(directory.file("hop"), directory.file("config.json"));
  symlinkSync(join("versioned", "weir.json"), directory.file("hop"));
  const settings = load(directory);
  for (const change of [{ max_requests: 5 }, { max_requests: 6 }]) {
    settings.patch(change);
    assert.deepEqual(JSON.parse(readFileSync(directory.file("versioned", "weir.json"), "utf8")), change);
    assert.ok(lstatSync(directory.file("config.json")).isSymbolicLink());
  }
  assert.deepEqual(readdirSync(directory.file("versioned")), ["weir.json"]);
});

test("a change that changes nothing writes nothing", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory, { flags: { "max-requests": 9 } });
  let published = 0;
  settings.onChange(() => (published += 1));
  settings.patch({});
  settings.patch({ max_requests: 9, ignored_domains: [] });
  assert.equal(published, 0);
  assert.deepEqual(readdirSync(directory.path), []);
});

test("one bad field refuses the whole change and names every bad one", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory);
  const before = settings.running;
  const table: readonly (readonly [object, readonly string[]])[] = [
    [{ max_requests: 5, allowed_ips: ["10.0.0.1", "x"] }, ["body/allowed_ips"]],
    [{ ignored_domains: ["a/b"], public_ip: "nope" }, ["body/ignored_domains", "body/public_ip"]],
    [{ max_requests: -1 }, ["body/max_requests"]],
    [{ max_requests: null }, ["body/max_requests"]],
    [{ upstream_proxy: { enabled: true } }, ["body/upstream_proxy/host", "body/upstream_proxy/port"]],
    [{ upstream_proxy: { protocol: "ftp" } }, ["body/upstream_proxy/protocol"]],
    [{ upstream_proxy: { auth_password: "x" } }, ["body/upstream_proxy/auth_password"]],
    [{ socks_auth_password: "x" }, ["body/socks_auth_password"]],
    [{ socks_auth_username: 5 }, ["body/socks_auth_username"]],
    [{ no_such: 1 }, ["body/no_such"]],
    [{ upstream_proxy: { hots: 1 } }, ["body/upstream_proxy/hots"]],
    [{ mirror: { output_dir: "relative/folder" } }, ["body/mirror/output_dir"]],
    [{ mirror: { output_dir: "/a\0b", host_filter: ["a b"] } }, ["body/mirror/output_dir", "body/mirror/host_filter"]],
    [{ mirror: { output_dir: directory.path } }, ["body/mirror/output_dir"]],
    [{ auto_save: { output_dir: directory.file("decoded") } }, ["body/auto_save/output_dir"]],
    [{ mirror: { output_dir: directory.file("logs/x") }, proxy_port: 5 }, ["body/mirror/output_dir"]],
    [
      { auto_save: { output_dir: "~/backups", rotate_after_minutes: -1 } },
      ["body/auto_save/output_dir", "body/auto_save/rotate_after_minutes"],
    ],
    [{ host: "a b" }, ["body/host"]],
  ];
  for (const [change, paths] of table) {
    assert.throws(
      () => settings.patch(change),
      (error) => {
        assert.ok(error instanceof ApiError);
        assert.equal(error.code, "VALIDATION_ERROR");
        assert.deepEqual(
          error.details?.map((detail) => detail.path),
          paths,
          JSON.stringify(change),
        );
        return true;
      },
    );
  }
  assert.equal(settings.running, before);
  assert.deepEqual(readdirSync(directory.path), []);
});

test("null clears what may be empty, and clearing a user clears the password with it", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory);
  settings.patch({
    public_ip: "203.0.113.1",
    max_total_size_mb: 5,
    socks_auth_username: "u",
    socks_auth_password: "p",
    upstream_proxy: { auth_username: "u", auth_password: "p" },
  });
  settings.patch({
    public_ip: null,
    max_total_size_mb: null,
    socks_auth_username: null,
    upstream_proxy: { auth_username: null },
  });
  const { public_ip, max_total_size_mb, socks_auth_username, socks_auth_password, upstream_proxy } =
    settings.configured;
  assert.deepEqual([public_ip, max_total_size_mb, socks_auth_username, socks_auth_password], [null, null, null, null]);
  assert.deepEqual([upstream_proxy.auth_username, upstream_proxy.auth_password], [null, null]);
});

test("what GET shows may be sent back: its derived fields are no changes", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory);
  settings.patch({
    max_requests: 8,
    socks_auth_enabled: true,
    access_control_enabled: true,
    shown_host: "10.0.0.1",
    upstream_proxy: { auth_enabled: true },
  });
  assert.deepEqual(stored(directory), { max_requests: 8 });
});

test("each field takes effect when its schema says: now, or after a restart", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory, {
    file: { upstream_proxy: { host: "a.test", port: 1, auth_username: "a" }, socks_auth_username: "s" },
  });
  const leaf = CertificateAuthority.create().issueLeaf({ dns: ["weir.test"] }, { purpose: "client" });
  writeFileSync(directory.file("client.pem"), leaf.chainPem + leaf.keyPem);
  for (const field of SETTING_FIELDS) {
    const isCertificates = field.name === "upstream_client_certificates";
    const other = isCertificates
      ? [`x.test=${directory.file("client.pem")}`]
      : otherValue(field.name, field.schema, valueAt(settings.configured, field));
    const [head = "", tail] = field.name.split(".");
    const before = valueAt(settings.running, field);
    settings.patch(tail === undefined ? { [head]: other } : { [head]: { [tail]: other } });
    assert.deepEqual(valueAt(settings.configured, field), other, field.name);
    const described = settings.describe().find(({ name }) => name === field.name);
    assert.ok(described);
    assert.deepEqual(valueAt(settings.running, field), field.applies === "restart" ? before : other, field.name);
    assert.equal(described.restart_pending, field.applies === "restart", field.name);
    assert.equal(described.applies, field.applies);
    assert.equal(described.source, "file");
    if (field.isSecret) assert.equal(described.value, "[REDACTED]");
  }
  assert.deepEqual(load(directory).running, settings.configured);
});

test("what a flag or the environment gives wins at the next start, and a change of it says so", async () => {
  await using directory = await temporaryDirectory();
  const sources = { flags: { "proxy-port": 9000, "max-requests": 9 }, environment: { WEIR_SOCKS_PORT: "9100" } };
  const settings = load(directory, sources);
  const described = (...names: string[]) =>
    names.map((name) => {
      const { value, running, source, restart_pending, overridden_by } =
        settings.describe().find((field) => field.name === name) ?? assert.fail(name);
      return [value, running, source, restart_pending, overridden_by];
    });
  const names = ["proxy_port", "max_requests", "socks_port"];
  assert.deepEqual(described(...names), [
    [9000, 9000, "flag", false, undefined],
    [9, 9, "flag", false, undefined],
    [9100, 9100, "environment", false, undefined],
  ]);
  settings.patch({ proxy_port: 9001, max_requests: 7, socks_port: 9101 });
  assert.deepEqual(described(...names), [
    [9001, 9000, "flag", false, "flag"],
    [7, 7, "flag", false, "flag"],
    [9101, 9100, "environment", false, "environment"],
  ]);
  assert.deepEqual(stored(directory), { proxy_port: 9001, max_requests: 7, socks_port: 9101 });
  const { proxy_port, max_requests, socks_port } = load(directory, sources).running;
  assert.deepEqual([proxy_port, max_requests, socks_port], [9000, 9, 9100]);
  settings.patch({ proxy_port: 9000, max_requests: 9, socks_port: 9100 });
  assert.deepEqual(
    described(...names).map(([, , , , winner]) => winner),
    [undefined, undefined, undefined],
  );
});

/** A valid value that differs from `current`. */
function otherValue(name: string, schema: object, current: unknown): unknown {
  const { type, enum: choices, anyOf } = schema as { type?: string; enum?: string[]; anyOf?: object[] };
  if (name === "log_config.rotation") return { mode: "size", size_mb: 5 };
  if (anyOf) return otherValue(name, anyOf[0] ?? {}, current);
  if (choices) return choices.find((choice) => choice !== current);
  if (name === "public_ip") return "203.0.113.9";
  if (name === "allowed_ips") return ["10.0.0.0/8"];
  if (name === "tls_min_version") return ["x.test=1.3"];
  if (name.endsWith("_dirs")) return ["/srv/answers"];
  if (name === "disabled_features") return [...FEATURES];
  if (name.endsWith("_dir")) return "/srv/files";
  if (type === "boolean") return current !== true;
  if (type === "integer") return typeof current === "number" ? current + 1 : 17;
  return type === "array" ? ["x.test"] : "other.test";
}

test("what says the same as null is null", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory, { file: { auto_save: { rotate_after_minutes: 0 } } });
  settings.patch({ mirror: { output_dir: "/a", host_filter: ["B.test", "a.test"] } });
  assert.deepEqual(settings.running.mirror.host_filter, ["a.test", "b.test"]);
  settings.patch({ mirror: { output_dir: "", host_filter: [] }, auto_save: { rotate_after_requests: 0 } });
  const { mirror, auto_save: autoSave } = settings.running;
  assert.deepEqual([mirror.output_dir, mirror.host_filter], [null, null]);
  assert.deepEqual([autoSave.rotate_after_requests, autoSave.rotate_after_minutes], [null, null]);
});

test("a change that cannot be saved is refused and is not in force", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory);
  mkdirSync(directory.file("config.json"));
  assert.throws(() => settings.patch({ max_requests: 5 }), { code: "SERVICE_UNAVAILABLE" });
  assert.equal(settings.running.max_requests, 100_000);
});

test("a change is refused while the file holds something else than settings", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory);
  writeFileSync(directory.file("config.json"), "{ half");
  assert.throws(
    () => settings.patch({ max_requests: 5 }),
    (error) => error instanceof ApiError && error.code === "SERVICE_UNAVAILABLE" && error.message.includes("line 1"),
  );
  assert.equal(readFileSync(directory.file("config.json"), "utf8"), "{ half");
  assert.equal(settings.running.max_requests, 100_000);
});

test("a listener that fails keeps nobody else from the news", async () => {
  await using directory = await temporaryDirectory();
  const settings = load(directory);
  let heard = 0;
  settings.onChange(() => {
    throw new Error("broken");
  });
  const stop = settings.onChange(() => (heard += 1));
  settings.patch({ max_requests: 1 });
  stop();
  settings.patch({ max_requests: 2 });
  assert.equal(heard, 1);
});
