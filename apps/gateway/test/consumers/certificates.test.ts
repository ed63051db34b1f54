import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { TLSSocket, type ConnectionOptions } from "node:tls";
import type { DocumentInput } from "@headworks/gateway-contract";
import { rawClient, readResponse, startOrigin, temporaryDirectory, type TemporaryDirectory } from "@headworks/testkit";
import { CertificateAuthority, type Leaf } from "@headworks/tls-authority";
import { serving, startGateway } from "../gateway-rig.ts";
import { OPEN_AND_CLOSED, seenValues } from "./consumer-rig.ts";

const authority = CertificateAuthority.create();
const clientFor = (name: string, by = authority): Leaf => by.issueLeaf({ dns: [name] }, { purpose: "client" });
const printOf = (leaf: Leaf): string => new X509Certificate(leaf.certificatePem).fingerprint256;

const acme = clientFor("acme.test");
const zoo = clientFor("zoo.test");
const nobody = clientFor("nobody.test");

async function documentOf(files: TemporaryDirectory, port: number): Promise<DocumentInput> {
  const server = authority.issueLeaf({ dns: ["gateway.test"] });
  const tls = {
    cert_file: files.file("server.pem"),
    key_file: files.file("server.key"),
    client_ca_file: files.file("ca.pem"),
  };
  await writeFile(tls.cert_file, server.chainPem);
  await writeFile(tls.key_file, server.keyPem);
  await writeFile(tls.client_ca_file, authority.certificatePem);
  return {
    ...serving("api", [port]),
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, protocol: "https", tls }],
    routes: OPEN_AND_CLOSED,
    consumers: [
      { name: "acme", credentials: [{ type: "mtls", fingerprint: printOf(acme).toLowerCase() }] },
      { name: "zoo", credentials: [{ type: "mtls", subject: "zoo.test" }] },
      { name: "keyed", credentials: [{ type: "api_key", key: "good" }] },
    ],
  };
}

const showing = (leaf?: Leaf): ConnectionOptions => ({
  ca: authority.certificatePem,
  servername: "gateway.test",
  ...(leaf === undefined ? {} : { cert: leaf.chainPem, key: leaf.keyPem }),
});

const get = (path: string, ...fields: string[]): string =>
  [`GET ${path} HTTP/1.1`, "Host: gateway.test", ...fields, "", ""].join("\r\n");

test("authentication of a request by the certificate of its connection", async (t) => {
  await using files = await temporaryDirectory();
  await using origin = await startOrigin();
  await using gateway = await startGateway(await documentOf(files, origin.port));
  const cases: readonly [
    title: string,
    leaf: Leaf | undefined,
    path: string,
    fields: readonly string[],
    status: number,
    consumer?: string,
  ][] = [
    ["a fingerprint is its consumer's", acme, "/closed", [], 200, "acme"],
    ["a subject is its consumer's", zoo, "/closed", [], 200, "zoo"],
    ["one of the authority without a consumer is refused", nobody, "/open", [], 401],
    ["no certificate is anonymous", undefined, "/open", [], 200],
    ["which a route may refuse", undefined, "/closed", [], 401],
    ["a key comes first", acme, "/closed", ["X-API-Key: good"], 200, "keyed"],
    ["also when it is bad", acme, "/open", ["X-API-Key: bad"], 401],
    ["what a field says of certificates is nothing", undefined, "/closed", ["X-Client-Cert-Subject-CN: zoo.test"], 401],
  ];
  for (const [title, leaf, path, fields, status, consumer] of cases) {
    await t.test(title, async () => {
      await using client = await rawClient(gateway.port(), { tls: showing(leaf) });
      // Twice: the second request of a connection is as good as the first.
      for (const _ of [1, 2]) {
        await client.write(get(path, ...fields));
        const response = await readResponse(client);
        assert.equal(response.status, status);
        if (status === 401) continue;
        const names = seenValues(origin.requests.at(-1), "x-consumer-name");
        assert.deepEqual(names, consumer === undefined ? [] : [consumer]);
      }
    });
  }
});

test("a certificate of another authority gets no answer, whatever it says", async () => {
  await using files = await temporaryDirectory();
  await using origin = await startOrigin();
  await using gateway = await startGateway(await documentOf(files, origin.port));
  const forged = clientFor("zoo.test", CertificateAuthority.create());
  const outcome = await (async () => {
    await using client = await rawClient(gateway.port(), { tls: showing(forged) });
    await client.write(get("/open"));
    return (await readResponse(client)).status;
  })().catch(() => "no answer");
  assert.equal(outcome, "no answer");
  assert.equal(origin.requests.length, 0);
});

test("a resumed session is the same client's", async () => {
  await using files = await temporaryDirectory();
  await using origin = await startOrigin();
  await using gateway = await startGateway(await documentOf(files, origin.port));
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    let session: Buffer | undefined;
    const names: string[][] = [];
    for (const isResumed of [false, true]) {
      const resumed = session === undefined ? {} : { session };
      await using client = await rawClient(gateway.port(), { tls: { ...showing(zoo), maxVersion, ...resumed } });
      assert.ok(client.socket instanceof TLSSocket);
      await client.write(get("/closed"));
      assert.equal((await readResponse(client)).status, 200);
      assert.equal(client.socket.isSessionReused(), isResumed, `${maxVersion} resumed`);
      // The server's tickets come before its answer.
      session = client.socket.getSession();
      names.push(seenValues(origin.requests.at(-1), "x-consumer-name"));
    }
    assert.deepEqual(names, [["zoo"], ["zoo"]], maxVersion);
  }
});
