import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { after, test } from "node:test";
import {
  rawClient,
  readResponse,
  startHttp2Origin,
  startOrigin,
  startRawServer,
  temporaryDirectory,
  type RawConnection,
} from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

const route = {
  name: "api",
  service: "api",
  match: { path: { type: "prefix", value: "/" } },
  action: { type: "proxy" },
} as const;

const directory = await temporaryDirectory();
after(async () => await directory.remove());
const authority = CertificateAuthority.create();
const leaf = authority.issueLeaf({ dns: ["a.test"], ip: [] });
const files = { cert_file: directory.file("a.pem"), key_file: directory.file("a.key") };
await writeFile(files.cert_file, leaf.chainPem);
await writeFile(files.key_file, leaf.keyPem);
const trusted_ca_file = directory.file("ca.pem");
await writeFile(trusted_ca_file, authority.certificatePem);

/** One with a listener for each way. */
async function startBoth(originPort: number): Promise<TestGateway> {
  const address = { address: "127.0.0.1", port: 0 };
  const listeners = [
    { name: "public", ...address },
    { name: "secure", ...address, protocol: "https" as const, tls: files },
  ];
  return await startGateway({ listeners, ...serving("api", [originPort]), routes: [route] });
}

interface Way {
  readonly how: string;
  readonly connectTo: (gateway: TestGateway) => Promise<RawConnection>;
}

const WAYS: readonly Way[] = [
  { how: "without TLS", connectTo: async (gateway) => await rawClient(gateway.port()) },
  {
    how: "with TLS",
    connectTo: async (gateway) =>
      await rawClient(gateway.port("secure"), { tls: { ca: authority.certificatePem, servername: "a.test" } }),
  },
];

/** Other clients overwrite the memory that all reads share. */
async function overwrite(gateway: TestGateway): Promise<void> {
  const path = `/${"overwritten".repeat(600)}`;
  const responses = Array.from({ length: 8 }, async () => {
    await using client = await rawClient(gateway.port());
    await client.write(`GET ${path} HTTP/1.1\r\nHost: other.test\r\n\r\n`);
    assert.equal((await readResponse(client)).status, 200);
  });
  await Promise.all(responses);
}

for (const { how, connectTo } of WAYS) {
  test(`requests that wait behind another one are read as they were sent, whatever others send meanwhile, ${how}`, async () => {
    const held = Promise.withResolvers<() => void>();
    await using origin = await startOrigin({
      handler: (request, response) => {
        if (request.url === "/slow") held.resolve(() => response.end(request.url));
        else response.end(request.url);
      },
    });
    await using gateway = await startBoth(origin.port);
    await using client = await connectTo(gateway);
    const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`;
    // Reads are shared from the second one on.
    await client.write(get("/first"));
    assert.equal((await readResponse(client)).body.toString(), "/first");
    await client.write(get("/slow") + get("/second") + get("/third"));
    const respondSlowly = await held.promise;
    await overwrite(gateway);
    respondSlowly();
    for (const path of ["/slow", "/second", "/third"]) {
      assert.equal((await readResponse(client)).body.toString(), path);
    }
  });

  test(`a head that comes in two parts is read as it was sent, whatever others send between them, ${how}`, async () => {
    await using origin = await startOrigin({ handler: (request, response) => response.end(request.url) });
    await using gateway = await startBoth(origin.port);
    await using client = await connectTo(gateway);
    await client.write("GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert.equal((await readResponse(client)).body.toString(), "/first");
    await client.write("GET /in-two-parts HTTP/1.1\r\nHo");
    await overwrite(gateway);
    await client.write("st: a.test\r\n\r\n");
    assert.equal((await readResponse(client)).body.toString(), "/in-two-parts");
  });

  test(`a tunnel that comes second passes what is sent, whatever others send meanwhile, ${how}`, async () => {
    const sent = randomBytes(6_000_000);
    const mayRead = Promise.withResolvers<void>();
    await using origin = await startRawServer(async (connection) => {
      for (;;) {
        const head = await connection.readUntil("\r\n\r\n", 60_000).catch(() => undefined);
        if (head === undefined) return;
        if (!head.includes("websocket")) {
          await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
          continue;
        }
        await connection.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
        await connection.write(await connection.read("early".length));
        connection.socket.pause();
        await mayRead.promise;
        connection.socket.resume();
        return await connection.write(await connection.read(sent.length, 60_000));
      }
    });
    await using gateway = await startBoth(origin.port);
    await using client = await connectTo(gateway);
    await client.write("GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert.equal((await readResponse(client)).status, 200);
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n";
    await client.write(`GET /ws HTTP/1.1\r\nHost: a.test\r\n${upgrade}early`);
    assert.equal((await readResponse(client)).status, 101);
    assert.equal((await client.read(5)).toString(), "early");
    const written = client.write(sent);
    await overwrite(gateway);
    mayRead.resolve();
    assert.ok((await client.read(sent.length, 60_000)).equals(sent));
    await written;
  });
}

for (const [framing, { how, connectTo }] of WAYS.flatMap((way) => [
  ["length", way] as const,
  ["chunked", way] as const,
])) {
  test(`a body (${framing}) that its endpoint is slow to take reaches it byte by byte, whatever others send, ${how}`, async () => {
    const body = randomBytes(6_000_000);
    const begun = Promise.withResolvers<() => void>();
    await using origin = await startOrigin({
      handler: (request, response) => {
        if (request.method !== "POST") return void response.end();
        const digest = createHash("sha256");
        begun.resolve(() => {
          request.on("data", (piece: Buffer) => digest.update(piece));
          request.on("end", () => response.end(digest.digest("hex")));
        });
      },
    });
    await using gateway = await startBoth(origin.port);
    await using client = await connectTo(gateway);
    const head = framing === "length" ? `Content-Length: ${body.length}\r\n\r\n` : "Transfer-Encoding: chunked\r\n\r\n";
    await client.write(`POST /body HTTP/1.1\r\nHost: a.test\r\n${head}`);
    const sent = (async () => {
      if (framing === "length") return await client.write(body);
      for (let at = 0; at < body.length; at += 100_000) {
        const piece = body.subarray(at, at + 100_000);
        await client.write(
          Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]),
        );
      }
      await client.write("0\r\n\r\n");
    })();
    const takeIt = await begun.promise;
    await overwrite(gateway);
    takeIt();
    await Promise.all([sent, overwrite(gateway)]);
    assert.equal((await readResponse(client)).body.toString(), createHash("sha256").update(body).digest("hex"));
  });
}

for (const isSecure of [false, true]) {
  const how = isSecure ? "over TLS" : "without TLS";
  test(`an answer of an endpoint ${how} reaches a client that is slow to take it byte by byte, whatever others send`, async () => {
    const body = randomBytes(6_000_000);
    await using origin = await startRawServer(
      async (connection) => {
        for (;;) {
          const head = await connection.readUntil("\r\n\r\n", 60_000).catch(() => undefined);
          if (head === undefined) return;
          const response = head.includes("GET /large ") ? body : Buffer.from("small");
          await connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${response.length}\r\n\r\n`);
          await connection.write(response);
        }
      },
      isSecure ? { tls: { key: leaf.keyPem, cert: leaf.chainPem } } : {},
    );
    const tls = { protocol: "https" as const, tls: { trusted_ca_file, server_name: "a.test" } };
    await using gateway = await startGateway({
      ...serving("api", [origin.port], isSecure ? tls : {}),
      routes: [route],
    });
    await using client = await rawClient(gateway.port());
    await client.write("GET /large HTTP/1.1\r\nHost: a.test\r\n\r\n");
    client.socket.pause();
    await overwrite(gateway);
    client.socket.resume();
    const [response] = await Promise.all([readResponse(client), overwrite(gateway)]);
    assert.ok(response.body.equals(body));
  });
}

test("a body that an endpoint of HTTP/2 opens no window for reaches it byte by byte, whatever others send", async () => {
  const body = randomBytes(3_000_000);
  const begun = Promise.withResolvers<() => void>();
  await using origin = await startHttp2Origin((stream, headers) => {
    if (headers[":method"] !== "POST") {
      stream.respond({ ":status": 200 });
      return void stream.end();
    }
    const digest = createHash("sha256");
    begun.resolve(() => {
      stream.on("data", (piece: Buffer) => digest.update(piece));
      stream.on("end", () => {
        stream.respond({ ":status": 200 });
        stream.end(digest.digest("hex"));
      });
    });
  });
  await using gateway = await startGateway({ ...serving("api", [origin.port], { protocol: "h2c" }), routes: [route] });
  await using client = await rawClient(gateway.port());
  await client.write(`POST /body HTTP/1.1\r\nHost: a.test\r\nContent-Length: ${body.length}\r\n\r\n`);
  const sent = client.write(body);
  const takeIt = await begun.promise;
  await overwrite(gateway);
  takeIt();
  await sent;
  assert.equal((await readResponse(client)).body.toString(), createHash("sha256").update(body).digest("hex"));
});

test("behind the PROXY header and without HTTP/2 a request in the same bytes is answered", async () => {
  await using origin = await startOrigin({ handler: (request, response) => response.end(request.url) });
  const listeners = [{ name: "public", address: "127.0.0.1", port: 0, proxy_protocol: true, http2: false }];
  await using gateway = await startGateway({ listeners, ...serving("api", [origin.port]), routes: [route] });
  await using client = await rawClient(gateway.port());
  await client.write(
    "PROXY UNKNOWN\r\nGET /one HTTP/1.1\r\nHost: a.test\r\n\r\nGET /two HTTP/1.1\r\nHost: a.test\r\n\r\n",
  );
  for (const path of ["/one", "/two"]) assert.equal((await readResponse(client)).body.toString(), path);
});
