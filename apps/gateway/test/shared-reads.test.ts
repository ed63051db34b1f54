import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { rawClient, readResponse, startHttp2Origin, startOrigin } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

const route = {
  name: "api",
  service: "api",
  match: { path: { type: "prefix", value: "/" } },
  action: { type: "proxy" },
} as const;

/** Other clients overwrite the memory that all reads share. */
async function overwrite(gateway: TestGateway): Promise<void> {
  const path = `/${"overwritten".repeat(600)}`;
  const answers = Array.from({ length: 8 }, async () => {
    await using client = await rawClient(gateway.port());
    await client.write(`GET ${path} HTTP/1.1\r\nHost: other.test\r\n\r\n`);
    assert.equal((await readResponse(client)).status, 200);
  });
  await Promise.all(answers);
}

test("requests that wait behind another one are read as they were sent, whatever others send meanwhile", async () => {
  const held = Promise.withResolvers<() => void>();
  await using origin = await startOrigin({
    handler: (request, response) => {
      if (request.url === "/slow") held.resolve(() => response.end(request.url));
      else response.end(request.url);
    },
  });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [route] });
  await using client = await rawClient(gateway.port());
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`;
  // Reads are shared from the second one on.
  await client.write(get("/first"));
  assert.equal((await readResponse(client)).body.toString(), "/first");
  await client.write(get("/slow") + get("/second") + get("/third"));
  const answerSlow = await held.promise;
  await overwrite(gateway);
  answerSlow();
  for (const path of ["/slow", "/second", "/third"]) {
    assert.equal((await readResponse(client)).body.toString(), path);
  }
});

test("a head that comes in two parts is read as it was sent, whatever others send between them", async () => {
  await using origin = await startOrigin({ handler: (request, response) => response.end(request.url) });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [route] });
  await using client = await rawClient(gateway.port());
  await client.write("GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n");
  assert.equal((await readResponse(client)).body.toString(), "/first");
  await client.write("GET /in-two-parts HTTP/1.1\r\nHo");
  await overwrite(gateway);
  await client.write("st: a.test\r\n\r\n");
  assert.equal((await readResponse(client)).body.toString(), "/in-two-parts");
});

for (const framing of ["length", "chunked"] as const) {
  test(`a body (${framing}) that its endpoint is slow to take reaches it byte by byte, whatever others send`, async () => {
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
    await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [route] });
    await using client = await rawClient(gateway.port());
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
