import assert from "node:assert/strict";
import { test } from "node:test";
import type { UpstreamTestResult } from "@headworks/capture-contract";
import type { ProbeRequest, ProbeResult } from "#exchange/outgoing.ts";
import { startApi } from "../../../test/api-rig.ts";
import { createUpstreamSlice, readTarget } from "./upstream.slice.ts";

const PASSED: ProbeResult = {
  via: "tunnel",
  steps: [{ name: "Connect to the proxy", ok: true, detail: "127.0.0.1:1", durationMs: 1.234_56 }],
  failure: undefined,
};

async function start(result: ProbeResult = PASSED) {
  const asked: ProbeRequest[] = [];
  const api = await startApi({
    slices: (host) => [
      createUpstreamSlice(host, async (request) => {
        asked.push(request);
        return await Promise.resolve(result);
      }),
    ],
  });
  return { api, asked, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() };
}

const ADDRESS = { protocol: "socks5", host: "proxy.test", port: 1080 } as const;

test("a given proxy is tested as it is, without a bypass list", async () => {
  await using rig = await start();
  const proxy = { ...ADDRESS, auth_username: "u", auth_password: "p" };
  const { status, json } = await rig.api.call("POST", "/api/upstream/test", { target: "mail.test:25", proxy });
  assert.equal(status, 200);
  const result = json as UpstreamTestResult;
  assert.deepEqual(
    { ...result, duration_ms: 0 },
    {
      ok: true,
      target: "mail.test:25",
      via: "tunnel",
      proxy: ADDRESS,
      duration_ms: 0,
      steps: [{ name: "Connect to the proxy", ok: true, detail: "127.0.0.1:1", duration_ms: 1.23 }],
      error: null,
    },
  );
  const [asked] = rig.asked;
  assert.deepEqual(asked && { ...asked, signal: undefined }, {
    proxy: ADDRESS,
    credentials: { username: "u", password: "p" },
    bypass: [],
    target: { host: "mail.test", port: 25, secure: false, path: undefined },
    signal: undefined,
  });
});

test("without one the configured proxy is tested, enabled or not, with its bypass list", async () => {
  await using rig = await start();
  rig.api.settings.patch({
    upstream_proxy: { ...ADDRESS, auth_username: "u", auth_password: "secret", no_proxy_hosts: ["direct.test"] },
  });
  const { status, json } = await rig.api.call("POST", "/api/upstream/test");
  assert.equal(status, 200);
  assert.equal((json as UpstreamTestResult).target, "https://example.com/");
  assert.deepEqual(rig.asked[0]?.credentials, { username: "u", password: "secret" });
  assert.deepEqual(rig.asked[0].bypass, ["direct.test"]);
  assert.deepEqual(rig.asked[0].target, { host: "example.com", port: 443, secure: true, path: "/" });
  assert.ok(!JSON.stringify(json).includes("secret"));
});

test("the configured password is used only for the configured address and user", async () => {
  await using rig = await start();
  rig.api.settings.patch({ upstream_proxy: { ...ADDRESS, auth_username: "u", auth_password: "secret" } });
  const passwordFor = async (proxy: object): Promise<string | undefined> => {
    await rig.api.call("POST", "/api/upstream/test", { proxy });
    return rig.asked.at(-1)?.credentials?.password;
  };
  assert.equal(await passwordFor({ ...ADDRESS, auth_username: "u" }), "secret");
  assert.equal(await passwordFor({ ...ADDRESS, auth_username: "u", auth_password: "other" }), "other");
  for (const other of [{ host: "evil.test" }, { port: 1 }, { protocol: "http" }, { auth_username: "v" }]) {
    assert.equal(await passwordFor({ ...ADDRESS, auth_username: "u", ...other }), "", JSON.stringify(other));
  }
  assert.equal(await passwordFor(ADDRESS), undefined);
});

test("a failure is reported with the code and message an entry would have", async () => {
  const failure = { stage: "connect", side: "upstream", code: "UPSTREAM_PROXY_UNREACHABLE", message: "no" } as const;
  await using rig = await start({ via: "tunnel", steps: [], failure });
  const { json } = await rig.api.call("POST", "/api/upstream/test", { proxy: ADDRESS });
  const { ok, error } = json as UpstreamTestResult;
  assert.deepEqual([ok, error], [false, { code: failure.code, message: "no" }]);
});

test("invalid requests are rejected with the field's path", async () => {
  await using rig = await start();
  for (const [body, path] of [
    [{}, "body/proxy"],
    [{ proxy: { host: "x" } }, "body/proxy/port"],
    [{ proxy: { host: "a\0b", port: 1 } }, "body/proxy/host"],
    [{ proxy: { host: "http://x", port: 1 } }, "body/proxy/host"],
    [{ proxy: ADDRESS, target: "ftp://x/" }, "body/target"],
    [{ proxy: ADDRESS, target: "origin.test" }, "body/target"],
    [{ proxy: ADDRESS, other: 1 }, "body/other"],
  ] as const) {
    const { status, json } = await rig.api.call("POST", "/api/upstream/test", body);
    assert.equal(status, 400, JSON.stringify(body));
    assert.equal((json as { details: readonly { path: string }[] }).details[0]?.path, path);
  }
  const { json } = await rig.api.call("POST", "/api/upstream/test");
  assert.deepEqual(
    [(json as { code: string }).code, (json as { error: string }).error],
    ["VALIDATION_ERROR", "No upstream proxy is configured: weir serve --upstream-proxy HOST:PORT"],
  );
  assert.deepEqual(rig.asked, []);
});

for (const [written, expected] of [
  ["http://a.test", { host: "a.test", port: 80, secure: false, path: "/" }],
  ["https://A.test:8443/p?q#f", { host: "a.test", port: 8443, secure: true, path: "/p?q" }],
  ["https://[::1]/", { host: "::1", port: 443, secure: true, path: "/" }],
  [" a.test:22 ", { host: "a.test", port: 22, secure: false, path: undefined }],
  ["[::1]:22", { host: "::1", port: 22, secure: false, path: undefined }],
  ["http://", undefined],
  ["", undefined],
  ["a b:1", undefined],
  ["a:0", undefined],
  ["http://a:0/", undefined],
] as const) {
  test(`the target ${JSON.stringify(written)} is ${expected === undefined ? "rejected with a message" : "accepted"}`, () => {
    const target = readTarget(written);
    if (expected === undefined) assert.equal(typeof target, "string");
    else assert.deepEqual(target, expected);
  });
}
