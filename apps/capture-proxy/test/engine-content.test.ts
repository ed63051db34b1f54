import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { after, test } from "node:test";
import { rawClient, waitUntil } from "@headworks/testkit";
import type { RawConnection } from "@headworks/testkit";
import type { Content, Exchange } from "#exchange/exchange.ts";
import { CONTINUE } from "#exchange/phases.ts";
import type { Interceptor, Verdict } from "#exchange/phases.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine } from "./engine-harness.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly host: string | undefined;
  readonly headers: readonly string[];
  readonly body: string;
}

interface Rig {
  readonly engine: Engine;
  readonly port: number;
  readonly seen: Seen[];
  readonly client: () => Promise<RawConnection>;
}

type Rule = (exchange: Exchange) => Verdict | Promise<Verdict>;

/** An engine with rules in front of an origin that echoes; `answer` overrides what it sends, byte for byte. */
async function setUp(rules: { request?: Rule; response?: Rule; rawResponse?: string; ends?: boolean }): Promise<Rig> {
  const interceptor: Interceptor = {
    name: "blocklist",
    ...(rules.request ? { onRequestHead: rules.request } : {}),
    ...(rules.response ? { onResponseHead: rules.response } : {}),
  };
  const engine = await startEngine({ interceptors: [interceptor] });
  const seen: Seen[] = [];
  const sockets = new Set<Socket>();
  const origin = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const body = Buffer.concat(pieces).toString();
      const { method = "", url = "", rawHeaders } = request;
      seen.push({ method, url, host: request.headers.host, headers: rawHeaders, body });
      if (rules.rawResponse === undefined) response.end(`echo ${body}`);
      else if (rules.ends === true) request.socket.end(rules.rawResponse, "latin1");
      else request.socket.write(rules.rawResponse, "latin1");
    });
  }).on("connection", (socket) => sockets.add(socket));
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  cleanups.push(async () => {
    await engine.stop();
    for (const socket of sockets) socket.destroy();
    origin.close();
  });
  const { port } = origin.address() as AddressInfo;
  return { engine, port, seen, client: () => rawClient(engine.port) };
}

const text = (content: Content): string => (content.kind === "complete" ? content.bytes.toString() : content.kind);
const request = (port: number, method: string, rest = "\r\n"): string =>
  `${method} http://127.0.0.1:${port}/a?b=1 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${rest}`;

const BODIES: readonly (readonly [string, string])[] = [
  ["a length", "Content-Length: 5\r\n\r\nhello"],
  ["chunks", "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"],
];
for (const [how, rest] of BODIES) {
  test(`a rule that waits for a request body with ${how} gets it whole, and the origin gets it unchanged`, async () => {
    const contents: string[] = [];
    const { seen, client, port } = await setUp({
      request: async (exchange) => {
        contents.push(text(await exchange.requestContent(100)));
        return CONTINUE;
      },
    });
    const connection = await client();
    const whole = request(port, "POST", rest);
    await connection.write(whole.slice(0, -7));
    await connection.write(whole.slice(-7));
    assert.match((await connection.readUntil("echo hello")).toString(), /^HTTP\/1\.1 200 /);
    assert.deepEqual(contents, ["hello"]);
    assert.equal(seen[0]?.body, "hello");
    connection.destroy();
  });

  test(`a rule replaces a request body with ${how}; the origin is told its length and the entry keeps both`, async () => {
    const { engine, seen, client, port } = await setUp({
      request: async (exchange) => {
        await exchange.requestContent(100);
        exchange.setRequestContent(Buffer.from("changed by a rule"));
        return CONTINUE;
      },
    });
    const connection = await client();
    await connection.write(request(port, "POST", rest));
    await connection.readUntil("echo changed by a rule");
    assert.equal(seen[0]?.headers.join("\n").match(/content-length\n17/i)?.length, 1);
    assert.doesNotMatch(seen[0]?.headers.join("\n") ?? "", /transfer-encoding/i);
    const [exchange] = await engine.waitFor(1);
    assert.equal(exchange?.modified, true);
    assert.equal(exchange.originalRequest?.body?.toString(), "hello");
    assert.equal(Buffer.concat([...exchange.requestBody.pieces]).toString(), "changed by a rule");
    connection.destroy();
  });
}

test("a body beyond the limit is told as too large, streams on whole, and the connection lives on", async () => {
  const contents: string[] = [];
  const { seen, client, port } = await setUp({
    request: async (exchange) => {
      contents.push(text(await exchange.requestContent(1000)));
      return CONTINUE;
    },
  });
  const connection = await client();
  const long = "x".repeat(300_000);
  await connection.write(request(port, "POST", `Content-Length: ${long.length}\r\n\r\n${long}`));
  await connection.readUntil(`echo ${long}`);
  await connection.write(request(port, "POST", `Transfer-Encoding: chunked\r\n\r\n493e0\r\n${long}\r\n0\r\n\r\n`));
  await waitUntil(() => seen.length === 2, { what: "both requests" });
  assert.deepEqual(contents, ["too-large", "too-large"]);
  assert.deepEqual(
    seen.map(({ body }) => body === long),
    [true, true],
  );
  connection.destroy();
});

test("a client that expects 100-continue is asked for the body when a rule wants it", async () => {
  const { client, port } = await setUp({
    request: async (exchange) => {
      await exchange.requestContent(100);
      return CONTINUE;
    },
  });
  const connection = await client();
  await connection.write(request(port, "POST", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  await connection.readUntil("100 Continue\r\n\r\n");
  await connection.write("hi");
  await connection.readUntil("echo hi");
  connection.destroy();
});

test("a request that a rule sends elsewhere goes there, and Host follows, in the entry too", async () => {
  const other = await setUp({});
  const { engine, seen, client, port } = await setUp({
    request: (exchange) => {
      const changed = exchange.changeRequest();
      changed.host = "127.0.0.1";
      changed.port = other.port;
      changed.path = "/moved";
      changed.method = "PUT";
      return CONTINUE;
    },
  });
  const connection = await client();
  await connection.write(request(port, "GET"));
  await connection.readUntil("echo ");
  assert.deepEqual(seen, []);
  assert.deepEqual(
    other.seen.map(({ method, url, host }) => [method, url, host]),
    [["PUT", "/moved", `127.0.0.1:${other.port}`]],
  );
  const [exchange] = await engine.waitFor(1);
  assert.equal(exchange?.originalRequest?.message.path, "/a?b=1");
  assert.equal(exchange.originalRequest.message.port, port);
  assert.equal(exchange.request.fields[1], `127.0.0.1:${other.port}`);
  connection.destroy();
});

test("a Host that a rule sets is sent as it is", async () => {
  const { seen, client, port } = await setUp({
    request: (exchange) => {
      exchange.changeRequest().fields[1] = "set.test";
      return CONTINUE;
    },
  });
  const connection = await client();
  await connection.write(request(port, "GET"));
  await connection.readUntil("echo ");
  assert.equal(seen[0]?.host, "set.test");
  connection.destroy();
});

const RESPONSES: readonly (readonly [string, string, string])[] = [
  ["a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"],
  [
    "chunks",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: 1\r\n\r\n",
    "hello",
  ],
  ["no body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""],
];
for (const [how, rawResponse, body] of RESPONSES) {
  for (const changes of [false, true]) {
    test(`an answer with ${how} that a rule waits for arrives ${changes ? "as the rule left it" : "unchanged"}`, async () => {
      const contents: string[] = [];
      const { engine, client, port } = await setUp({
        rawResponse,
        response: async (exchange) => {
          contents.push(text(await exchange.responseContent(100)));
          if (changes) {
            exchange.setResponseContent(Buffer.from("new body"));
            exchange.changeResponse().status = 201;
          }
          return CONTINUE;
        },
      });
      const connection = await client();
      for (let round = 1; round <= 2; round += 1) {
        await connection.write(request(port, "GET"));
        if (changes) {
          assert.match(
            (await connection.readUntil("new body")).toString(),
            /^HTTP\/1\.1 201 [^]*Content-Length: 8\r\n/i,
          );
        } else await connection.readUntil(rawResponse.slice(-4));
        const exchange = (await engine.waitFor(round))[round - 1];
        assert.equal(exchange?.state.step, "completed");
        assert.equal(exchange.originalResponse?.body?.toString(), changes ? body : undefined);
        assert.equal(exchange.originalResponse?.message.status, changes ? 200 : undefined);
      }
      assert.deepEqual(contents, [body, body]);
      connection.destroy();
    });
  }
}

test("an answer beyond the limit streams on whole", async () => {
  const body = "y".repeat(500_000);
  const { client, port } = await setUp({
    rawResponse: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7a120\r\n${body}\r\n0\r\n\r\n`,
    response: async (exchange) => {
      assert.equal(text(await exchange.responseContent(1000)), "too-large");
      exchange.changeResponse().fields.push("X-Seen", "1");
      return CONTINUE;
    },
  });
  const connection = await client();
  await connection.write(request(port, "GET"));
  const whole = (await connection.readUntil("\r\n0\r\n\r\n")).toString();
  assert.match(whole, /X-Seen: 1\r\n/);
  assert.equal(whole.match(/y/g)?.length, body.length);
  connection.destroy();
});

test("answers made by a rule pass the answer rules, with their body at hand, and no connection is opened", async () => {
  const { seen, client, port, engine } = await setUp({
    request: () => ({ kind: "respond", response: { status: 200, fields: ["X-A", "1"], body: Buffer.from("mocked") } }),
    response: async (exchange) => {
      const content = text(await exchange.responseContent(100));
      exchange.setResponseContent(Buffer.from(`${content} and rewritten`));
      return CONTINUE;
    },
  });
  const connection = await client();
  await connection.write(request(port, "GET"));
  await connection.readUntil("mocked and rewritten");
  await connection.write(request(port, "HEAD"));
  assert.match((await connection.readUntil("\r\n\r\n")).toString(), /Content-Length: 20/i);
  await connection.write(request(port, "POST", "Content-Length: 3\r\n\r\nabc"));
  await connection.readUntil("mocked and rewritten");
  assert.deepEqual(seen, []);
  const exchanges = await engine.waitFor(3);
  assert.deepEqual(
    exchanges.map(({ source, serverAddress, requestBody }) => [source, serverAddress, requestBody.sizeBytes]),
    [
      ["slice", undefined, 0],
      ["slice", undefined, 0],
      ["slice", undefined, 3],
    ],
  );
  connection.destroy();
});

test("a status that a rule turns into 204 has no body, one that it turns from 204 has an empty one", async () => {
  for (const [rawResponse, status, end] of [
    ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 204, /204 No Content\r\n(?!.*hello)/],
    ["HTTP/1.1 204 No Content\r\n\r\n", 200, /Content-Length: 0\r\n/i],
  ] as const) {
    const { client, port } = await setUp({
      rawResponse,
      response: (exchange) => {
        const changed = exchange.changeResponse();
        changed.status = status;
        changed.reason = status === 204 ? "No Content" : "OK";
        return CONTINUE;
      },
    });
    const connection = await client();
    for (let round = 0; round < 2; round += 1) {
      await connection.write(request(port, "GET"));
      assert.match((await connection.readUntil("\r\n\r\n")).toString(), end);
    }
    connection.destroy();
  }
});

test("a rule that aborts gives a page, and with closes a cut connection and an entry", async () => {
  const { client, port, engine } = await setUp({
    request: (exchange) => ({ kind: "abort", reason: "not today", closes: exchange.request.method === "GET" }),
  });
  const page = await client();
  await page.write(request(port, "OPTIONS"));
  assert.match((await page.readUntil("not today")).toString(), /^HTTP\/1\.1 403 /);
  const cut = await client();
  await cut.write(request(port, "GET"));
  const exchanges = await engine.waitFor(2);
  cut.destroy();
  assert.deepEqual(
    exchanges.map(({ state }) => state.step === "failed" && state.failure.code),
    ["BLOCKED", "BLOCKED"],
  );
  page.destroy();
});

for (const phase of ["request", "response"] as const) {
  test(`a client that goes away while a rule decides in the ${phase} phase ends the exchange`, async () => {
    const decided = Promise.withResolvers<Verdict>();
    const asked = Promise.withResolvers<void>();
    const { client, port, engine } = await setUp({
      [phase]: () => {
        asked.resolve();
        return decided.promise;
      },
    });
    const connection = await client();
    await connection.write(request(port, "GET"));
    await asked.promise;
    connection.reset();
    const [exchange] = await engine.waitFor(1);
    assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "CLIENT_ABORTED");
    decided.resolve(CONTINUE);
  });
}

test("a wait for a body ends when the body cannot become complete", async () => {
  const contents: string[] = [];
  const told = Promise.withResolvers<void>();
  const wait = async (content: Promise<Content>): Promise<Verdict> => {
    contents.push(text(await content));
    told.resolve();
    return CONTINUE;
  };
  const { client, port } = await setUp({ request: (exchange) => wait(exchange.requestContent(100)) });
  const connection = await client();
  await connection.write(request(port, "POST", "Content-Length: 5\r\n\r\nhe"));
  connection.reset();
  await told.promise;
  assert.deepEqual(contents, ["gone"]);
});

test("an origin that breaks off while a rule waits for its answer is a 502", async () => {
  const contents: string[] = [];
  const { client, port } = await setUp({
    rawResponse: "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort",
    ends: true,
    response: async (exchange) => {
      contents.push(text(await exchange.responseContent(100)));
      return CONTINUE;
    },
  });
  const connection = await client();
  await connection.write(request(port, "GET"));
  assert.match((await connection.readUntil("\r\n\r\n")).toString(), /^HTTP\/1\.1 502 /);
  assert.deepEqual(contents, ["gone"]);
  connection.destroy();
});

test("a rule that decides slowly costs nobody else, and pipelined requests keep their order", async () => {
  let count = 0;
  const { client, port } = await setUp({
    request: (exchange) => {
      count += 1;
      const body = Buffer.from(`answer ${count};`);
      const verdict: Verdict = { kind: "respond", response: { status: 200, fields: [], body } };
      return exchange.request.method === "GET"
        ? new Promise((resolve) => setImmediate(() => resolve(verdict)))
        : verdict;
    },
  });
  const connection = await client();
  await connection.write(request(port, "GET") + request(port, "OPTIONS") + request(port, "GET"));
  const whole = (await connection.readUntil("answer 3;")).toString();
  assert.deepEqual(whole.match(/answer \d;/g), ["answer 1;", "answer 2;", "answer 3;"]);
  connection.destroy();
});
