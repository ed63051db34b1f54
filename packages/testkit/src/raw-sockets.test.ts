import assert from "node:assert/strict";
import { test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import { credentials, rawClient, readResponse, startRawServer, waitUntil } from "./index.ts";

test("a raw server answers canned bytes after a request head and ends", async () => {
  await using server = await startRawServer("HTTP/1.1 200 OK\r\n\r\n\xff\x00");
  await using client = await rawClient(server.port);
  await client.write("GET / HTTP/1.1\r\n");
  assert.equal(client.unreadBytes, 0);
  await client.write("\r\n");
  assert.deepEqual(await client.collect(), Buffer.from("HTTP/1.1 200 OK\r\n\r\n\xff\x00", "latin1"));
});

test("reads take exactly what they ask for, however the bytes are cut", async () => {
  await using server = await startRawServer(async (connection) => {
    for (const piece of ["he", "ad\r", "\n\r", "\nbo", "dy", "!"]) {
      await connection.write(piece);
      await connection.read(1);
    }
  });
  await using client = await rawClient(server.port);
  await client.write("xxxxxx");
  assert.equal((await client.readUntil("\r\n\r\n")).toString(), "head\r\n\r\n");
  assert.equal((await client.read(4)).toString(), "body");
  assert.equal((await client.collect()).toString(), "!");
  assert.equal(client.ended, true);
});

test("both sides can half-close and go on", async () => {
  await using server = await startRawServer(async (connection) => {
    const all = await connection.collect();
    await connection.write(`got ${all.length}`);
  });
  await using client = await rawClient(server.port);
  await client.write("12345");
  client.end();
  assert.equal((await client.collect()).toString(), "got 5");
});

test("a read that is not met tells what had arrived", async () => {
  await using server = await startRawServer(async (connection) => {
    await connection.write("almost\r\n");
    await connection.collect();
  });
  await using client = await rawClient(server.port);
  await assert.rejects(client.readUntil("\r\n\r\n", 50), /within 50 ms/);
  await assert.rejects(client.read(100, 50), /8 unread bytes: "almost\\r\\n"/);
  client.end();
  await assert.rejects(client.read(100), /ended before byte 100/);
});

test("a reset is seen as the error that closed the connection", async () => {
  await using server = await startRawServer(async (connection) => {
    await connection.read(1);
    connection.reset();
    await connection.closed;
  });
  await using client = await rawClient(server.port);
  await client.write("x");
  const error = await client.closed;
  assert.equal(error !== undefined && "code" in error ? error.code : undefined, "ECONNRESET");
});

test("what a script throws closes its connection, and closing the server reports it", async () => {
  const server = await startRawServer(() => {
    throw new Error("the script failed");
  });
  await using client = await rawClient(server.port);
  assert.equal((await client.collect()).length, 0);
  assert.equal(server.errors.length, 1);
  await assert.rejects(server.close(), /the script failed/);
  await assert.rejects(rawClient(server.port), /ECONNREFUSED/);
});

test("a raw server can speak TLS, on IPv6 as well", async () => {
  const authority = CertificateAuthority.create();
  await using server = await startRawServer("secret", { host: "::1", tls: credentials(authority) });
  const tls = { ca: authority.certificatePem, servername: "localhost" };
  await using client = await rawClient(server.port, { host: "::1", tls });
  await client.write("\r\n\r\n");
  assert.equal((await client.collect()).toString(), "secret");
  await assert.rejects(rawClient(server.port, { host: "::1", tls: { servername: "localhost" } }), /self.signed/i);
});

test("closing a server cuts unread connections", async () => {
  const server = await startRawServer(async (connection) => await connection.closed.then(() => undefined));
  await using idle = await rawClient(server.port);
  await waitUntil(() => server.connections.length === 1);
  await server.close();
  await server.close();
  assert.equal((await idle.collect()).length, 0);
});

const responses: [name: string, bytes: string, method: string, expected: { status: number; body: string }][] = [
  ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "GET", { status: 200, body: "hi" }],
  [
    "chunks",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
    "GET",
    { status: 200, body: "hi0123456789" },
  ],
  ["the end", "HTTP/1.0 404 Not Found\r\n\r\nabc", "GET", { status: 404, body: "abc" }],
  ["an interim answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 \r\n\r\n", "POST", { status: 204, body: "" }],
  ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "HEAD", { status: 200, body: "" }],
  ["not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", "GET", { status: 304, body: "" }],
];

for (const [name, bytes, method, expected] of responses) {
  test(`a response delimited by ${name} is read`, async () => {
    await using server = await startRawServer(bytes);
    await using client = await rawClient(server.port);
    await client.write("\r\n\r\n");
    const response = await readResponse(client, method);
    assert.deepEqual({ status: response.status, body: response.body.toString() }, expected);
  });
}

const badResponses: [name: string, bytes: string, message: RegExp][] = [
  ["two framings", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", /both/],
  ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", /more than one/],
  ["a short body", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", /ended before byte 3/],
  ["a chunk that is too long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nhi\r\n0\r\n\r\n", /CRLF/],
  ["a folded field", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", /not a header field/],
  ["no status", "HTTP/1.1 OK\r\n\r\n", /not a status line/],
];

for (const [name, bytes, message] of badResponses) {
  test(`a response with ${name} is refused`, async () => {
    await using server = await startRawServer(bytes);
    await using client = await rawClient(server.port);
    await client.write("\r\n\r\n");
    await assert.rejects(readResponse(client), message);
  });
}
