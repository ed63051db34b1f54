import assert from "node:assert/strict";
import { test } from "node:test";
import { proxyProblem, socksAddress, socksStatus, upstreamAddress, upstreamStatus } from "./listener-status.ts";

type Values = Readonly<Record<string, unknown>>;

/** Running settings, and differing configured ones. */
function fields(running: Values, configured: Values = {}) {
  return Object.entries(running).map(([name, value]) => ({
    name,
    running: value,
    value: name in configured ? configured[name] : value,
  }));
}

const SOCKS = { enable_socks: true, socks_port: 1080, socks_auth_username: null, host: "127.0.0.1", allowed_ips: [] };

test("the SOCKS listener is told as it runs, with what the next start changes", () => {
  const cases: readonly [Values, Values, string, RegExp][] = [
    [{ ...SOCKS, enable_socks: false }, {}, "idle", /^Off/u],
    [{ ...SOCKS, enable_socks: false }, { enable_socks: true }, "waiting", /after a restart/u],
    [SOCKS, {}, "good", /port 1080, without a password/u],
    [{ ...SOCKS, socks_auth_username: "ann" }, {}, "good", /credentials of ann/u],
    [SOCKS, { enable_socks: false }, "waiting", /until restart/u],
  ];
  for (const [running, configured, tone, text] of cases) {
    const status = socksStatus(fields(running, configured));
    assert.equal(status.tone, tone);
    assert.match(status.text, text);
  }
});

test("clients get an address that they can reach, and an open one is called so", () => {
  assert.equal(socksAddress(fields({ ...SOCKS, enable_socks: false }), "10.0.0.5"), null);
  const cases: readonly [Values, string, boolean][] = [
    [{}, "socks5h://127.0.0.1:1080", false],
    [{ host: "0.0.0.0" }, "socks5h://10.0.0.5:1080", true],
    [{ host: "::" }, "socks5h://10.0.0.5:1080", true],
    [{ host: "::1" }, "socks5h://[::1]:1080", false],
    [{ host: "0.0.0.0", socks_auth_username: "ann" }, "socks5h://10.0.0.5:1080", false],
    [{ host: "0.0.0.0", allowed_ips: ["10.0.0.0/8"] }, "socks5h://10.0.0.5:1080", false],
  ];
  for (const [change, url, isOpen] of cases) {
    assert.deepEqual(socksAddress(fields({ ...SOCKS, ...change }), "10.0.0.5"), { url, isOpen });
  }
});

const UPSTREAM = {
  "upstream_proxy.enabled": true,
  "upstream_proxy.protocol": "http",
  "upstream_proxy.host": "proxy.example",
  "upstream_proxy.port": 3128,
  "upstream_proxy.no_proxy_hosts": [],
};

test("the upstream proxy is told as it runs, with what the next start changes", () => {
  const off = { ...UPSTREAM, "upstream_proxy.enabled": false };
  const cases: readonly [Values, Values, string, RegExp][] = [
    [off, {}, "idle", /directly/u],
    [off, { "upstream_proxy.enabled": true }, "waiting", /http:\/\/proxy\.example:3128 after restart/u],
    [UPSTREAM, {}, "good", /through http:\/\/proxy\.example:3128$/u],
    [{ ...UPSTREAM, "upstream_proxy.no_proxy_hosts": ["a", "b"] }, {}, "good", /except 2 entries/u],
    [UPSTREAM, { "upstream_proxy.enabled": false }, "waiting", /until restart/u],
    [
      UPSTREAM,
      { "upstream_proxy.port": 8080 },
      "waiting",
      /:3128; through http:\/\/proxy\.example:8080 after restart/u,
    ],
  ];
  for (const [running, configured, tone, text] of cases) {
    const status = upstreamStatus(fields(running, configured));
    assert.equal(status.tone, tone, status.text);
    assert.match(status.text, text);
  }
});

test("an upstream proxy without host or port has no address", () => {
  assert.equal(upstreamAddress(fields({ ...UPSTREAM, "upstream_proxy.host": "" }), "configured"), null);
  assert.equal(upstreamAddress(fields({ ...UPSTREAM, "upstream_proxy.port": 0 }), "configured"), null);
  assert.equal(
    upstreamAddress(fields({ ...UPSTREAM, "upstream_proxy.host": "fd00::1" }), "running"),
    "http://[fd00::1]:3128",
  );
});

test("trouble at the upstream proxy is over once a server was reached again", () => {
  const entry = (id: string, code: string | null, source = "upstream") => ({
    id,
    source,
    failure: code === null ? null : { code, message: "m" },
    response: code === null ? {} : null,
  });
  assert.equal(proxyProblem([entry("1", null), entry("2", "UPSTREAM_REFUSED")]), null);
  assert.deepEqual(proxyProblem([entry("3", "UPSTREAM_PROXY_AUTH"), entry("2", null)])?.isLatest, true);
  // Weir's own responses say nothing about the upstream proxy.
  assert.deepEqual(proxyProblem([entry("4", null, "slice"), entry("3", "UPSTREAM_PROXY_AUTH")])?.isLatest, true);
  const over = proxyProblem([entry("4", null), entry("3", "UPSTREAM_PROXY_AUTH")]);
  assert.deepEqual([over?.entry.id, over?.isLatest], ["3", false]);
});
