import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startOrigin } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import type { ProbeRequest, ProbeResult } from "#exchange/outgoing.ts";
import { probeRoute } from "#upstream/route-probe.ts";
import { startEngine } from "./engine-harness.ts";
import { startHttpProxy, startSocksProxy } from "./proxy-peer.ts";

const originCa = CertificateAuthority.create({ commonName: "Origins" });
const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

async function kept<T extends AsyncDisposable>(starting: Promise<T>): Promise<T> {
  const thing = await starting;
  cleanups.push(() => thing[Symbol.asyncDispose]());
  return thing;
}

const engine = await startEngine({ upstreamRoots: originCa.certificatePem, connectTimeoutMs: 2000 });
cleanups.push(() => engine.stop());
const origin = await kept(startOrigin());
const secure = await kept(startOrigin({ tls: { authority: originCa } }));
const http = await kept(startHttpProxy());
const socks = await kept(startSocksProxy());

async function probe(request: Partial<ProbeRequest> & Pick<ProbeRequest, "proxy" | "target">): Promise<ProbeResult> {
  const signal = new AbortController().signal;
  return await probeRoute(engine.services.dialer, { credentials: undefined, bypass: [], signal, ...request });
}

const toOrigin = (path: string | undefined): ProbeRequest["target"] => ({
  host: "127.0.0.1",
  port: origin.port,
  secure: false,
  path,
});
const toSecure = (): ProbeRequest["target"] => ({ host: "127.0.0.1", port: secure.port, secure: true, path: "/" });
const at = (protocol: "http" | "https" | "socks5", port: number): ProbeRequest["proxy"] => ({
  protocol,
  host: "127.0.0.1",
  port,
});

const ways: readonly [string, Pick<ProbeRequest, "proxy" | "target"> & Partial<ProbeRequest>, string, string[]][] = [
  [
    "an http proxy and HTTPS",
    { proxy: at("http", http.port), target: toSecure() },
    "tunnel",
    ["Connect to the proxy", "Open a tunnel", "TLS with the target", "Get a response"],
  ],
  [
    "an http proxy and HTTP",
    { proxy: at("http", http.port), target: toOrigin("/") },
    "forward",
    ["Connect to the proxy", "Get a response"],
  ],
  [
    "a socks5 proxy and a bare connection",
    { proxy: at("socks5", socks.port), target: toOrigin(undefined) },
    "tunnel",
    ["Connect to the proxy", "Open a tunnel"],
  ],
  [
    "a target on the bypass list",
    { proxy: at("socks5", 1), target: toOrigin("/"), bypass: ["127.0.0.0/8"] },
    "direct",
    ["Connect to the target", "Get a response"],
  ],
];

for (const [name, request, via, steps] of ways) {
  test(`${name}: every step is reported in order with its duration`, async () => {
    const result = await probe(request);
    assert.equal(result.failure, undefined);
    assert.equal(result.via, via);
    assert.deepEqual(
      result.steps.map((step) => step.name),
      steps,
    );
    assert.ok(result.steps.every(({ ok, durationMs, detail }) => ok && durationMs >= 0 && detail !== ""));
  });
}

test("the failing step is the last one, with a reason", async () => {
  const refusing = await kept(startHttpProxy({ response: () => "HTTP/1.1 403 No\r\n\r\n" }));
  const asking = await kept(
    startHttpProxy({ response: () => "HTTP/1.1 407 Who\r\nContent-Length: 0\r\nProxy-Authenticate: Basic\r\n\r\n" }),
  );
  for (const [request, name, code] of [
    [{ proxy: at("http", refusing.port), target: toSecure() }, "Open a tunnel", "UPSTREAM_PROXY_DENIED"],
    [{ proxy: at("http", asking.port), target: toOrigin("/") }, "Get a response", "UPSTREAM_PROXY_AUTH"],
    [{ proxy: at("socks5", secure.port), target: toOrigin("/") }, "Open a tunnel", undefined],
    [{ proxy: at("https", http.port), target: toSecure() }, "Choose a route", "UPSTREAM_PROXY_CANNOT_TUNNEL"],
    [{ proxy: at("https", http.port), target: toOrigin("/") }, "TLS with the proxy", undefined],
    [{ proxy: at("http", engine.port), target: toOrigin("/") }, "Connect to the proxy", "LOOP"],
  ] as const) {
    const { steps, failure } = await probe(request);
    assert.ok(failure);
    if (code !== undefined) assert.equal(failure.code, code);
    assert.equal(steps.at(-1)?.name, name, failure.message);
    assert.deepEqual(
      steps.map(({ ok }) => ok),
      steps.map((_, index) => index < steps.length - 1),
    );
    assert.equal(steps.at(-1)?.detail, failure.message);
  }
});

test("an aborted test ends at once", async () => {
  const gone = AbortSignal.abort();
  const { failure } = await probe({ proxy: at("http", http.port), target: toSecure(), signal: gone });
  assert.equal(failure?.code, "CLIENT_ABORTED");
});
