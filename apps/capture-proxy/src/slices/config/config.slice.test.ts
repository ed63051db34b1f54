import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigField, ProxyConfig } from "@headworks/capture-contract";
import { createRuleBundles } from "#portable/rule-bundles.ts";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createConfigSlice } from "./config.slice.ts";

const startConfig = (flags: Record<string, string | boolean> = {}): Promise<ApiRig> =>
  startApi({
    flags,
    slices: (host) => [
      createConfigSlice(
        host,
        createRuleBundles(host, () => []),
      ),
    ],
  });
const SECRET = "hunter2-hunter2";

async function get(api: ApiRig): Promise<ProxyConfig> {
  return (await api.call("GET", "/api/config")).json as ProxyConfig;
}

test("the configuration shows every field but passwords, and what follows from it", async () => {
  await using api = await startConfig({
    "socks-username": "u",
    "socks-password": SECRET,
    "upstream-auth": `u:${SECRET}`,
    "allowed-ip": "10.0.0.1",
    "public-ip": "203.0.113.5",
  });
  const config = await get(api);
  assert.equal(config.proxy_port, 8888);
  assert.equal(config.shown_host, "203.0.113.5");
  assert.equal(config.socks_auth_enabled, true);
  assert.equal(config.access_control_enabled, true);
  assert.equal(config.upstream_proxy.auth_enabled, true);
  assert.equal("verbose" in config, false);
  for (const path of ["/api/config", "/api/config/fields"]) {
    assert.doesNotMatch(JSON.stringify((await api.call("GET", path)).json), new RegExp(SECRET));
  }
});

test("what GET shows can be sent back and changes nothing", async () => {
  await using api = await startConfig({ "socks-username": "u" });
  const before = await get(api);
  const { status, json } = await api.call("PATCH", "/api/config", before);
  assert.equal(status, 200, JSON.stringify(json));
  assert.deepEqual(json, { ...before, verbose: false });
  assert.deepEqual(await get(api), before);
});

test("a change answers the whole configuration with verbose, and never the password it set", async () => {
  await using api = await startConfig();
  const { status, json } = await api.call("PATCH", "/api/config", {
    verbose: true,
    passthrough_domains: [" B.test", "a.test"],
    upstream_proxy: { host: "proxy.test", port: 3128, auth_username: "u", auth_password: SECRET },
  });
  assert.equal(status, 200, JSON.stringify(json));
  const config = json as ProxyConfig;
  assert.equal(config.verbose, true);
  assert.deepEqual(config.passthrough_domains, ["a.test", "b.test"]);
  assert.deepEqual(config.upstream_proxy, {
    enabled: false,
    protocol: "http",
    host: "proxy.test",
    port: 3128,
    auth_username: "u",
    auth_enabled: true,
    no_proxy_hosts: [],
  });
  assert.doesNotMatch(JSON.stringify(json), new RegExp(SECRET));
});

test("one invalid field refuses the whole change and is named", async () => {
  await using api = await startConfig();
  const before = await get(api);
  const table: readonly (readonly [object, string])[] = [
    [{ max_requests: 5, max_body_size: -1 }, "body/max_body_size"],
    [{ max_requests: 1_000_001 }, "body/max_requests"],
    [{ max_requests: "5" }, "body/max_requests"],
    [{ max_request: 5 }, "body/max_request"],
    [{ allowed_ips: ["300.1.1.1"] }, "body/allowed_ips"],
    [{ upstream_proxy: { protocol: "gopher" } }, "body/upstream_proxy/protocol"],
    [{ upstream_proxy: { password: "x" } }, "body/upstream_proxy/password"],
    [{ socks_auth_password: 5 }, "body/socks_auth_password"],
    [{ socks_port: 0 }, "body/socks_port"],
    [{ public_ip: "not-an-ip" }, "body/public_ip"],
    [{ passthrough_domains: ["https://x"] }, "body/passthrough_domains"],
    [{ passthrough_domains: "x.test" }, "body/passthrough_domains"],
    [{ allowed_api_hosts: ["*"] }, "body/allowed_api_hosts"],
  ];
  for (const [change, path] of table) {
    const { status, json } = await api.call("PATCH", "/api/config", change);
    assert.equal(status, 400, JSON.stringify(change));
    const { code, details } = json as { code: string; details: { path: string }[] };
    assert.equal(code, "VALIDATION_ERROR");
    assert.deepEqual(
      details.map((detail) => detail.path),
      [path],
    );
  }
  assert.deepEqual(await get(api), before);
});

test("each field says where its value came from, when it applies and whether it waits for a restart", async () => {
  await using api = await startConfig({ "proxy-port": "9000" });
  await api.call("PATCH", "/api/config", { proxy_port: 9001, socks_port: 9002, max_requests: 7 });
  const fields = (await api.call("GET", "/api/config/fields")).json as ConfigField[];
  const field = (name: string): Partial<ConfigField> => {
    const {
      schema: _schema,
      description: _description,
      ...rest
    } = fields.find((candidate) => candidate.name === name) ?? assert.fail(name);
    return rest;
  };
  assert.deepEqual(field("proxy_port"), {
    name: "proxy_port",
    applies: "restart",
    source: "flag",
    default: 8888,
    value: 9001,
    running: 9000,
    restart_pending: false,
    overridden_by: "flag",
    environment: "WEIR_PROXY_PORT",
    flag: "--proxy-port",
  });
  assert.deepEqual(field("socks_port"), {
    name: "socks_port",
    applies: "restart",
    source: "file",
    default: 1080,
    value: 9002,
    running: 1080,
    restart_pending: true,
    environment: "WEIR_SOCKS_PORT",
    flag: "--socks-port",
  });
  assert.deepEqual(field("max_requests"), {
    name: "max_requests",
    applies: "now",
    source: "file",
    default: 100_000,
    value: 7,
    running: 7,
    restart_pending: false,
    environment: "WEIR_MAX_REQUESTS",
    flag: "--max-requests",
  });
});
