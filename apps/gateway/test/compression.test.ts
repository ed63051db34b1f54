import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { test } from "node:test";
import { brotliDecompressSync, constants, gunzipSync, gzipSync, zstdDecompressSync } from "node:zlib";
import type { DocumentInput } from "@headworks/gateway-contract";
import { rawClient, readResponse, startOrigin, startRawServer } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";
import { proxied, responding } from "./route-documents.ts";

type CompressionInput = NonNullable<NonNullable<DocumentInput["routes"]>[number]["compression"]>;

const all: CompressionInput = { algorithms: ["brotli", "gzip", "zstd"] };
const text = "many words, and many more words of the same kind. ".repeat(2000);
const decoders = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
} as const;

const answering =
  (body: string | Buffer, headers: Record<string, string | string[]> = {}, status = 200): RequestListener =>
  (_request, response) =>
    void response
      .writeHead(status, { "Content-Type": "text/plain", "Content-Length": Buffer.byteLength(body), ...headers })
      .end(body);

async function through(
  handler: RequestListener,
  compression: CompressionInput,
  request: { readonly method?: string; readonly accept?: string },
) {
  await using origin = await startOrigin({ handler });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/", { compression })],
  });
  const { method = "GET", accept } = request;
  return await gateway.send({ method, path: "/", fields: accept === undefined ? [] : [`Accept-Encoding: ${accept}`] });
}

for (const [coding, decode] of Object.entries(decoders)) {
  for (const level of [undefined, 0, 22]) {
    test(`compression: ${coding} at level ${level ?? "default"}, clamped per algorithm: what comes out is what went in`, async () => {
      const body = Buffer.from(text);
      const response = await through(
        answering(text, { ETag: '"v1"' }),
        { ...all, ...(level === undefined ? {} : { level }) },
        { accept: coding },
      );
      assert.deepEqual(
        ["content-encoding", "vary", "etag", "content-length"].map((name) => response.header(name)),
        [coding, "Accept-Encoding", 'W/"v1"', undefined],
      );
      assert.ok(decode(response.body).equals(body));
      if (level !== 0) assert.ok(response.body.length < body.length / 10, String(response.body.length));
    });
  }
}

const identity = (name: string, handler: RequestListener, block = all, accept: string | null = "gzip, br") =>
  ({ name, handler, block, accept }) as const;
for (const { name, handler, block, accept } of [
  identity("a body below min_size", answering("x".repeat(1023))),
  identity("a type that is not listed", answering(text), { ...all, content_types: ["application/json"] }),
  identity(
    "a type that is excluded, whatever is listed",
    answering(text, { "Content-Type": "Text/Plain; charset=utf-8" }),
    { ...all, content_types: ["text/"], excluded_content_types: ["text/plain"] },
  ),
  identity("a client that says nothing", answering(text), all, null),
  identity("no overlap", answering(text), { algorithms: ["zstd"] }),
  identity("no-transform", answering(text, { "Cache-Control": "max-age=1, No-Transform" })),
  identity("a part of a body", answering(text, { "Content-Range": `bytes 0-${text.length - 1}/${text.length}` }, 206)),
  identity("an empty body", answering(""), { ...all, min_size: 0 }),
]) {
  test(`compression: never for ${name}; Vary: Accept-Encoding all the same`, async () => {
    const response = await through(handler, block, accept === null ? {} : { accept });
    assert.deepEqual([response.header("content-encoding"), response.header("vary")], [undefined, "Accept-Encoding"]);
    assert.ok(response.body.equals(Buffer.from(text)) || response.body.length < 1024);
  });
}

test("compression: bodies that are encoded already pass as they are, without a Vary of ours", async () => {
  const body = gzipSync(text);
  const response = await through(answering(body, { "Content-Encoding": "gzip" }), all, { accept: "br" });
  assert.deepEqual([response.header("content-encoding"), response.header("vary")], ["gzip", undefined]);
  assert.ok(response.body.equals(body));
});

test("compression: 204 and 304 have no body and get no coding", async () => {
  for (const status of [204, 304]) {
    const response = await through(
      (_request, response) => void response.writeHead(status, { ETag: '"v1"' }).end(),
      all,
      {
        accept: "gzip",
      },
    );
    assert.deepEqual(
      [response.status, response.header("content-encoding"), response.body.length],
      [status, undefined, 0],
    );
  }
});

test("compression: Vary is folded, digests of the bytes go, a weak ETag stays", async () => {
  const headers = {
    Vary: ["Accept", "accept-encoding"],
    ETag: 'W/"v"',
    "Content-MD5": "x",
    "Accept-Ranges": "bytes",
    "Repr-Digest": "sha-256=:x:",
  };
  const response = await through(answering(text, headers), all, { accept: "gzip" });
  assert.deepEqual(
    ["vary", "etag", "content-md5", "accept-ranges", "repr-digest"].map((name) => response.header(name)),
    ["Accept, accept-encoding", 'W/"v"', undefined, undefined, undefined],
  );
});

test("compression: the head of an answer to HEAD says what GET would have got", async () => {
  const handler = answering(text, { "Content-Length": String(text.length), ETag: '"v1"' });
  const response = await through(handler, all, { method: "HEAD", accept: "gzip" });
  assert.deepEqual(
    ["content-encoding", "content-length", "etag", "vary"].map((name) => response.header(name)),
    ["gzip", undefined, 'W/"v1"', "Accept-Encoding"],
  );
  const small = await through(answering("small", { "Content-Length": "5" }), all, { method: "HEAD", accept: "gzip" });
  assert.deepEqual([small.header("content-encoding"), small.header("content-length")], [undefined, "5"]);
});

test("compression: HEAD has the head of GET where the gateway makes the answer itself, and no length of other bytes", async () => {
  const action = (body: string) => ({ type: "respond" as const, status: 200, body });
  await using gateway = await startGateway({
    routes: [
      responding("long", "/long", { action: action(text), compression: all }),
      responding("short", "/short", { action: action("short"), compression: all }),
    ],
  });
  for (const [path, accept, coding, length] of [
    ["/long", "gzip", "gzip", undefined],
    ["/long", "identity", undefined, String(text.length)],
    ["/short", "gzip", undefined, "5"],
  ] as const) {
    const fields = [`Accept-Encoding: ${accept}`];
    for (const method of ["GET", "HEAD"]) {
      const response = await gateway.send({ method, path, fields });
      assert.deepEqual(
        ["content-encoding", "content-length", "vary"].map((name) => response.header(name)),
        [coding, length, "Accept-Encoding"],
        `${method} ${path} ${accept}`,
      );
    }
  }
});

test("compression: answers that the gateway makes for the action are compressed, refusals are not", async () => {
  await using gateway = await startGateway({
    routes: [
      responding("r", "/", {
        action: { type: "respond", status: 200, body: text },
        compression: all,
        methods: ["GET"],
      }),
    ],
  });
  const fields = ["Accept-Encoding: gzip"];
  assert.equal(gunzipSync((await gateway.send({ path: "/", fields })).body).toString(), text);
  const refusal = await gateway.send({ method: "PUT", path: "/", fields });
  assert.deepEqual(
    [refusal.status, refusal.header("content-encoding"), refusal.header("vary")],
    [405, undefined, "Accept-Encoding"],
  );
});

for (const coding of ["gzip", "br", "zstd"] as const) {
  test(`compression: flush per chunk: a ${coding} stream of events stays live`, async () => {
    await using upstream = await startRawServer(async (connection) => {
      await connection.readUntil("\r\n\r\n");
      await connection.write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
      );
      await connection.write("b\r\ndata: one\n\n\r\n");
      // No more until the client has said that it has read the first event.
      await connection.readUntil("seen");
      await connection.write("b\r\ndata: two\n\n\r\n0\r\n\r\n");
    });
    await using gateway = await startGateway({
      ...serving("api", [upstream.port], { request_buffer_bytes: 0 }),
      routes: [proxied("api", "/", { compression: all })],
    });
    await using client = await rawClient(gateway.port());
    await client.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nAccept-Encoding: ${coding}\r\n\r\n`);
    const head = (await client.readUntil("\r\n\r\n")).toString("latin1");
    assert.match(head, new RegExp(`content-encoding: ${coding}`, "i"));
    const chunks: Buffer[] = [];
    const decoded = (): string => {
      const options =
        coding === "gzip"
          ? { finishFlush: constants.Z_SYNC_FLUSH }
          : coding === "br"
            ? { finishFlush: constants.BROTLI_OPERATION_FLUSH }
            : { finishFlush: constants.ZSTD_e_flush };
      try {
        return decoders[coding](Buffer.concat(chunks), options).toString();
      } catch {
        return "";
      }
    };
    const readChunk = async (): Promise<number> => {
      const size = Number.parseInt((await client.readUntil("\r\n")).toString("latin1"), 16);
      chunks.push(await client.read(size));
      await client.read(2);
      return size;
    };
    while (decoded() !== "data: one\n\n") await readChunk();
    await client.write("seen");
    while ((await readChunk()) > 0);
    assert.equal(decoded(), "data: one\n\ndata: two\n\n");
  });
}

test("compression: a client that reads slowly holds the upstream back, and gets everything", async () => {
  const big = Buffer.alloc(8 * 1024 * 1024, 1);
  for (let at = 0; at < big.length; at += 1) big[at] = (at * 2_654_435_761) >>> 13;
  await using origin = await startOrigin({ handler: answering(big) });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/", { compression: { algorithms: ["gzip"], level: 1 } })],
  });
  await using client = await rawClient(gateway.port());
  await client.write("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
  const response = await readResponse(client);
  assert.ok(gunzipSync(response.body).equals(big));
});

test("compression: an upstream that breaks off leaves an answer that does not look whole", async () => {
  await using upstream = await startRawServer("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nbegun");
  await using gateway = await startGateway({
    ...serving("api", [upstream.port]),
    routes: [proxied("api", "/", { compression: all })],
  });
  await using client = await rawClient(gateway.port());
  await client.write("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
  await assert.rejects(readResponse(client));
});

for (const cache of [undefined, { ttl_secs: 60 }]) {
  test(`compression: 304 ${cache === undefined ? "of the upstream" : "from the cache"} has the weak tag that the client knows, the strong one for a copy that was not compressed`, async () => {
    await using origin = await startOrigin({
      handler: (request, response) => {
        const isKnown = request.headers["if-none-match"]?.includes('"v1"') === true;
        response
          .writeHead(isKnown ? 304 : 200, { "Content-Type": "text/plain", ETag: '"v1"' })
          .end(isKnown ? "" : text);
      },
    });
    await using gateway = await startGateway({
      ...serving("api", [origin.port]),
      routes: [proxied("api", "/", { compression: all, ...(cache === undefined ? {} : { cache }) })],
    });
    for (const [accept, expected] of [
      ["gzip", 'W/"v1"'],
      ["identity", '"v1"'],
    ] as const) {
      const fields = [`Accept-Encoding: ${accept}`];
      const whole = await gateway.send({ path: "/", fields });
      const tag = whole.header("etag") ?? "";
      const confirmed = await gateway.send({ path: "/", fields: [...fields, `If-None-Match: ${tag}`] });
      assert.deepEqual([whole.status, tag, confirmed.status, confirmed.header("etag")], [200, expected, 304, expected]);
    }
    const modified = await gateway.send({ path: "/", fields: ['If-None-Match: "v0", "v1"', "Accept-Encoding: gzip"] });
    assert.deepEqual([modified.status, modified.header("etag")], [304, '"v1"']);
  });
}
