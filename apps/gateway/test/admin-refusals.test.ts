import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import {
  rawClient,
  readResponse,
  temporaryDirectory,
  type RawClientOptions,
  type RawResponse,
} from "@headworks/testkit";
import { createGatedServer } from "#admin/admin-server.ts";
import { ADMIN, DEV, listeners } from "./admin-rig.ts";
import { startGateway, type TestGateway } from "./gateway-rig.ts";

interface Refused {
  readonly what: string;
  /** Request line and fields; Host and `X-Request-Id` are added unless they are there. */
  readonly head: string;
  readonly body?: string;
  readonly status: number;
  readonly code: string;
  /** Of plain HTTP only: over TLS a certificate names the operator. */
  readonly isDevelopmentOnly?: boolean;
}

const refused: readonly Refused[] = [
  { what: "an unknown path", head: "GET /nothing HTTP/1.1", status: 404, code: "not_found" },
  { what: "a long name", head: `GET /upstreams/${"x".repeat(9000)} HTTP/1.1`, status: 400, code: "bad_request" },
  { what: "another method", head: "DELETE /config HTTP/1.1", status: 405, code: "method_not_allowed" },
  { what: "a rare method", head: "PROPFIND /config HTTP/1.1", status: 405, code: "method_not_allowed" },
  { what: "TRACE", head: "TRACE /config HTTP/1.1", status: 405, code: "method_not_allowed" },
  { what: "a method that is none", head: "BREW /config HTTP/1.1", status: 400, code: "bad_request" },
  { what: "a path that does not decode", head: "GET /config/%zz HTTP/1.1", status: 400, code: "bad_request" },
  {
    what: "a body that is no JSON",
    head: "POST /explain HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1",
    body: "{",
    status: 400,
    code: "bad_request",
  },
  {
    what: "a media type that is not served",
    head: "PATCH /config HTTP/1.1\r\nContent-Type: text/html\r\nContent-Length: 1",
    body: "x",
    status: 415,
    code: "unsupported_media_type",
  },
  {
    what: "a media type that is none",
    head: "PATCH /config HTTP/1.1\r\nContent-Type: yaml\r\nContent-Length: 1",
    body: "x",
    status: 415,
    code: "unsupported_media_type",
  },
  {
    what: "a body of more than 4 MiB",
    head: "PATCH /config HTTP/1.1\r\nContent-Type: application/yaml\r\nContent-Length: 4194305",
    body: "x".repeat(4_194_305),
    status: 413,
    code: "config_too_large",
  },
  {
    what: "a target of more than 16 KiB",
    head: `GET /${"x".repeat(16_384)} HTTP/1.1`,
    status: 414,
    code: "uri_too_long",
  },
  {
    what: "one large field",
    head: `GET /config HTTP/1.1\r\nX: ${"x".repeat(66_000)}`,
    status: 431,
    code: "request_headers_too_large",
  },
  {
    what: "many fields",
    head: `GET /config HTTP/1.1${"\r\nX: 12345678".repeat(9_000)}`,
    status: 431,
    code: "request_headers_too_large",
  },
  {
    what: "an expectation that is not served",
    head: "GET /config HTTP/1.1\r\nExpect: cake",
    status: 417,
    code: "expectation_failed",
  },
  { what: "no Host", head: "GET /config HTTP/1.1\r\nNo-Host: x", status: 400, code: "bad_request" },
  {
    what: "two Hosts",
    head: "GET /config HTTP/1.1\r\nHost: localhost\r\nHost: localhost",
    status: 400,
    code: "bad_request",
  },
  { what: "an empty Host", head: "GET /config HTTP/1.1\r\nHost:", status: 400, code: "bad_request" },
  { what: "a list as Host", head: "GET /config HTTP/1.1\r\nHost: localhost, other", status: 400, code: "bad_request" },
  { what: "a Host with a path", head: "GET /config HTTP/1.1\r\nHost: localhost/x", status: 400, code: "bad_request" },
  { what: "a Host with a user", head: "GET /config HTTP/1.1\r\nHost: a@localhost", status: 400, code: "bad_request" },
  {
    what: "a Host with a bad port",
    head: "GET /config HTTP/1.1\r\nHost: localhost:x",
    status: 400,
    code: "bad_request",
  },
  {
    what: "a target with an authority",
    head: "GET http://localhost/config HTTP/1.1\r\nHost: localhost",
    status: 400,
    code: "bad_request",
  },
  { what: "a target that is a star", head: "OPTIONS * HTTP/1.1", status: 400, code: "bad_request" },
  { what: "CONNECT", head: "CONNECT localhost:443 HTTP/1.1", status: 400, code: "bad_request" },
  {
    what: "an upgrade at an unknown path",
    head: "GET /nothing HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket",
    status: 404,
    code: "not_found",
  },
  { what: "another version", head: "GET /config HTTP/3.0", status: 505, code: "version_not_supported" },
  { what: "the preface of HTTP/2", head: "PRI * HTTP/2.0", status: 505, code: "version_not_supported" },
  {
    what: "a length and a coding",
    head: "POST /explain HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
    status: 400,
    code: "bad_request",
  },
  {
    what: "chunks that are none",
    head: "POST /explain HTTP/1.1\r\nTransfer-Encoding: chunked",
    body: "zz\r\n",
    status: 400,
    code: "bad_request",
  },
  {
    what: "another name",
    head: "GET /config HTTP/1.1\r\nHost: gateway.example",
    status: 421,
    code: "misdirected_request",
    isDevelopmentOnly: true,
  },
  {
    what: "HTTP/1.0 without a name",
    head: "GET /config HTTP/1.0\r\nNo-Host: x",
    status: 421,
    code: "misdirected_request",
    isDevelopmentOnly: true,
  },
  {
    what: "a web page",
    head: "GET /config HTTP/1.1\r\nOrigin: http://localhost",
    status: 403,
    code: "role_forbidden",
    isDevelopmentOnly: true,
  },
];

/** Sends one request and reads its response, which has to be in the envelope and to have an id. */
async function refusalOf(port: number, options: RawClientOptions, bytes: string): Promise<RawResponse & Envelope> {
  await using connection = await rawClient(port, options);
  const sent = connection.write(bytes).catch(() => undefined);
  const response = await readResponse(connection);
  await sent;
  const { error } = JSON.parse(response.body.toString()) as { error: Record<string, string> };
  const [code = "", message = "", id = ""] = [error["code"], error["message"], error["request_id"]];
  assert.ok(message !== "");
  assert.equal(response.header("content-type"), "application/json; charset=utf-8");
  assert.equal(response.header("x-request-id"), id);
  return Object.assign(response, { code, id });
}

interface Envelope {
  readonly code: string;
  readonly id: string;
}

const withFields = ({ head, body = "" }: Pick<Refused, "head" | "body">, id: string): string => {
  const host = /\r\n(?:no-)?host:/i.test(head) ? "" : "\r\nHost: localhost";
  return `${head}${host}\r\nX-Request-Id: ${id}\r\n\r\n${body}`;
};

async function checkTable(gateway: TestGateway, options: RawClientOptions, table: readonly Refused[]): Promise<void> {
  const port = Number(new URL(gateway.gateway.adminUrl ?? "").port);
  for (const each of table) {
    const { status, code, id } = await refusalOf(port, options, withFields(each, "asked-17")).catch(
      (cause: unknown) => {
        throw new Error(each.what, { cause });
      },
    );
    assert.deepEqual([status, code, id], [each.status, each.code, "asked-17"], each.what);
  }
}

test("each refusal of the admin API has the envelope and the client's id, those of the parser too", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [] }, DEV);
  await checkTable(gateway, {}, refused);
});

test("over TLS with client certificates it is the same", async () => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  const files = {
    cert_file: directory.file("cert.pem"),
    key_file: directory.file("key.pem"),
    client_ca_file: directory.file("ca.pem"),
  };
  const server = authority.issueLeaf({ dns: ["localhost"] });
  const operator = authority.issueLeaf({ dns: ["ada"] }, { purpose: "client" });
  await writeFile(files.client_ca_file, authority.certificatePem);
  await writeFile(files.cert_file, server.certificatePem);
  await writeFile(files.key_file, server.keyPem);
  await using gateway = await startGateway({ listeners, routes: [], admin: { ...ADMIN, tls: files } });
  const tls = {
    ca: authority.certificatePem,
    cert: operator.certificatePem,
    key: operator.keyPem,
    servername: "localhost",
  };
  await checkTable(
    gateway,
    { tls },
    refused.filter(({ isDevelopmentOnly }) => isDevelopmentOnly !== true),
  );
});

test("ids that may not be kept are replaced, as on the data plane, and each response has one", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [] }, DEV);
  const port = Number(new URL(gateway.gateway.adminUrl ?? "").port);
  for (const sent of ["", "two words", "x".repeat(129), "é"]) {
    for (const head of ["GET /nothing HTTP/1.1", "GET /config HTTP/3.0"]) {
      const { id } = await refusalOf(port, {}, withFields({ head }, sent));
      assert.match(id, /^req-[0-9a-f]{16}-[0-9a-f]{6}$/, `${head} ${sent}`);
    }
  }
  for (const path of ["/", "/health", "/config", "/openapi.json"]) {
    const { headers } = await fetch(`${gateway.gateway.adminUrl}${path}`, { headers: { "x-request-id": "asked-17" } });
    assert.equal(headers.get("x-request-id"), "asked-17", path);
  }
});

test("a head beyond what the parser takes is 431, the second request of a connection has its own id", async () => {
  await using gateway = await startGateway({ listeners, admin: ADMIN, routes: [] }, DEV);
  const port = Number(new URL(gateway.gateway.adminUrl ?? "").port);
  const huge = await refusalOf(
    port,
    {},
    withFields({ head: `GET /config HTTP/1.1\r\nX: ${"x".repeat(600_000)}` }, "y"),
  );
  assert.deepEqual([huge.status, huge.code], [431, "request_headers_too_large"]);
  await using connection = await rawClient(port);
  const first = withFields({ head: "GET /health HTTP/1.1" }, "first");
  await connection.write(`${first}${withFields({ head: "GET /health HTTP/3.0" }, "second")}`);
  for (const [status, id] of [
    [200, "first"],
    [505, "second"],
  ] as const) {
    const response = await readResponse(connection);
    assert.deepEqual([response.status, response.header("x-request-id")], [status, id]);
  }
});

test("what does not arrive in time is 408 with the envelope, with the client's id once the head is there", async () => {
  const server = createGatedServer({
    tls: undefined,
    handler: (request) => void request.resume(),
    requestIdFor: (sent = "made") => sent,
    limitsMs: { head: 100, request: 200 },
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const head = "POST /x HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: asked-17\r\nContent-Length: 9\r\n\r\n";
  const [late, lateBody] = await Promise.all([
    refusalOf(port, {}, head.slice(0, 40)),
    refusalOf(port, {}, `${head}abc`),
  ]);
  server.close();
  assert.deepEqual([late.status, late.code], [408, "request_timeout"]);
  assert.deepEqual([lateBody.status, lateBody.code, lateBody.id], [408, "request_timeout", "asked-17"]);
});
