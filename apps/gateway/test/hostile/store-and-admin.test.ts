import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { CertificateAuthority } from "@headworks/tls-authority";
import {
  runProcess,
  spawnProcess,
  startOrigin,
  temporaryDirectory,
  waitUntil,
  type TemporaryDirectory,
} from "@headworks/testkit";
import { startGateway } from "../gateway-rig.ts";
import { proxied } from "../route-documents.ts";

const MAIN = fileURLToPath(new URL("../../bin/sluice.js", import.meta.url));

test("U8: a disk that hangs holds up those whose budgets it keeps, nobody else, and gives nothing away", async (context) => {
  const probe = await runProcess("strace", ["-f", "-e", "trace=none", "true"]).catch(() => undefined);
  if (probe?.code !== 0) return context.skip("needs strace and the right to trace");
  await using origin = await startOrigin();
  await using directory = await temporaryDirectory();
  const file = directory.file("gateway.yaml");
  await writeFile(
    file,
    JSON.stringify({
      listeners: [{ name: "public", address: "127.0.0.1", port: 0 }],
      upstreams: [{ name: "u", endpoints: [{ address: "127.0.0.1", port: origin.port }] }],
      services: [{ name: "api", upstream: "u" }],
      consumers: [
        { name: "counted", credentials: [{ type: "api_key", key: "counted-key" }], quotas: { daily_requests: 5 } },
        { name: "free", credentials: [{ type: "api_key", key: "free-key" }] },
      ],
      routes: [proxied("api")],
    }),
  );
  await using gateway = await spawnProcess(process.execPath, [MAIN, "serve", "-c", file, "--json"], {
    env: { GATEWAY_LOG: "warn", GATEWAY_STATE_DB: directory.file("db", "state.db") },
  });
  const [line] = await gateway.waitForOutput(/^\{.*"listeners".*\}$/m, 30_000);
  const port = (JSON.parse(line) as { listeners: { port: number }[] }).listeners[0]?.port ?? 0;
  const ask = async (key?: string): Promise<{ status: number; tookMs: number }> => {
    const startedMs = performance.now();
    const response = await fetch(
      `http://127.0.0.1:${port}/`,
      key === undefined ? {} : { headers: { "x-api-key": key } },
    );
    await response.arrayBuffer();
    return { status: response.status, tookMs: performance.now() - startedMs };
  };
  assert.equal((await ask("counted-key")).status, 200);
  const statuses: Promise<{ status: number; tookMs: number }>[] = [];
  {
    await using tracer = await spawnProcess("strace", [
      "-f",
      `--attach=${gateway.pid}`,
      `--output=${directory.file("trace")}`,
      "--trace=fsync,fdatasync",
      "--inject=fsync,fdatasync:delay_enter=3000000",
    ]);
    await tracer.waitForOutput(/attached/);
    for (let at = 0; at < 20; at += 1) statuses.push(ask("counted-key"));
    for (let at = 0; at < 30; at += 1) {
      const { status, tookMs } = await ask(at % 2 === 0 ? "free-key" : undefined);
      assert.equal(status, 200);
      assert.ok(tookMs < 1000, `others wait ${tookMs} ms`);
    }
    assert.equal((await ask("forged")).status, 401);
    const [first] = await Promise.all(statuses);
    assert.ok((first?.tookMs ?? 0) > 1000, "the disk did hang");
  }
  const answered = (await Promise.all(statuses)).map(({ status }) => status);
  assert.deepEqual(
    answered.filter((status) => status !== 200 && status !== 429 && status !== 500),
    [],
  );
  assert.ok(answered.filter((status) => status === 200).length <= 4, answered.join());
  // The disk is back: what is left of the budget, if anything, is answered, then it is over.
  await waitUntil(async () => (await ask("counted-key")).status === 429, { timeoutMs: 20_000 });
  assert.ok(origin.requests.length > 0);
});

test("U8: unknown keys cost no budget, however many are sent", async () => {
  await using origin = await startOrigin();
  await using directory = await temporaryDirectory();
  await using gateway = await startGateway(
    {
      upstreams: [{ name: "u", endpoints: [{ address: "127.0.0.1", port: origin.port }] }],
      services: [{ name: "api", upstream: "u" }],
      consumers: [{ name: "c", credentials: [{ type: "api_key", key: "real-key" }], quotas: { daily_requests: 1n } }],
      routes: [proxied("api", "/api"), proxied("closed", "/closed", { service: "api", methods: ["GET"] })],
    },
    { environment: { GATEWAY_STATE_DB: directory.file("state.db") } },
  );
  const forged = ["real-ke", "real-keyy", "REAL-KEY", "real-key, real-key", "", " ", "real-key\t x", "r\xe9al-key"];
  for (const key of forged) {
    const { status } = await gateway.send({ path: "/api", fields: [`X-API-Key: ${key}`] });
    assert.equal(status, 401, key);
  }
  const twice = await gateway.send({ path: "/api", fields: ["X-API-Key: real-key", "X-API-Key: other"] });
  assert.equal(twice.status, 401);
  // Answered before it proceeds, it is not an accepted request.
  const refused = await gateway.send({ method: "DELETE", path: "/closed", fields: ["X-API-Key: real-key"] });
  assert.equal(refused.status, 405);
  assert.equal((await gateway.send({ path: "/nowhere", fields: ["X-API-Key: real-key"] })).status, 404);
  assert.equal((await gateway.send({ path: "/api", fields: ["X-API-Key: real-key"] })).status, 200);
  assert.equal((await gateway.send({ path: "/api", fields: ["X-API-Key: real-key"] })).status, 429);
});

async function adminFiles(
  directory: TemporaryDirectory,
): Promise<{ cert_file: string; key_file: string; client_ca_file: string; ca: string }> {
  const servers = CertificateAuthority.create();
  const server = servers.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });
  await writeFile(directory.file("cert.pem"), server.chainPem);
  await writeFile(directory.file("key.pem"), server.keyPem);
  await writeFile(directory.file("client-ca.pem"), CertificateAuthority.create().certificatePem);
  await writeFile(directory.file("server-ca.pem"), servers.certificatePem);
  return {
    cert_file: directory.file("cert.pem"),
    key_file: directory.file("key.pem"),
    client_ca_file: directory.file("client-ca.pem"),
    ca: directory.file("server-ca.pem"),
  };
}

test("U10: neither a route nor a webhook to the admin port gets an answer of the admin API", async () => {
  await using directory = await temporaryDirectory();
  const { ca, ...tls } = await adminFiles(directory);
  const admin = { bind: "127.0.0.1:0", tls };
  const listeners = [{ name: "public", address: "127.0.0.1", port: 0 }];
  await using gateway = await startGateway({ listeners, admin, routes: [] });
  const port = Number(new URL(gateway.gateway.adminUrl ?? "").port);
  const endpoints = [{ address: "127.0.0.1", port }];
  await gateway.reload({
    listeners,
    admin,
    upstreams: [
      { name: "plain", endpoints },
      { name: "tls", endpoints, protocol: "https", trusted_ca_file: ca },
    ],
    services: ["plain", "tls"].map((name) => ({ name, upstream: name })),
    routes: [proxied("plain", "/plain"), proxied("tls", "/tls")].map((route) => ({
      ...route,
      action: { type: "proxy" as const, rewrite: { type: "strip_prefix" as const } },
    })),
    webhooks: [`https://127.0.0.1:${port}/config/rollback`, `http://127.0.0.1:${port}/config/rollback`].map((url) => ({
      url,
      events: ["config_published"],
      max_attempts: 1,
    })),
  });
  assert.equal(gateway.gateway.generations.current?.number, 2, "it is published");
  for (const path of ["/plain/config", "/tls/config", "/tls/", "/tls/health"]) {
    const response = await gateway.send({ path });
    assert.equal(response.status, 502, path);
    assert.match(response.body.toString(), /"upstream_unavailable"/);
  }
  await waitUntil(() => gateway.log.filter(({ code }) => code === "webhook_delivery_failed").length === 2);
  assert.equal(gateway.gateway.generations.current?.number, 2, "nothing was rolled back");
});
