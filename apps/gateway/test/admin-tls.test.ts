import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { once } from "node:events";
import { Agent, request } from "node:https";
import { generateKeyPairSync } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { temporaryDirectory, waitUntil, type TemporaryDirectory } from "@headworks/testkit";
import { ADMIN, listeners } from "./admin-rig.ts";
import { startGateway, type TestGateway } from "./gateway-rig.ts";

interface Identity {
  readonly cert: string;
  readonly key: string;
}

const operatorOf = (authority: CertificateAuthority, name: string): Identity => {
  const { certificatePem: cert, keyPem: key } = authority.issueLeaf({ dns: [name] }, { purpose: "client" });
  return { cert, key };
};

const pathsIn = (directory: TemporaryDirectory) => ({
  cert_file: directory.file("cert.pem"),
  key_file: directory.file("key.pem"),
  client_ca_file: directory.file("ca.pem"),
});

async function writeServer(
  directory: TemporaryDirectory,
  servers: CertificateAuthority,
  operators: CertificateAuthority,
): Promise<void> {
  const server = servers.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });
  const files = pathsIn(directory);
  await writeFile(files.client_ca_file, operators.certificatePem);
  await writeFile(files.key_file, server.keyPem);
  await writeFile(files.cert_file, server.certificatePem);
}

/** Status and body of one call, on a connection of its own unless an agent has one. */
async function ask(
  gateway: TestGateway,
  servers: CertificateAuthority,
  method: string,
  path: string,
  identity?: Identity,
  agent: Agent | false = false,
): Promise<{ status: number; text: string }> {
  return await new Promise((resolve, reject) => {
    const options = { method, ca: servers.certificatePem, agent, ...identity };
    const call = request(`${gateway.gateway.adminUrl}${path}`, options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    call.on("error", reject);
    call.end();
  });
}

test("over TLS nothing is answered without a good client certificate; roles bind certificates, refusals are written down", async () => {
  await using directory = await temporaryDirectory();
  const [servers, operators, strangers] = [
    CertificateAuthority.create(),
    CertificateAuthority.create(),
    CertificateAuthority.create(),
  ];
  await writeServer(directory, servers, operators);
  await using gateway = await startGateway({
    listeners,
    routes: [],
    admin: {
      ...ADMIN,
      tls: pathsIn(directory),
      roles: [
        { match: { san_dns: "viewer.example" }, role: "viewer" },
        { match: { san_dns: "operator.example" }, role: "operator" },
      ],
    },
  });
  const status = async (method: string, path: string, identity?: Identity): Promise<number> =>
    (await ask(gateway, servers, method, path, identity)).status;
  await assert.rejects(status("GET", "/config"));
  await assert.rejects(status("GET", "/config", operatorOf(strangers, "viewer.example")));
  const viewer = operatorOf(operators, "viewer.example");
  const operator = operatorOf(operators, "operator.example");
  assert.equal(await status("GET", "/config", viewer), 200);
  assert.equal(await status("POST", "/config/rollback", viewer), 403);
  assert.equal(await status("POST", "/config/rollback", operator), 403);
  assert.equal(await status("POST", "/webhooks/test", viewer), 403);
  assert.equal(await status("POST", "/webhooks/test", operator), 400);
  assert.equal(await status("POST", "/quotas/adjust", operator), 403);
  assert.equal(await status("GET", "/config", operatorOf(operators, "nobody.example")), 403);
  assert.equal(await status("GET", "/", viewer), 200);
  assert.equal(await status("GET", "/", operatorOf(operators, "nobody.example")), 403);
  const { entries } = JSON.parse((await ask(gateway, servers, "GET", "/audit", viewer)).text) as {
    entries: { operation: string; outcome: string }[];
  };
  assert.deepEqual(
    entries.map(({ operation, outcome }) => [operation, outcome]),
    [
      ["getDashboard", "role_forbidden"],
      ["getConfig", "role_forbidden"],
      ["adjustQuota", "role_forbidden"],
      ["testWebhook", "bad_request"],
      ["testWebhook", "role_forbidden"],
      ["rollbackConfig", "role_forbidden"],
      ["rollbackConfig", "role_forbidden"],
    ],
  );
});

test("new certificate files are taken over while the listener stays; files that do not fit change nothing", async () => {
  await using directory = await temporaryDirectory();
  const [servers, operators] = [CertificateAuthority.create(), CertificateAuthority.create()];
  await writeServer(directory, servers, operators);
  await using gateway = await startGateway({ listeners, routes: [], admin: { ...ADMIN, tls: pathsIn(directory) } });
  const first = operatorOf(operators, "one.example");
  assert.equal((await ask(gateway, servers, "GET", "/health", first)).status, 200);
  const logged = (code: string): boolean => gateway.log.some((line) => line["code"] === code);
  await writeFile(directory.file("key.pem"), first.key);
  await waitUntil(() => logged("admin_tls_kept"), { what: "the refusal of a key that does not fit" });
  assert.equal((await ask(gateway, servers, "GET", "/health", first)).status, 200);
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  await writeFile(directory.file("key.pem"), privateKey.export({ type: "pkcs8", format: "pem" }));
  const refusals = (): number => gateway.log.filter(({ code }) => code === "admin_tls_kept").length;
  await waitUntil(() => refusals() === 2 || logged("admin_tls_renewed"), { what: "the end of another kind of key" });
  assert.equal((await ask(gateway, servers, "GET", "/health", first)).status, 200);
  const [laterServers, laterOperators] = [CertificateAuthority.create(), CertificateAuthority.create()];
  await writeServer(directory, laterServers, laterOperators);
  const second = operatorOf(laterOperators, "two.example");
  await waitUntil(
    async () =>
      await ask(gateway, laterServers, "GET", "/health", second).then(
        ({ status }) => status === 200,
        () => false,
      ),
    { what: "the new certificate" },
  );
  await assert.rejects(ask(gateway, laterServers, "GET", "/health", first), "the old authority's operators are gone");
});

interface EventReader {
  readonly status: number;
  /** What came so far. */
  text(): string;
  /** Waits until nothing more comes, however it ended. */
  gone(): Promise<unknown>;
}

async function readEvents(
  gateway: TestGateway,
  servers: CertificateAuthority,
  identity: Identity,
  agent: Agent | false = false,
): Promise<EventReader> {
  const call = request(`${gateway.gateway.adminUrl}/events/stream`, { ca: servers.certificatePem, agent, ...identity });
  call.end();
  const [response] = (await once(call, "response")) as [IncomingMessage];
  let text = "";
  response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  response.on("error", () => undefined);
  return {
    status: response.statusCode ?? 0,
    text: () => text,
    gone: async () => await waitUntil(() => response.closed, { what: "the end of the stream" }),
  };
}

test("an event stream ends with the publication that takes its reader's role away, before that is told; others go on", async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  await writeServer(directory, authority, authority);
  const documentFor = (...names: string[]) => ({
    listeners,
    routes: [],
    admin: {
      ...ADMIN,
      tls: pathsIn(directory),
      roles: names.map((name) => ({ match: { san_dns: name }, role: "viewer" as const })),
    },
  });
  await using gateway = await startGateway(documentFor("stays.example", "goes.example"));
  const stays = await readEvents(gateway, authority, operatorOf(authority, "stays.example"));
  const goes = await readEvents(gateway, authority, operatorOf(authority, "goes.example"));
  await waitUntil(() => [stays, goes].every((reader) => reader.text().startsWith("retry")), { what: "both streams" });
  await gateway.reload(documentFor("stays.example"));
  await goes.gone();
  assert.doesNotMatch(goes.text(), /config_published/);
  await waitUntil(() => /config_published/.test(stays.text()), { what: "the event for who may still read" });
  assert.equal((await readEvents(gateway, authority, operatorOf(authority, "goes.example"))).status, 403);
});

test("a document without its admin section leaves the bindings of the last that had one, until the restart", async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  await writeServer(directory, authority, authority);
  const boundTo = (name: string) => ({
    listeners,
    routes: [],
    admin: { ...ADMIN, tls: pathsIn(directory), roles: [{ match: { san_dns: name }, role: "viewer" as const }] },
  });
  await using gateway = await startGateway(boundTo("first.example"));
  await gateway.reload(boundTo("later.example"));
  await gateway.reload({ listeners, routes: [] });
  const status = async (method: string, path: string, name: string): Promise<number> =>
    (await ask(gateway, authority, method, path, operatorOf(authority, name))).status;
  assert.equal(await status("GET", "/config", "later.example"), 200);
  assert.equal(await status("POST", "/config/rollback", "later.example"), 403);
  assert.equal(await status("GET", "/config", "first.example"), 403);
  assert.equal(await status("GET", "/config", "nobody.example"), 403);
});

/** A gateway whose operators' authority is to be replaced by a later one, and an agent with one connection to it. */
async function startRenewal() {
  const directory = await temporaryDirectory();
  const [servers, operators, later] = [
    CertificateAuthority.create(),
    CertificateAuthority.create(),
    CertificateAuthority.create(),
  ];
  await writeServer(directory, servers, operators);
  const gateway = await startGateway({ listeners, routes: [], admin: { ...ADMIN, tls: pathsIn(directory) } });
  return {
    gateway,
    servers,
    operators,
    later,
    agent: new Agent({ keepAlive: true, maxSockets: 1 }),
    renew: async () => await writeFile(directory.file("ca.pem"), later.certificatePem),
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

test("when the admin API's files are renewed, event streams end with their connections, so that the old authority's operators are gone", async () => {
  await using renewal = await startRenewal();
  const { gateway, servers, operators, later, agent } = renewal;
  const reader = await readEvents(gateway, servers, operatorOf(operators, "one.example"), agent);
  await renewal.renew();
  await reader.gone();
  await assert.rejects(ask(gateway, servers, "GET", "/health", operatorOf(operators, "one.example"), agent));
  await waitUntil(
    async () =>
      await readEvents(gateway, servers, operatorOf(later, "two.example")).then(
        ({ status }) => status === 200,
        () => false,
      ),
    { what: "a stream for an operator of the new authority" },
  );
});

test("a connection that is busy while the files are renewed has its answer, and no other", async () => {
  await using renewal = await startRenewal();
  const { gateway, servers, operators, agent } = renewal;
  const identity = operatorOf(operators, "one.example");
  const options = { method: "POST", ca: servers.certificatePem, agent, ...identity };
  const busy = request(`${gateway.gateway.adminUrl}/config/validate`, {
    ...options,
    headers: { expect: "100-continue", "content-type": "application/yaml" },
  });
  busy.flushHeaders();
  await once(busy, "continue");
  await renewal.renew();
  await waitUntil(() => gateway.log.some(({ code }) => code === "admin_tls_renewed"), { what: "the new authority" });
  busy.end("routes: []\n");
  const [response] = (await once(busy, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  response.resume();
  await once(response, "end");
  await assert.rejects(ask(gateway, servers, "GET", "/health", identity, agent));
});
