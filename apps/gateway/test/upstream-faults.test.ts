import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import {
  rawClient,
  readResponse,
  startHttp2Origin,
  startOrigin,
  startRawServer,
  waitUntil,
  type RawConnection,
} from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { CertificateAuthority } from "@headworks/tls-authority";
import { ResponseSender } from "#request/response-sender.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type Extra = Partial<NonNullable<DocumentInput["upstreams"]>[number]>;
type Fault = (connection: RawConnection) => Promise<void> | void;

const ROUTES: NonNullable<DocumentInput["routes"]> = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
];
const GOOD = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
const FLOOD = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";

/** Answers well on every connection but the first, whose first request meets the fault. */
async function faulty(fault: Fault, more: Extra = {}) {
  const server = await startRawServer(async (connection, index) => {
    if (index === 0) {
      await connection.readUntil("\r\n\r\n");
      await fault(connection);
      await connection.closed;
      return;
    }
    for (;;) {
      await connection.readUntil("\r\n\r\n").catch(() => connection.destroy());
      if (connection.socket.destroyed) return;
      await connection.write(GOOD);
    }
  });
  const gateway = await startGateway({ ...serving("api", [server.port], more), routes: ROUTES });
  return {
    server,
    gateway,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await server.close().catch(() => undefined);
    },
  };
}

/** The gateway has ended its side, whatever the server does with its own. */
const isFinished = (connection: RawConnection | undefined): boolean =>
  connection !== undefined && (connection.socket.destroyed || connection.socket.readableEnded);

async function metric(gateway: TestGateway, name: string): Promise<number | undefined> {
  const text = (await gateway.send({ path: "/metrics" })).body.toString();
  const line = text.split("\n").find((each) => each.startsWith(`${name}{`) || each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.split(" ").at(-1));
}

/** Every fault that comes before a head: what the client gets, and that the breaker saw a failure. */
const BEFORE_THE_HEAD: readonly (readonly [string, Fault, number, Extra?])[] = [
  ["resets the connection", ({ socket }) => void socket.resetAndDestroy(), 502],
  ["closes without a word", (connection) => connection.end(), 502],
  [
    "resets in the middle of its head",
    async (connection) => {
      await connection.write("HTTP/1.1 200 OK\r\nX: ");
      connection.socket.resetAndDestroy();
    },
    502,
  ],
  [
    "sends a field of a megabyte",
    (connection) => void connection.socket.write(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(1 << 20)}`),
    502,
  ],
  [
    "sends fields without end",
    (connection) => void connection.socket.write(`HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(50_000)}`),
    502,
  ],
  ["speaks something else", (connection) => void connection.socket.write("220 mail.test ESMTP\r\n"), 502],
  [
    "answers with line feeds only",
    (connection) => void connection.socket.write("HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
    502,
  ],
  ["floods informational answers", (connection) => void connection.socket.write(FLOOD.repeat(10_000)), 502],
  [
    "switches protocols unasked",
    (connection) =>
      void connection.socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
    502,
  ],
  [
    "drips its head",
    async (connection) => {
      for (const letter of "HTTP/1.1 200 OK\r\n") {
        if (connection.socket.destroyed) return;
        connection.socket.write(letter);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    504,
    { timeouts: { read_ms: 100 } },
  ],
  [
    "drips informational answers",
    async (connection) => {
      for (let at = 0; at < 30 && !connection.socket.destroyed; at++) {
        connection.socket.write(FLOOD);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    504,
    { timeouts: { read_ms: 100 } },
  ],
  ["says nothing while request_ms passes", () => undefined, 504, { timeouts: { request_ms: 60 } }],
];
for (const [what, fault, status, more = {}] of BEFORE_THE_HEAD) {
  test(`an upstream that ${what} gives ${status}, counts as a failure, and its connection is not used again`, async () => {
    await using rig = await faulty(fault, { ...more, breaker: { consecutive_failures: 1, open_ms: 1 } });
    const { gateway, server } = rig;
    await using client = await rawClient(gateway.port());
    await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = await readResponse(client);
    for (let informational = 0; response.status < 200; informational++) {
      assert.ok(informational <= 32, "a bounded number of them goes on");
      response = await readResponse(client);
    }
    assert.equal(response.status, status);
    assert.equal(await metric(gateway, "breaker_state"), 1, "the breaker opened");
    await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the connection" });
    await waitUntil(async () => (await gateway.send({ path: "/" })).status === 200, { what: "the next answer" });
  });
}

/** Every fault behind a head: the answer is cut where it broke; health sees that, the breaker does not. */
const BEHIND_THE_HEAD: readonly (readonly [string, Fault, Extra?])[] = [
  [
    "resets in the middle of a body",
    async (connection) => {
      await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
      await new Promise((resolve) => setTimeout(resolve, 50));
      connection.socket.resetAndDestroy();
    },
  ],
  [
    "closes in the middle of a body",
    async (connection) => {
      await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
      connection.end();
    },
  ],
  [
    "closes without its last chunk",
    async (connection) => {
      await connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n");
      connection.end();
    },
  ],
  [
    "breaks the grammar of its chunks",
    (connection) =>
      void connection.socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\nZZ\r\n"),
  ],
  [
    "pauses longer than write_ms",
    (connection) => void connection.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"),
    { timeouts: { write_ms: 80 } },
  ],
];
for (const [what, fault, more = {}] of BEHIND_THE_HEAD) {
  test(`an answer of an upstream that ${what} is cut, never completed; the endpoint is blamed, not the breaker`, async () => {
    const health = { consecutive_failures: 1 };
    await using rig = await faulty(fault, { ...more, health, breaker: { consecutive_failures: 1 } });
    const { gateway, server } = rig;
    await using client = await rawClient(gateway.port());
    await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const got = (await client.collect()).toString();
    assert.match(got, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(got, /part/);
    assert.doesNotMatch(got, /\r\n0\r\n\r\n$/, "no end that looks like one");
    assert.equal(await metric(gateway, "endpoint_health"), 0);
    assert.equal(await metric(gateway, "breaker_state"), 0);
    await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the connection" });
  });
}

test("write_ms: a body that keeps coming is not cut, however long it takes, nor one that the client does not read", async () => {
  await using rig = await faulty(
    async (connection) => {
      await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n");
      for (let at = 0; at < 10; at++) {
        await new Promise((resolve) => setTimeout(resolve, 40));
        connection.socket.write("x");
      }
    },
    { timeouts: { write_ms: 150 } },
  );
  assert.equal((await rig.gateway.send({ path: "/" })).body.toString(), "x".repeat(10));
});

/** Unsolicited bytes of a server never become the response to another request. */
const OUT_OF_TURN: readonly (readonly [string, Fault])[] = [
  [
    "sends another answer on the idle connection",
    async (connection) => {
      await connection.write(GOOD);
      await new Promise((resolve) => setTimeout(resolve, 30));
      connection.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    },
  ],
  [
    "sends another answer behind its own",
    (connection) => void connection.socket.write(`${GOOD}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`),
  ],
  ["sends more than its Content-Length", (connection) => void connection.socket.write(`${GOOD}!`)],
  [
    "closes the idle connection",
    async (connection) => {
      await connection.write(GOOD);
      connection.end();
    },
  ],
  [
    "announces the end of the connection",
    (connection) => void connection.socket.write(GOOD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")),
  ],
];
for (const [what, fault] of OUT_OF_TURN) {
  test(`an upstream that ${what} answers its request, and the next one goes to another connection`, async () => {
    await using rig = await faulty(fault);
    const { gateway, server } = rig;
    assert.equal((await gateway.send({ path: "/" })).body.toString(), "good");
    await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the connection" });
    for (let at = 0; at < 3; at++) assert.equal((await gateway.send({ path: "/" })).body.toString(), "good");
    assert.equal(server.connections.length, 2, "the second connection is kept");
  });
}

test("an answer before the request's end ends the exchange, and the connection is not used again", async () => {
  await using rig = await faulty(
    (connection) => void connection.socket.write("HTTP/1.1 413 Too Much\r\nContent-Length: 0\r\n\r\n"),
    { request_buffer_bytes: 0 },
  );
  const { gateway, server } = rig;
  await using client = await rawClient(gateway.port());
  await client.write("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nsome");
  assert.equal((await readResponse(client)).status, 413);
  await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the connection" });
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "good");
});

test("an endless answer goes as fast as its client reads, and ends with the client", async () => {
  let writtenBytes = 0;
  await using server = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    const { socket } = connection;
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(65_536), Buffer.from("\r\n")]);
    while (!isFinished(connection)) {
      if (!socket.write(chunk)) await Promise.race([once(socket, "drain"), connection.closed]).catch(() => undefined);
      writtenBytes = socket.bytesWritten;
    }
  });
  await using gateway = await startGateway({
    ...serving("api", [server.port], { timeouts: { write_ms: 100 }, health: { consecutive_failures: 1 } }),
    routes: ROUTES,
  });
  await using client = await rawClient(gateway.port());
  await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.readUntil("\r\n\r\n");
  client.socket.pause();
  let before = -1;
  await waitUntil(
    async () => {
      const isStill = before === writtenBytes;
      before = writtenBytes;
      await new Promise((resolve) => setTimeout(resolve, 150));
      return isStill;
    },
    { what: "the standstill" },
  );
  assert.ok(writtenBytes < 64 * 1024 * 1024, `${writtenBytes} bytes`);
  assert.equal(isFinished(server.connections[0]), false, "a client that does not read is not the endpoint's fault");
  assert.equal(await metric(gateway, "endpoint_health"), 1);
  client.socket.resetAndDestroy();
  await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the answer" });
  assert.equal(await metric(gateway, "endpoint_health"), 1);
});

test("a defect of ours while an answer comes in ends the request, and neither the process nor the next one", async (context) => {
  for (const version of ["1.1", "2"] as const) {
    await using http1 = await startOrigin();
    await using http2 = await startHttp2Origin((stream) => {
      stream.respond({ ":status": 200 });
      stream.end("ok");
    });
    const [port, more] = version === "2" ? [http2.port, { protocol: "h2c" as const }] : [http1.port, {}];
    await using gateway = await startGateway({ ...serving("api", [port], more), routes: ROUTES });
    assert.equal((await gateway.send({ path: "/" })).status, 200);
    const defect = context.mock.method(ResponseSender.prototype, "head", () => {
      defect.mock.restore();
      throw new TypeError("a defect");
    });
    assert.equal((await gateway.send({ path: "/" })).status, 500, `HTTP/${version}`);
    assert.equal((await gateway.send({ path: "/" })).status, 200);
  }
});

test("the access log says why an upstream did not answer", async () => {
  const gone = await startOrigin();
  await gone.close();
  await using stranger = await startOrigin({
    tls: { authority: CertificateAuthority.create({ commonName: "Strangers" }) },
  });
  await using garbled = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
  });
  await using short = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort");
    connection.end();
  });
  const silent = await startRawServer(async (connection) => void (await connection.closed));
  const cases: readonly (readonly [number, Extra, RegExp])[] = [
    [gone.port, {}, /^"connect: .*ECONNREFUSED/],
    [stranger.port, { protocol: "https", tls: { server_name: "localhost" } }, /^"connect: .*(?:certificate|issuer)/],
    [gone.port, { protocol: "h2c" }, /^"connect: .*ECONNREFUSED/],
    [stranger.port, { protocol: "http2", tls: { server_name: "localhost" } }, /^"connect: /],
    [garbled.port, {}, /^"protocol: /],
    [short.port, {}, /^"broke: /],
    [silent.port, { timeouts: { read_ms: 50 } }, /^"response-timeout: no response within 50 ms"$/],
  ];
  for (const [port, more, expected] of cases) {
    await using gateway = await startGateway({ ...serving("api", [port], more), routes: ROUTES });
    await gateway.send({ path: "/" }).catch(() => undefined);
    const line = await waitUntil(() => gateway.log.find(({ target }) => target === "gateway::access"));
    assert.match(JSON.stringify(line["upstream_failure"] ?? ""), expected, JSON.stringify(more));
  }
  await silent.close();
});
