import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  brotliCompressSync,
  brotliDecompressSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateSync,
  zstdCompressSync,
  zstdDecompressSync,
} from "node:zlib";
import { startOrigin } from "@headworks/testkit";
import { startRewrites } from "./rewrites-rig.ts";
import type { RewritesRig } from "./rewrites-rig.ts";

let rig: RewritesRig;
before(async () => {
  rig = await startRewrites();
});
after(() => rig[Symbol.asyncDispose]());

const body = (request: AsyncIterable<Buffer>): Promise<Buffer> =>
  Array.fromAsync(request).then((pieces) => Buffer.concat(pieces));

test("headers are set on request and response, and the trace reports both", async () => {
  await rig.reset((request, response) => response.end(String(request.headers["x-test"])));
  await rig.rule(
    [
      { type: "set_header", name: "x-test", value: "grün" },
      { type: "remove_header", name: "ACCEPT" },
    ],
    { name: "out", direction: "request" },
  );
  await rig.rule({ type: "set_header", name: "X-Back", value: "1" }, { name: "back", direction: "response" });
  const response = await rig.client.fetch({
    url: `${rig.origin.url}/a`,
    headers: [
      ["X-Test", "one"],
      ["Accept", "a"],
      ["x-TEST", "two"],
      ["accept", "b"],
    ],
  });
  assert.equal(response.body.toString(), "grün");
  assert.equal(response.header("x-back"), "1");
  const { rawHeaders = [] } = rig.origin.requests.at(-1) ?? {};
  assert.equal(rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "x-test").length, 1);
  assert.equal(
    rawHeaders.some((name) => name.toLowerCase() === "accept"),
    false,
  );
  assert.deepEqual(await rig.trace(), [
    "out request: set header x-test: grün; removed header ACCEPT (2 fields)",
    "back response: set header X-Back: 1",
  ]);
});

const CODINGS = {
  gzip: [gzipSync, gunzipSync],
  deflate: [deflateSync, inflateSync],
  br: [brotliCompressSync, brotliDecompressSync],
  zstd: [zstdCompressSync, zstdDecompressSync],
} as const;

for (const [coding, [compress, decompress]] of Object.entries(CODINGS)) {
  for (const isChunked of [true, false]) {
    test(`a body coded as ${coding} is rewritten and encoded again, ${isChunked ? "chunked" : "with a length"}`, async () => {
      const plain = "all cats are grey. ".repeat(3000);
      await rig.reset((_request, response) => {
        const coded = compress(Buffer.from(plain));
        response.setHeader("Content-Encoding", coding);
        response.setHeader("Content-Type", "text/plain");
        response.setHeader("Content-MD5", "abc");
        if (!isChunked) response.setHeader("Content-Length", coded.length);
        response.end(coded);
      });
      await rig.rule({ type: "body_rewrite", pattern: "(c)at(s)", replacement: "dog$2" }, { name: "dogs" });
      const response = await rig.client.fetch(`${rig.origin.url}/`);
      assert.equal(response.header("content-encoding"), coding);
      assert.equal(response.header("content-md5"), undefined);
      assert.equal(response.header("content-length"), String(response.body.length));
      assert.equal(response.header("transfer-encoding"), undefined);
      assert.equal(decompress(response.body).toString(), plain.replaceAll("cats", "dogs"));
      assert.deepEqual(await rig.trace(), [
        "dogs request: a GET request has no body; matched, changed nothing",
        "dogs response: 3000 matches replaced: body 57000 to 57000 bytes; removed Content-MD5 (no longer valid)",
      ]);
    });
  }
}

test("several codings are decoded and encoded in order, and an unknown one is forwarded unchanged", async () => {
  await rig.reset((request, response) => {
    const isKnown = request.url === "/known";
    response.setHeader("Content-Encoding", isKnown ? "gzip, br" : "gzip, dcb");
    response.end(isKnown ? brotliCompressSync(gzipSync("old")) : "whatever");
  });
  await rig.rule({ type: "body_rewrite", pattern: "old", replacement: "new" }, { direction: "response" });
  const known = await rig.client.fetch(`${rig.origin.url}/known`);
  assert.equal(known.header("content-encoding"), "gzip, br");
  assert.equal(gunzipSync(brotliDecompressSync(known.body)).toString(), "new");
  await rig.entry();
  const unknown = await rig.client.fetch(`${rig.origin.url}/unknown`);
  assert.equal(unknown.body.toString(), "whatever");
  assert.deepEqual(await rig.trace(), [
    "rule response: the content coding gzip, dcb cannot be decoded; the body is forwarded unchanged; matched, changed nothing",
  ]);
});

test("a request body is rewritten in its own charset, and the origin gets the right length", async () => {
  const received: Buffer[] = [];
  await rig.reset((request, response) => {
    void body(request).then((bytes) => {
      received.push(bytes);
      response.end(String(request.headers["content-length"]));
    });
  });
  await rig.rule({ type: "body_rewrite", pattern: "für", replacement: "gegen äöü" }, { direction: "request" });
  const response = await rig.client.fetch({
    url: `${rig.origin.url}/`,
    method: "POST",
    headers: [["Content-Type", "text/plain; charset=iso-8859-1"]],
    body: Buffer.from("alle für einen", "latin1"),
  });
  assert.equal(received[0]?.toString("latin1"), "alle gegen äöü einen");
  assert.equal(response.body.toString(), String(received[0]?.length));
});

test("multipart bodies keep every byte that no rule touches", async () => {
  const binary = Buffer.from(Array.from({ length: 1024 }, (_, at) => (at * 7) % 256));
  const around = (field: string): Buffer =>
    Buffer.concat([
      Buffer.from(
        `--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n${field}\r\n--B\r\nContent-Type: image/png\r\n\r\n`,
      ),
      binary,
      Buffer.from("\r\n--B--\r\n"),
    ]);
  const received: Buffer[] = [];
  await rig.reset((request, response) => {
    void body(request).then((bytes) => {
      received.push(bytes);
      response.end();
    });
  });
  await rig.rule({ type: "body_rewrite", pattern: "größe", replacement: "größer €" }, { direction: "request" });
  await rig.client.fetch({
    url: `${rig.origin.url}/`,
    method: "POST",
    headers: [["Content-Type", "multipart/form-data; boundary=B"]],
    body: around("größe"),
  });
  assert.deepEqual(received[0], around("größer €"));
});

test("rules run by priority, and each sees the result of the previous one", async () => {
  await rig.reset((request, response) => response.end(`${request.method} ${request.url}`));
  await rig.rule(
    { type: "query_param", name: "step", value: "2" },
    { name: "late", priority: 200, condition: { type: "query_param", name: "step", value: "1" }, direction: "request" },
  );
  await rig.rule(
    { type: "query_param", name: "step", value: "1" },
    { name: "early", priority: 1, direction: "request" },
  );
  await rig.rule(
    { type: "set_method", method: "PUT" },
    {
      name: "never",
      priority: 300,
      condition: { type: "query_param", name: "step", value: "1" },
      direction: "request",
    },
  );
  const response = await rig.client.fetch(`${rig.origin.url}/p?a=%41+b&&x`);
  assert.equal(response.body.toString(), "GET /p?a=%41+b&&x&step=2");
  assert.deepEqual(await rig.trace(), [
    "early request: query parameter step=1",
    "late request: query parameter step=2",
  ]);
});

test("a request is mapped to another origin, and rules for either URL apply to the response", async () => {
  await using other = await startOrigin({
    handler: (request, response) => response.end(`other ${request.url} ${request.headers.host}`),
  });
  await rig.reset();
  const from = { type: "url_pattern", pattern: `^${rig.origin.url.replaceAll(".", "\\.")}` } as const;
  await rig.rule(
    { type: "map_to_url", url: `${other.url}/base/` },
    { name: "map", condition: from, direction: "request", priority: 1 },
  );
  await rig.rule(
    { type: "set_header", name: "X-From", value: "1" },
    { name: "from", condition: from, direction: "response" },
  );
  await rig.rule(
    { type: "set_header", name: "X-To", value: "1" },
    { name: "to", condition: { type: "port", port: other.port }, direction: "response" },
  );
  const { length: countBefore } = rig.origin.requests;
  const response = await rig.client.fetch(`${rig.origin.url}/p?q=1`);
  assert.equal(response.body.toString(), `other /base/p?q=1 127.0.0.1:${other.port}`);
  assert.deepEqual([response.header("x-from"), response.header("x-to")], ["1", "1"]);
  assert.equal(rig.origin.requests.length, countBefore);
  const entry = await rig.entry();
  assert.equal(entry.modified, true);
  assert.equal(entry.request.url, `${other.url}/base/p?q=1`);
  assert.equal(entry.original_request?.url, `${rig.origin.url}/p?q=1`);
});

test("a new status adapts the body: 204 has none, and a response without one gets one", async () => {
  await rig.reset((request, response) => {
    response.statusCode = request.url === "/empty" ? 204 : 200;
    response.end(request.url === "/empty" ? "" : "content");
  });
  await rig.rule(
    { type: "set_status", code: 204 },
    { condition: { type: "path_pattern", pattern: "^/full" }, direction: "response" },
  );
  await rig.rule(
    [
      { type: "set_status", code: 201 },
      { type: "set_body", content: "made" },
    ],
    {
      condition: { type: "path_pattern", pattern: "^/empty" },
      direction: "response",
    },
  );
  const emptied = await rig.client.fetch(`${rig.origin.url}/full`);
  assert.deepEqual([emptied.status, emptied.body.length], [204, 0]);
  const filled = await rig.client.fetch(`${rig.origin.url}/empty`);
  assert.deepEqual([filled.status, filled.reason, filled.body.toString()], [201, "Created", "made"]);
});

test("a response to HEAD has its fields changed and no wrong length", async () => {
  await rig.reset((_request, response) => response.setHeader("Content-Length", 7).end("content"));
  await rig.rule(
    [
      { type: "set_header", name: "X-A", value: "1" },
      { type: "body_rewrite", pattern: "c", replacement: "" },
    ],
    {
      direction: "response",
    },
  );
  const response = await rig.client.fetch({ url: `${rig.origin.url}/`, method: "HEAD" });
  assert.equal(response.header("x-a"), "1");
  assert.equal(response.header("content-length"), undefined);
  assert.deepEqual(await rig.trace(), [
    "rule response: set header X-A: 1; a response to HEAD has no body to edit; removed Content-Length: rules change the body of GET",
  ]);
});

test("JSON is patched and merged, its numbers and indentation stay", async () => {
  const source = '{\n  "id": 12345678901234567890,\n  "price": 1.10,\n  "tags": ["a"]\n}';
  await rig.reset((_request, response) => response.setHeader("Content-Type", "application/json").end(source));
  await rig.rule(
    [
      { type: "json_patch", patch: [{ op: "add", path: "/tags/-", value: "b" }] },
      { type: "json_merge", patch: { price: null, more: { x: 1 } } },
      { type: "json_patch", patch: [{ op: "test", path: "/none", value: 1 }] },
    ],
    { direction: "response", condition: { type: "json_path", path: "$.tags[*]", value: "a" } },
  );
  const response = await rig.client.fetch(`${rig.origin.url}/`);
  assert.equal(
    response.body.toString(),
    '{\n  "id": 12345678901234567890,\n  "tags": [\n    "a",\n    "b"\n  ],\n  "more": {\n    "x": 1\n  }\n}',
  );
  const [line = ""] = await rig.trace();
  assert.match(
    line,
    /JSON Patch applied.*JSON Merge Patch applied.*JSON Patch not applied: Operation 0: there is nothing/,
  );
});

test("bodies over the limit, decompression bombs and streams are forwarded unchanged, with a note", async () => {
  await rig.reset((request, response) => {
    if (request.url === "/stream") {
      response.setHeader("Content-Type", "text/event-stream");
      response.end("data: old\n\n");
    } else if (request.url === "/bomb") {
      response.setHeader("Content-Encoding", "gzip").end(gzipSync(Buffer.alloc(5_000_000, "old ")));
    } else response.end("old ".repeat(20_000));
  });
  await rig.api("PATCH", "/config", { rewrite_body_limit: 50_000 });
  await rig.rule({ type: "body_rewrite", pattern: "old", replacement: "new" }, { direction: "response" });
  const expected: [string, RegExp, (sent: Buffer) => boolean][] = [
    ["/large", /the body is larger than 50000 bytes/, (sent) => sent.toString() === "old ".repeat(20_000)],
    ["/bomb", /the decoded body is larger than 50000 bytes/, (sent) => gunzipSync(sent).length === 5_000_000],
    ["/stream", /a text\/event-stream stream is not buffered/, (sent) => sent.toString() === "data: old\n\n"],
  ];
  for (const [path, words, isWhole] of expected) {
    const response = await rig.client.fetch(rig.origin.url + path);
    assert.ok(isWhole(response.body), path);
    const [line = ""] = await rig.trace();
    assert.match(line, words);
    assert.match(line, /matched, changed nothing$/);
  }
});

test("a new body replaces a stream or oversized body at once", async () => {
  const pending: { end: () => void }[] = [];
  await rig.reset((request, response) => {
    if (request.url === "/large") return void response.end("x".repeat(20_000));
    response.setHeader("Content-Type", "text/event-stream");
    response.write("data: endless\n\n");
    pending.push(response);
  });
  await rig.api("PATCH", "/config", { rewrite_body_limit: 10_000 });
  await rig.rule([{ type: "set_body", content: "short", content_type: "text/plain" }], { direction: "response" });
  for (const path of ["/stream", "/large"]) {
    const response = await rig.client.fetch(rig.origin.url + path);
    assert.deepEqual(
      [response.status, response.body.toString(), response.header("content-length")],
      [200, "short", "5"],
    );
    assert.equal(response.header("content-type"), "text/plain");
    assert.deepEqual(await rig.trace(), ["rule response: body replaced by 5 bytes"]);
  }
  for (const response of pending) response.end();
});

test("a request gets a body if its method allows one, with a length", async () => {
  await rig.reset((request, response) => {
    void body(request).then((bytes) =>
      response.end(`${request.method} ${request.headers["content-length"] ?? "none"} ${bytes.toString()}`),
    );
  });
  await rig.rule([{ type: "set_body", content: "new" }], {
    direction: "request",
    condition: { type: "path_pattern", pattern: "^/body" },
  });
  await rig.rule([{ type: "set_method", method: "POST" }], {
    direction: "request",
    condition: { type: "path_pattern", pattern: "^/method" },
  });
  const send = async (method: string, path: string, content?: string): Promise<string> => {
    const response = await rig.client.fetch({
      url: rig.origin.url + path,
      method,
      ...(content === undefined ? {} : { body: content }),
    });
    return response.body.toString();
  };
  assert.equal(await send("POST", "/body", "a long old body"), "POST 3 new");
  assert.equal(await send("PATCH", "/body"), "PATCH 3 new");
  assert.equal(await send("GET", "/body"), "GET none ");
  assert.equal(await send("GET", "/method"), "POST 0 ");
  assert.equal(await send("PUT", "/method", "kept"), "POST 4 kept");
});

test("a response that does not end is released after the time limit of rules", async () => {
  const pending: { end: () => void }[] = [];
  await rig.reset((_request, response) => {
    response.write("first ");
    pending.push(response);
  });
  await rig.api("PATCH", "/config", { rewrite_body_wait_ms: 100 });
  await rig.rule({ type: "body_rewrite", pattern: "first", replacement: "second" }, { direction: "response" });
  await using connection = await rig.client.connect();
  await connection.write(`GET ${rig.origin.url}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  await connection.readUntil("first ");
  for (const response of pending) response.end();
  assert.match((await rig.trace()).join(), /did not end in time and is forwarded unchanged/);
});

test("hits are counted once for an exchange, and a response rule may use the request body", async () => {
  await rig.reset((_request, response) => response.end("answer"));
  const id = await rig.rule(
    { type: "set_header", name: "X-Op", value: "found" },
    { condition: { type: "graphql_operation", operation_name: "Cart" }, direction: "response" },
  );
  const both = await rig.rule({ type: "set_header", name: "X-Both", value: "1" });
  const response = await rig.client.fetch({
    url: `${rig.origin.url}/graphql`,
    method: "POST",
    headers: [["Content-Type", "application/json"]],
    body: '{"operationName":"Cart","query":"query Cart { x }"}',
  });
  assert.equal(response.header("x-op"), "found");
  for (const rule of [id, both]) {
    const { json } = await rig.api("GET", `/rewrites/${rule}`);
    assert.equal((json as { hit_count: number }).hit_count, 1);
  }
});

test("a client that expects 100-continue gets it when a rule edits the body", async () => {
  const received: Buffer[] = [];
  await rig.reset((request, response) => {
    void body(request).then((bytes) => {
      received.push(bytes);
      response.end("done");
    });
  });
  await rig.rule({ type: "body_rewrite", pattern: "(old)", replacement: "new $1" }, { direction: "request" });
  await using connection = await rig.client.connect();
  await connection.write(
    `PUT ${rig.origin.url}/ HTTP/1.1\r\nHost: 127.0.0.1:${rig.origin.port}\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  await connection.readUntil("HTTP/1.1 100 Continue\r\n\r\n");
  await connection.write("2\r\nol\r\n1\r\nd\r\n0\r\n\r\n");
  await connection.readUntil("done");
  assert.equal(received[0]?.toString(), "new old");
});

test("a large body is edited in a thread while other requests are served", async () => {
  await rig.reset((request, response) =>
    response
      .setHeader("Content-Type", "text/plain; charset=utf-8")
      .end(request.url === "/small" ? "a small" : "a large ".repeat(100_000)),
  );
  await rig.rule({ type: "body_rewrite", pattern: "(l)arge|(s)mall", replacement: "$1$2" }, { direction: "response" });
  const [large, small] = await Promise.all([
    rig.client.fetch(`${rig.origin.url}/large`),
    rig.client.fetch(`${rig.origin.url}/small`),
  ]);
  assert.equal(large.body.toString(), "a l ".repeat(100_000));
  assert.equal(small.body.toString(), "a s");
});
