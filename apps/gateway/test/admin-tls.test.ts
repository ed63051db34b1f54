import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { request } from "node:https";
import { generateKeyPairSync } from "node:crypto";
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

/** Status and body of one call on a connection of its own. */
async function ask(
  gateway: TestGateway,
  servers: CertificateAuthority,
  method: string,
  path: string,
  identity?: Identity,
): Promise<{ status: number; text: string }> {
  return await new Promise((resolve, reject) => {
    const options = { method, ca: servers.certificatePem, agent: false as const, ...identity };
    const call = request(`${gateway.gateway.adminUrl}${path}`, options, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      answer.on("error", reject);
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
