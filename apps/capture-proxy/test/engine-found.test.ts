import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { proxyClient, startOrigin } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";

// Faults that real clients and hostile peers have shown, each kept from coming back.

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const originCa = CertificateAuthority.create({ commonName: "Origins" });

async function engine(options: EngineOptions = {}): Promise<Engine> {
  const started = await startEngine({ upstreamRoots: originCa.certificatePem, ...options });
  cleanups.push(() => started.stop());
  return started;
}

test("an entry names the origin's certificate on a resumed TLS session too", async () => {
  const origin = await startOrigin({ tls: { authority: originCa } });
  cleanups.push(() => origin.close());
  const proxy = await engine();
  const client = proxyClient(proxy.port, { ca: proxy.ca.certificatePem });
  for (let round = 0; round < 3; round += 1) await client.fetch(`https://localhost:${origin.port}/${round}`);
  const exchanges = await proxy.waitFor(3);
  assert.equal(origin.connectionCount, 3);
  for (const { upstreamTls } of exchanges) {
    assert.equal(upstreamTls?.verified, true);
    assert.match(upstreamTls?.issuer ?? "", /CN=Origins/);
    assert.match(upstreamTls?.subject ?? "", /CN=localhost/);
    assert.ok((upstreamTls?.validToMs ?? 0) > Date.now());
  }
});

test("a client that resets the connection right after TLS counts as one that refused the certificate", async () => {
  const proxy = await engine();
  const client = proxyClient(proxy.port);
  const { connection } = await client.tunnel("localhost:443");
  const socket = connection.detach();
  const secure = connectTls({ socket, servername: "localhost", rejectUnauthorized: false });
  await once(secure, "secureConnect");
  socket.resetAndDestroy();
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.request.method, "CONNECT");
  assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "CLIENT_CERTIFICATE_REFUSED");
  assert.equal(proxy.finished.length, 1);
});
