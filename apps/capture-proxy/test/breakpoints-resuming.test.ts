import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  brotliCompressSync,
  brotliDecompressSync,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
  zstdDecompressSync,
} from "node:zlib";
import type { TrafficEntry } from "@headworks/capture-contract";
import { proxyClient, rawClient, startOrigin } from "@headworks/testkit";
import { ALLOW, cleared, create, endedEntry, one, paused, resume, traceOf } from "./breakpoints-rig.ts";
import { startProxyRig } from "./proxy-rig.ts";

const rig = await startProxyRig();
after(() => rig[Symbol.asyncDispose]());
const proxyPort = Number(new URL(rig.proxy.addresses.proxy).port);

const pauseRequests = { name: "bp", condition: { type: "all" }, direction: "request" } as const;
const pauseResponses = { name: "bp", condition: { type: "all" }, direction: "response" } as const;

test("a request goes out as it was edited: method, URL, fields and body; entry and trace keep both", async () => {
  await cleared(rig);
  await create(rig, pauseRequests);
  const waiting = rig.send({
    method: "POST",
    path: "/edit?a=1",
    headers: { "content-type": "text/plain; charset=iso-8859-1", cookie: "a=1", "x-old": "1" },
    body: Buffer.from("grüße", "latin1"),
  });
  const item = await one(rig);
  assert.equal(item.request.body, "grüße");
  const { "x-old": _old, ...kept } = item.request.headers;
  await resume(rig, item, {
    action: "modify",
    request: { ...item.request, method: "PUT", path: "/edited", headers: { ...kept, "X-New": "2" }, body: "größer" },
  });
  assert.equal((await waiting).status, 200);
  const [seen] = rig.seen;
  assert.deepEqual([seen?.method, seen?.url], ["PUT", "/edited"]);
  assert.deepEqual(seen?.body, Buffer.from("größer", "latin1"));
  assert.equal(seen.headers["content-length"], "6");
  assert.equal(seen.headers["x-new"], "2");
  assert.equal(seen.headers["x-old"], undefined);
  assert.equal(seen.headers.cookie, "a=1");
  const entry = await endedEntry(rig, "/edited");
  assert.equal(entry.modified, true);
  assert.equal(entry.original_request?.method, "POST");
  assert.deepEqual((await traceOf(rig, "/edited"))[0]?.changes, [
    "method POST to PUT",
    `url http://127.0.0.1:${rig.originPort}/edit?a=1 to http://127.0.0.1:${rig.originPort}/edited`,
    "set header X-New",
    "removed header x-old",
    "body 5 to 6 bytes",
  ]);
});

const CODINGS: readonly (readonly [string, (bytes: Buffer) => Buffer, (bytes: Buffer) => Buffer])[] = [
  ["gzip", (bytes) => gzipSync(bytes), (bytes) => gunzipSync(bytes)],
  ["br", (bytes) => brotliCompressSync(bytes), (bytes) => brotliDecompressSync(bytes)],
  ["zstd", (bytes) => zstdCompressSync(bytes), (bytes) => zstdDecompressSync(bytes)],
];
for (const [coding, encode, decode] of CODINGS) {
  for (const framing of ["chunked", "length"] as const) {
    test(`an answer in ${coding}, ${framing}, is edited as text and delivered in ${coding}`, async () => {
      const coded = encode(Buffer.from("hello"));
      await cleared(rig, (_seen, response) => {
        response.setHeader("content-encoding", coding);
        response.setHeader("content-type", "text/plain");
        if (framing === "length") response.setHeader("content-length", coded.length);
        response.write(coded.subarray(0, 4));
        response.end(coded.subarray(4));
      });
      await create(rig, pauseResponses);
      const waiting = rig.send({ path: `/${coding}-${framing}` });
      const item = await one(rig);
      assert.equal(item.response?.body, "hello");
      await resume(rig, item, { decision: "modify", modifications: { body: "hello, world", status_code: 418 } });
      const response = await waiting;
      assert.deepEqual([response.status, response.reason], [418, "I'm a Teapot"]);
      assert.equal(response.headers["content-encoding"], coding);
      assert.equal(response.headers["content-length"], String(response.body.length));
      assert.equal(decode(response.body).toString(), "hello, world");
      const entry: TrafficEntry = await endedEntry(rig, `/${coding}-${framing}`);
      assert.equal(entry.original_response?.status_code, 200);
    });
  }
}

test("a request is sent to another place, and Host follows", async () => {
  await cleared(rig);
  await using other = await startOrigin();
  await create(rig, pauseRequests);
  const waiting = rig.send({ path: "/from" });
  await resume(rig, await one(rig), {
    action: "modify",
    modifications: [{ type: "set_url", url: `http://127.0.0.1:${other.port}/to?x=1` }],
  });
  assert.equal((await waiting).status, 200);
  assert.deepEqual(rig.seen, []);
  const [seen] = other.requests;
  assert.equal(seen?.url, "/to?x=1");
});

test("rejecting closes the connection without an answer, at either side", async () => {
  for (const [rule, expected] of [
    [pauseRequests, 0],
    [pauseResponses, 1],
  ] as const) {
    await cleared(rig);
    await create(rig, rule);
    const client = await rawClient(proxyPort);
    await client.write(`GET http://127.0.0.1:${rig.originPort}/reject HTTP/1.1\r\nHost: x\r\n\r\n`);
    await resume(rig, await one(rig), { decision: "reject" });
    await client.closed;
    await assert.rejects(client.read(1));
    assert.equal(rig.seen.length, expected);
  }
  const changes = (await traceOf(rig, "/reject"))[0]?.changes;
  assert.deepEqual(changes, ["closed without a response"]);
});

test("a made-up answer is delivered at either side and not paused again", async () => {
  for (const [direction, expected] of [
    ["both", 0],
    ["response", 1],
  ] as const) {
    await cleared(rig);
    await create(rig, { ...pauseRequests, direction });
    const waiting = rig.send({ path: `/made-up-${direction}` });
    await resume(rig, await one(rig), {
      action: {
        action: "respond",
        status_code: 201,
        headers: {
          "Content-Type": "text/html; charset=iso-8859-1",
          "Set-Cookie": "a=1\nb=2",
          "Content-Encoding": "gzip",
        },
        body: "grün",
      },
    });
    const response = await waiting;
    assert.deepEqual([response.status, gunzipSync(response.body)], [201, Buffer.from("grün", "latin1")]);
    assert.deepEqual(response.headers["set-cookie"], ["a=1", "b=2"]);
    assert.equal(rig.seen.length, expected);
    await paused(rig, 0);
    assert.deepEqual((await traceOf(rig, `/made-up-${direction}`))[0]?.changes, ["answered with 201"]);
  }
});

test("an answer without content stays without, whatever body was written for it", async () => {
  await cleared(rig);
  await create(rig, pauseRequests);
  const waiting = rig.send();
  await resume(rig, await one(rig), { action: "respond", status_code: 204, body: "lost" });
  const response = await waiting;
  assert.deepEqual([response.status, response.body.length, response.headers["content-length"]], [204, 0, undefined]);
});

test("a decision that cannot be carried out is refused, and the exchange goes on waiting", async () => {
  await cleared(rig);
  await create(rig, pauseRequests);
  const waiting = rig.send({ path: "/still" });
  const item = await one(rig);
  for (const decision of [
    {},
    { action: "explode" },
    { action: "modify", url: "/relative" },
    { action: "modify", status_code: 200 },
    { action: "modify", modifications: [{ type: "set_header", name: "A", value: "1\r\nB: 2" }] },
    { action: "modify", modifications: [{ type: "odd" }] },
    { action: "continue", odd: 1 },
  ]) {
    await resume(rig, item, decision, 400);
  }
  await resume(rig, item, ALLOW);
  await resume(rig, item, ALLOW, 404);
  assert.equal((await waiting).status, 200);
  assert.equal(rig.seen.length, 1);
});

test("two decisions at once: one is carried out, the other is told that nothing waits any more", async () => {
  await cleared(rig);
  await create(rig, pauseRequests);
  const waiting = rig.send({ method: "POST", path: "/race", body: "x" });
  const item = await one(rig);
  const decide = async (name: string): Promise<number> => {
    const response = await fetch(`${rig.proxy.addresses.api}/api/breakpoints/paused/${item.id}/resume`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ action: "modify", body: name }),
    });
    await response.text();
    return response.status;
  };
  const statuses = await Promise.all([decide("first"), decide("second")]);
  assert.deepEqual(statuses.toSorted(), [200, 404]);
  const winner = statuses[0] === 200 ? "first" : "second";
  assert.equal((await waiting).body.toString(), `echo ${winner}`);
});

test("a delay holds the decision back", async () => {
  await cleared(rig);
  await create(rig, pauseRequests);
  const waiting = rig.send();
  const item = await one(rig);
  const startedMs = performance.now();
  await resume(rig, item, { action: "modify", modifications: [{ type: "delay", ms: 200 }] });
  await waiting;
  assert.ok(performance.now() - startedMs >= 190);
});

test("a client that goes away during a delay breaks nothing", async () => {
  await cleared(rig);
  await create(rig, pauseRequests);
  const controller = new AbortController();
  const gone = rig.send({ method: "POST", path: "/gone-late", body: "x", signal: controller.signal });
  const item = await one(rig);
  await resume(rig, item, {
    action: "modify",
    modifications: [
      { type: "set_body", content: "changed" },
      { type: "delay", ms: 300 },
    ],
  });
  controller.abort();
  await assert.rejects(gone);
  assert.equal((await endedEntry(rig, "/gone-late")).state, "failed");
  await new Promise((resolve) => setTimeout(resolve, 350));
  assert.deepEqual(rig.seen, []);
  const waiting = rig.send();
  await resume(rig, await one(rig), ALLOW);
  assert.equal((await waiting).status, 200);
});

test("a body is given to a request that had none, and taken from one that had", async () => {
  await cleared(rig);
  await create(rig, pauseRequests);
  const bare = rig.send({ method: "GET", path: "/bare" });
  await resume(rig, await one(rig), { action: "modify", method: "POST", body: "added" });
  assert.equal((await bare).body.toString(), "echo added");
  const full = rig.send({ method: "POST", path: "/full", body: "taken" });
  await resume(rig, await one(rig), { action: "modify", body: "" });
  assert.equal((await full).body.toString(), "echo ");
  assert.equal(rig.seen[1]?.headers["content-length"], "0");
});

test("an answer to HEAD and a 304 are edited without getting a body", async () => {
  await cleared(rig, (seen, response) => {
    if (seen.method === "HEAD") response.setHeader("content-length", "100");
    else response.statusCode = 304;
    response.end();
  });
  await create(rig, pauseResponses);
  for (const [method, status] of [
    ["HEAD", 200],
    ["GET", 304],
  ] as const) {
    const waiting = rig.send({ method, path: `/no-body-${method}` });
    await resume(rig, await one(rig), {
      action: "modify",
      modifications: [{ type: "set_header", name: "X-A", value: "1" }],
    });
    const response = await waiting;
    assert.deepEqual([response.status, response.headers["x-a"], response.body.length], [status, "1", 0]);
  }
});

test("requests inside intercepted TLS are paused and edited like others", async () => {
  await cleared(rig);
  await create(rig, { url_pattern: "https://nowhere.test/*", direction: "request" });
  const certificate = await fetch(`${rig.proxy.addresses.api}/api/cert/ca`);
  const client = proxyClient(proxyPort, { ca: await certificate.text() });
  const waiting = client.fetch("https://nowhere.test/secret");
  const item = await one(rig);
  assert.equal(item.request.url, "https://nowhere.test/secret");
  await resume(rig, item, { action: "respond", status_code: 200, body: "made up" });
  const response = await waiting;
  assert.equal(response.body.toString(), "made up");
});
