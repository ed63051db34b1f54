import assert from "node:assert/strict";
import { test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { credentials, startOrigin, startRawServer, waitUntil } from "@headworks/testkit";
import { EgressFilter } from "#egress/egress-filter.ts";
import { startDnsServer } from "../egress/dns-server.ts";
import { response, ok, readRequest, startReceiver } from "./receiver.ts";
import { target, webhookRig } from "./webhook-rig.ts";

const authority = CertificateAuthority.create();
const tls = credentials(authority, { dns: ["hook.test"], ip: [] });
const roots = [authority.certificatePem];
const toLoopback = async (): Promise<string[]> => ["127.0.0.1"];

test("https: a delivery is verified, and names its host in SNI and Host", async () => {
  const names: unknown[] = [];
  await using server = await startRawServer(
    async (connection) => {
      const request = await readRequest(connection);
      names.push(request.header("host"), Reflect.get(connection.socket, "servername"));
      await connection.write(ok);
    },
    { tls },
  );
  await using rig = webhookRig({ roots, lookup: toLoopback });
  rig.publish([target(`https://hook.test:${server.port}/hook`)]);
  assert.equal(await rig.deliver(), "delivered");
  assert.deepEqual(names, [`hook.test:${server.port}`, "hook.test"]);
});

test("hostile target: a certificate that is not good is a transport failure: retried, then failed, and nothing is sent", async () => {
  let received = 0;
  await using server = await startRawServer(
    async (connection) => {
      received += (await connection.collect().catch(() => Buffer.alloc(0))).length;
    },
    { tls },
  );
  await using rig = webhookRig({ lookup: toLoopback });
  rig.publish([target(`https://hook.test:${server.port}/`, { max_attempts: 2 })]);
  assert.equal(await rig.deliver(), "failed");
  const [line] = rig.logged.coded("webhook_delivery_failed");
  assert.deepEqual([line?.["attempts"], line?.["reason"]], [2, "tls_failed"]);
  assert.equal(received, 0);
});

test("hostile target: failed handshakes leave no socket and no timer behind", async () => {
  // A server that closes its own end by itself, so that what is left open is ours.
  await using origin = await startOrigin({ tls: { authority, names: { dns: ["hook.test"], ip: [] } } });
  await using rig = webhookRig({ lookup: toLoopback });
  rig.publish([target(`https://hook.test:${origin.port}/`, { max_attempts: 1 })]);
  const open = (): number =>
    process.getActiveResourcesInfo().filter((name) => /TCPSocket|TLS|Timeout/.test(name)).length;
  await rig.deliver();
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(Array.from({ length: 20 }, async () => await rig.deliver()));
  }
  assert.deepEqual(rig.counts(), ["breaker_half_open failed 201"]);
  // Two timers of the wait itself.
  await waitUntil(() => open() <= 2, { what: "all sockets of failed handshakes were closed" });
});

test("delivery rule 5: timeout_ms bounds a TLS handshake that never comes", async () => {
  await using server = await startRawServer(async (connection) => void (await connection.closed));
  await using rig = webhookRig({ lookup: toLoopback });
  rig.publish([target(`https://hook.test:${server.port}/`, { timeout_ms: 150 })]);
  const beganMs = performance.now();
  assert.equal(await rig.deliver(), "failed");
  const tookMs = performance.now() - beganMs;
  assert.ok(tookMs >= 145 && tookMs < 2000, `took ${tookMs} ms`);
  assert.equal(rig.logged.coded("webhook_delivery_failed")[0]?.["attempts"], 1);
});

test("egress rule 2: a name that rebinds between two attempts is judged at the second one too", async () => {
  await using dns = await startDnsServer();
  dns.set("hook.test", ["127.0.0.1"], ["10.0.0.1"]);
  await using receiver = await startReceiver(response(503, "Retry-After: 0"));
  await using rig = webhookRig({ lookup: dns.lookup });
  rig.dialer.apply({ filter: new EgressFilter({ deny: ["10.0.0.0/8"] }), dnsTimeoutMs: 5000 });
  rig.publish([target(`http://hook.test:${receiver.port}/`, { max_attempts: 5, timeout_ms: 20_000 })]);
  assert.equal(await rig.deliver(), "failed");
  const [line] = rig.logged.coded("webhook_delivery_failed");
  assert.deepEqual([line?.["attempts"], line?.["reason"], line?.["status"]], [2, "ssrf_denied", undefined]);
  assert.equal(receiver.requests.length, 1);
});

test("egress rule 3: with a filter a failing lookup aborts the delivery; without one it is retried", async () => {
  await using dns = await startDnsServer();
  await using receiver = await startReceiver(ok);
  await using rig = webhookRig({ lookup: dns.lookup });
  rig.publish([target(`http://hook.test:${receiver.port}/`, { timeout_ms: 20_000 })]);
  dns.set("hook.test", "servfail", ["127.0.0.1"]);
  assert.equal(await rig.deliver(), "delivered");
  rig.dialer.apply({ filter: new EgressFilter({ deny: ["10.0.0.0/8"] }), dnsTimeoutMs: 5000 });
  dns.set("hook.test", "servfail", ["127.0.0.1"]);
  assert.equal(await rig.deliver(), "failed");
  const [line] = rig.logged.coded("webhook_delivery_failed");
  assert.deepEqual([line?.["attempts"], line?.["reason"]], [1, "dns_failed"]);
});

test("hostile target: a redirect to inside is not followed", async () => {
  await using inside = await startReceiver(ok);
  await using receiver = await startReceiver(response(307, `Location: ${inside.url}`));
  await using rig = webhookRig();
  rig.publish([target(receiver.url)]);
  assert.equal(await rig.deliver(), "failed");
  assert.equal(inside.connections.length, 0);
});

test("a target on IPv6 is reached, and named with brackets", async () => {
  const hosts: unknown[] = [];
  await using server = await startRawServer(
    async (connection) => {
      hosts.push((await readRequest(connection)).header("host"));
      await connection.write(ok);
    },
    { host: "::1" },
  );
  await using rig = webhookRig();
  rig.publish([target(`http://[::1]:${server.port}/`)]);
  assert.equal(await rig.deliver(), "delivered");
  assert.deepEqual(hosts, [`[::1]:${server.port}`]);
});
