import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient, type RawConnection } from "@headworks/testkit";
import { serving, startGateway } from "../gateway-rig.ts";
import { proxied } from "../route-documents.ts";
import { startRecordingUpstream } from "./recording-upstream.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const TYPE = { data: 0, headers: 1, rst: 3, settings: 4, goaway: 7, continuation: 9 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;

function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Literal fields without indexing and without Huffman codes (RFC 7541, 6.2.2), so that any byte can be sent. */
function block(fields: readonly string[]): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    pieces.push(Buffer.from([0]), text(fields[at] ?? ""), text(fields[at + 1] ?? ""));
  }
  return Buffer.concat(pieces);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

async function open(port: number): Promise<RawConnection> {
  const client = await rawClient(port);
  await client.write(Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0), frame(TYPE.settings, 1, 0)]));
  return client;
}

interface Seen {
  /** The first byte of the header block tells the status for those in the static table. */
  readonly answered: boolean;
  readonly end: "reset" | "goaway" | "closed" | "answered";
}

/** Reads frames until the stream ends one way or the other. */
async function endOf(client: RawConnection, stream: number): Promise<Seen> {
  let answered = false;
  for (;;) {
    const head = await client.read(9, 5000).catch((error: unknown) => {
      if (client.ended) return undefined;
      throw error;
    });
    if (head === undefined) return { answered, end: "closed" };
    await client.read(head.readUIntBE(0, 3));
    const type = head[3];
    if (type === TYPE.goaway) return { answered, end: "goaway" };
    if (head.readUInt32BE(5) !== stream) continue;
    if (type === TYPE.rst) return { answered, end: "reset" };
    if (type === TYPE.headers) answered = true;
    if (((head[4] ?? 0) & END_STREAM) !== 0) return { answered, end: "answered" };
  }
}

const GOOD = [":method", "GET", ":scheme", "http", ":authority", "a.test", ":path", "/x"];
const without = (name: string): string[] => GOOD.filter((_, at) => GOOD[at - (at % 2)] !== name);
const having = (name: string, value: string): string[] => [...without(name), name, value];

const REFUSED: readonly (readonly [what: string, fields: readonly string[]])[] = [
  ["CR LF in :path", having(":path", "/x HTTP/1.1\r\nX: 1\r\n\r\nGET /y")],
  ["a space in :path", having(":path", "/x HTTP/1.1")],
  ["CR LF in :method", having(":method", "GET / HTTP/1.1\r\nX: 1\r\n\r\nGET")],
  ["a space in :method", having(":method", "GET /y")],
  ["an empty :method", having(":method", "")],
  ["CR LF in :authority", having(":authority", "a\r\nX: 1")],
  ["a path in :authority", having(":authority", "a.test/../b")],
  ["a user in :authority", having(":authority", "u@a.test")],
  ["a host that differs from :authority", [...GOOD, "host", "evil.test"]],
  ["two host fields", [...without(":authority"), "host", "a", "host", "b"]],
  ["no host at all", without(":authority")],
  [":path without a slash", having(":path", "x")],
  [":path that is a URL", having(":path", "http://evil.test/x")],
  ["an empty :path", having(":path", "")],
  ["no :path", without(":path")],
  ["no :method", without(":method")],
  ["two :path", [...GOOD, ":path", "/y"]],
  ["a pseudo-field behind a field", [...without(":path"), "x", "1", ":path", "/x"]],
  ["an unknown pseudo-field", [":x", "1", ...GOOD]],
  ["a status in a request", [":status", "200", ...GOOD]],
  ["a capital in a name", [...GOOD, "X-Y", "1"]],
  ["connection", [...GOOD, "connection", "x-consumer-name"]],
  ["keep-alive", [...GOOD, "keep-alive", "1"]],
  ["proxy-connection", [...GOOD, "proxy-connection", "close"]],
  ["transfer-encoding", [...GOOD, "transfer-encoding", "chunked"]],
  ["upgrade", [...GOOD, "upgrade", "websocket"]],
  ["te other than trailers", [...GOOD, "te", "gzip"]],
  ["a length without a body", [...GOOD, "content-length", "5"]],
  ["two lengths", [...GOOD, "content-length", "0", "content-length", "0"]],
  ["a signed length", [...GOOD, "content-length", "+0"]],
  ["CONNECT", [":method", "CONNECT", ":authority", "a.test:443"]],
  ["an extended CONNECT", [...having(":method", "CONNECT"), ":protocol", "websocket"]],
  ["a dot segment", having(":path", "/x/../y")],
];

for (const [what, fields] of REFUSED) {
  test(`U2: HTTP/2 with ${what} is refused, and no upstream sees anything of it`, async () => {
    await using upstream = await startRecordingUpstream();
    await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
    await using client = await open(gateway.port());
    await client.write(frame(TYPE.headers, END_HEADERS | END_STREAM, 1, block(fields)));
    await endOf(client, 1);
    assert.deepEqual(upstream.requests, []);
    assert.deepEqual(upstream.broken, []);
    // The gateway is as it was.
    assert.equal((await gateway.send({ path: "/after" })).status, 200);
    assert.equal(upstream.requests.length, 1);
  });
}

/** The layer below takes such fields out and lets the request pass without them. */
const NEVER_PASSED: readonly (readonly [what: string, name: string, value: string])[] = [
  ["CR LF in a value", "x-odd", "a\r\nX-Consumer-Name: admin"],
  ["LF in a value", "x-odd", "a\nb"],
  ["CR in a value", "x-odd", "a\rb"],
  ["NUL in a value", "x-odd", "a\0b"],
  ["a space in a name", "x-odd y", "1"],
  ["a colon in a name", "x-odd:y", "1"],
  ["CR LF in a name", "x-odd\r\ny", "1"],
  ["an empty name", "", "x-odd"],
];

for (const [what, name, value] of NEVER_PASSED) {
  test(`U2: HTTP/2 with ${what}: the field never reaches an upstream`, async () => {
    await using upstream = await startRecordingUpstream();
    await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
    await using client = await open(gateway.port());
    await client.write(frame(TYPE.headers, END_HEADERS | END_STREAM, 1, block([...GOOD, name, value])));
    await endOf(client, 1);
    assert.ok(upstream.requests.length <= 1);
    const fields = upstream.requests.flatMap((request) => request.fields.flat());
    assert.doesNotMatch(fields.join("\n"), /x-odd|admin/);
  });
}

test("U2: what is good in HTTP/2 reaches the upstream as one clean request", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  await using client = await open(gateway.port());
  const fields = [...GOOD, "te", "trailers", "cookie", "a=1", "cookie", "b=2", "x-consumer-name", "admin"];
  for (const name of ["x-forwarded-prefix", "x-original-url", "true-client-ip", "x_forwarded_ssl"]) {
    fields.push(name, "admin");
  }
  await client.write(frame(TYPE.headers, END_HEADERS | END_STREAM, 1, block(fields)));
  assert.deepEqual(await endOf(client, 1), { answered: true, end: "answered" });
  const [request] = upstream.requests;
  assert.equal(request?.line, "GET /x HTTP/1.1");
  assert.deepEqual(
    ["host", "cookie", "x-consumer-name", "x-forwarded-host", "te"].map((name) => request?.values(name)),
    [[`127.0.0.1:${upstream.port}`], ["a=1; b=2"], [], ["a.test"], []],
  );
  assert.doesNotMatch(JSON.stringify(request?.fields), /admin/);
});

for (const [what, declared, sent] of [
  ["more than its length", "2", "hello"],
  ["less than its length", "9", "hello"],
] as const) {
  test(`U2: a body of ${what} is never a whole request of the upstream`, async () => {
    await using upstream = await startRecordingUpstream();
    await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
    await using client = await open(gateway.port());
    const fields = [...having(":method", "POST"), "content-length", declared];
    await client.write(
      Buffer.concat([
        frame(TYPE.headers, END_HEADERS, 1, block(fields)),
        frame(TYPE.data, END_STREAM, 1, Buffer.from(sent)),
      ]),
    );
    const seen = await endOf(client, 1);
    assert.notEqual(seen.end === "answered" && upstream.requests.length === 1, true);
    assert.equal((await gateway.send({ path: "/after" })).status, 200);
    assert.deepEqual(
      upstream.requests.map(({ line }) => line),
      ["GET /after HTTP/1.1"],
    );
  });
}

test("U3: 20,000 streams that are reset as soon as they are opened end the connection or cost no more than others, who are served meanwhile", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  await using client = await open(gateway.port());
  const head = block(GOOD);
  const attack = async (): Promise<void> => {
    for (let batch = 0; batch < 200 && !client.ended; batch += 1) {
      const frames: Buffer[] = [];
      for (let at = 0; at < 100; at += 1) {
        const stream = 2 * (batch * 100 + at) + 1;
        frames.push(frame(TYPE.headers, END_HEADERS | END_STREAM, stream, head));
        frames.push(frame(TYPE.rst, 0, stream, Buffer.from([0, 0, 0, 8])));
      }
      await client.write(Buffer.concat(frames)).catch(() => undefined);
    }
  };
  const attacked = attack();
  const tookMs: number[] = [];
  for (let at = 0; at < 20; at += 1) {
    const startedMs = performance.now();
    assert.equal((await gateway.send({ path: "/healthz" })).status, 200);
    tookMs.push(performance.now() - startedMs);
  }
  await attacked;
  assert.ok(Math.max(...tookMs) < 1000, `${Math.max(...tookMs)} ms`);
  assert.ok(upstream.requests.length < 5000, `${upstream.requests.length} requests reached the upstream`);
});

test("U3: header blocks that never end are not kept", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  await using client = await open(gateway.port());
  await client.write(frame(TYPE.headers, 0, 1, block(GOOD)));
  const piece = frame(TYPE.continuation, 0, 1, block(["x", "y".repeat(10_000)]));
  let sent = 0;
  while (!client.ended && sent < 500) {
    await client.write(piece).catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    sent += 1;
  }
  await client.collect();
  assert.ok(sent < 500, `${sent * 10} KB were taken`);
  assert.equal((await gateway.send({ path: "/after" })).status, 200);
});
