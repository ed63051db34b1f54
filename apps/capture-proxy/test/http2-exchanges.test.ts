import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { FLAG, FRAME, frame, section, startRawHttp2Origin, startRawServer } from "@headworks/testkit";
import { clientOf, http2Engine, startVersioned, valuesOf } from "./http2-rig.ts";
import type { OriginResponse, Received, SeenRequest, Sent } from "./http2-rig.ts";

interface Case {
  readonly what: string;
  readonly sent: Sent;
  readonly response: OriginResponse;
  readonly check: (seen: SeenRequest, received: Received) => void;
}

const END = { endStream: true };
const LARGE = "0123456789abcdef".repeat(131_072);

const CASES: readonly Case[] = [
  {
    what: "a GET",
    sent: { path: "/a?b=c%20d&e" },
    response: { body: "hello", fields: [["content-type", "text/plain"]] },
    check: (seen, { status, body, fields }) => {
      assert.deepEqual([seen.method, seen.path, seen.body], ["GET", "/a?b=c%20d&e", ""]);
      assert.match(seen.authority, /^localhost:\d+$/);
      assert.deepEqual([status, body, valuesOf(fields, "content-type")], [200, "hello", ["text/plain"]]);
    },
  },
  {
    what: "a POST with a body of known length",
    sent: { method: "POST", body: "some text" },
    response: { status: 201, body: "made", fields: [["content-length", "4"]] },
    check: (seen, { status, body, fields }) => {
      assert.deepEqual([seen.method, seen.body], ["POST", "some text"]);
      assert.deepEqual([status, body, valuesOf(fields, "content-length")], [201, "made", ["4"]]);
    },
  },
  {
    what: "2 MB each way",
    sent: { method: "PUT", body: LARGE },
    response: { body: LARGE },
    check: (seen, { body }) => {
      assert.equal(seen.body, LARGE);
      assert.equal(body, LARGE);
    },
  },
  {
    what: "trailers both ways",
    sent: { method: "POST", body: "with", fields: [["te", "trailers"]], trailers: [["x-sum", "1"]] },
    response: {
      body: "also",
      trailers: [
        ["x-answer-sum", "2"],
        ["__proto__", "a name like any other"],
      ],
    },
    check: (seen, { body, trailers }) => {
      assert.deepEqual([seen.body, valuesOf(seen.trailers, "x-sum")], ["with", ["1"]]);
      assert.deepEqual([body, valuesOf(trailers, "x-answer-sum")], ["also", ["2"]]);
      assert.deepEqual(valuesOf(trailers, "__proto__"), ["a name like any other"]);
      assert.deepEqual(valuesOf(seen.fields, "te"), ["trailers"]);
    },
  },
  {
    what: "an answer to HEAD with the length it would have",
    sent: { method: "HEAD" },
    response: { fields: [["content-length", "12345"]] },
    check: (seen, { status, body, fields }) => {
      assert.equal(seen.method, "HEAD");
      assert.deepEqual([status, body, valuesOf(fields, "content-length")], [200, "", ["12345"]]);
    },
  },
  {
    what: "a 204",
    sent: { method: "DELETE", path: "/thing" },
    response: { status: 204, fields: [["x-a", "1"]] },
    check: (seen, { status, body, fields }) => {
      assert.equal(seen.method, "DELETE");
      assert.deepEqual([status, body, valuesOf(fields, "x-a")], [204, "", ["1"]]);
    },
  },
  {
    what: "a 304 with the length of what is not sent",
    sent: { fields: [["if-none-match", '"a"']] },
    response: { status: 304, fields: [["etag", '"a"']] },
    check: (seen, { status, body, fields }) => {
      assert.deepEqual(valuesOf(seen.fields, "if-none-match"), ['"a"']);
      assert.deepEqual([status, body, valuesOf(fields, "etag")], [304, "", ['"a"']]);
    },
  },
  {
    what: "fields that stand more than once, in their order",
    sent: {
      fields: [
        ["x-twice", "1"],
        ["x-other", ""],
        ["x-twice", "2"],
      ],
    },
    response: {
      fields: [
        ["set-cookie", "a=1"],
        ["x-b", "y"],
        ["set-cookie", "b=2; Path=/"],
      ],
    },
    check: (seen, { fields }) => {
      assert.deepEqual(valuesOf(seen.fields, "x-twice"), ["1", "2"]);
      assert.deepEqual(valuesOf(seen.fields, "x-other"), [""]);
      assert.deepEqual(valuesOf(fields, "set-cookie"), ["a=1", "b=2; Path=/"]);
    },
  },
  {
    what: "a cookie as one field",
    sent: { fields: [["cookie", "a=1; b=2; c=3"]] },
    response: {},
    check: (seen) => assert.deepEqual(valuesOf(seen.fields, "cookie"), ["a=1; b=2; c=3"]),
  },
  {
    what: "bytes beyond ASCII in values",
    sent: { fields: [["x-name", "M\xfcller \x80\xff"]] },
    response: { fields: [["x-name", "\xe4\xf6\xfc"]], body: "\xff\xfe" },
    check: (seen, { fields }) => {
      assert.deepEqual(valuesOf(seen.fields, "x-name"), ["M\xfcller \x80\xff"]);
      assert.deepEqual(valuesOf(fields, "x-name"), ["\xe4\xf6\xfc"]);
    },
  },
  {
    what: "early hints before the answer",
    sent: {},
    response: {
      interim: [
        [103, [["link", "</a.css>; rel=preload"]]],
        [103, [["link", "</b.css>"]]],
      ],
      body: "late",
    },
    check: (_seen, { interim, status, body }) => assert.deepEqual([interim, status, body], [[103, 103], 200, "late"]),
  },
  {
    what: "a method of its own, and OPTIONS about the whole server",
    sent: { method: "OPTIONS", path: "*" },
    response: { status: 200, fields: [["allow", "GET, BREW"]] },
    check: (seen, { fields }) => {
      assert.deepEqual([seen.method, seen.path], ["OPTIONS", "*"]);
      assert.deepEqual(valuesOf(fields, "allow"), ["GET, BREW"]);
    },
  },
  {
    what: "OPTIONS that may pass on twice more, and once when it arrives,",
    sent: { method: "OPTIONS", fields: [["max-forwards", "2"]] },
    response: {},
    check: (seen) => assert.deepEqual(valuesOf(seen.fields, "max-forwards"), ["1"]),
  },
  {
    what: "a GET with a body",
    sent: { method: "GET", body: "odd but legal" },
    response: { body: "fine" },
    check: (seen, { body }) => assert.deepEqual([seen.body, body], ["odd but legal", "fine"]),
  },
  {
    what: "an empty body of known length",
    sent: { method: "POST", fields: [], body: "" },
    response: { fields: [["content-length", "0"]] },
    check: (seen, { fields }) => {
      assert.equal(seen.body, "");
      assert.deepEqual(valuesOf(fields, "content-length"), ["0"]);
    },
  },
  {
    what: "an unregistered status",
    sent: {},
    response: { status: 599, body: "strange" },
    check: (_seen, { status, body }) => assert.deepEqual([status, body], [599, "strange"]),
  },
];

for (const client of ["1.1", "2"] as const) {
  for (const origin of ["1.1", "2"] as const) {
    for (const { what, sent, response, check } of CASES) {
      test(`${what} passes from a client over HTTP/${client} to an origin over HTTP/${origin}`, async () => {
        await using server = await startVersioned(origin, () => response);
        await using proxy = await http2Engine();
        await using peer = await clientOf(client, proxy, server.port);
        const received = await peer.fetch(sent);
        const [seen] = server.seen;
        assert.ok(seen);
        assert.equal(seen.version, origin);
        assert.equal(received.code, 0);
        check(seen, received);
        const [exchange] = await proxy.waitFor(1);
        assert.equal(exchange?.state.step, "completed");
        assert.equal(exchange.request.version, `HTTP/${client}`);
        assert.equal(exchange.response?.version, `HTTP/${origin}`);
        assert.equal(exchange.responseBody.sizeBytes, received.body.length);
        assert.deepEqual(exchange.request.trailers ?? [], sent.trailers?.flat() ?? []);
        assert.deepEqual(exchange.response.trailers ?? [], response.trailers?.flat() ?? []);
      });
    }
  }
}

test("a client that speaks HTTP/2 to the proxy itself reaches origins of either scheme by their names", async () => {
  await using plain = await startVersioned("1.1", ({ path }) => ({ body: `plain ${path}` }), { isPlain: true });
  await using secure = await startVersioned("2", ({ path }) => ({ body: `secure ${path}` }));
  await using proxy = await http2Engine();
  const session = connectHttp2(`http://127.0.0.1:${proxy.port}`);
  const fetch = async (scheme: string, port: number): Promise<string> => {
    const stream = session.request({ ":scheme": scheme, ":authority": `localhost:${port}`, ":path": "/a?b" });
    let text = "";
    stream.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    await once(stream, "end");
    return text;
  };
  assert.equal(await fetch("http", plain.port), "plain /a?b");
  assert.equal(await fetch("https", secure.port), "secure /a?b");
  assert.match(await fetch("http", proxy.port), /this proxy itself/);
  session.destroy();
  const [first, second] = await proxy.waitFor(3);
  assert.deepEqual([first?.request.version, first?.response?.version], ["HTTP/2", "HTTP/1.1"]);
  assert.deepEqual([second?.request.scheme, second?.response?.version], ["https", "HTTP/2"]);
});

test("octets beyond ASCII in a :path go to origins of either version as they came; TRACE that may not go on is answered", async () => {
  const path = "/caf\xc3\xa9?\xff";
  await using plain = await startRawServer(async (connection) => {
    const line = (await connection.readUntil("\r\n\r\n")).toString("latin1").split("\r\n")[0] ?? "";
    await connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${line.length}\r\n\r\n${line}`);
  });
  await using secure = await startVersioned("2", (request) => ({ body: Buffer.from(request.path, "latin1") }));
  await using proxy = await http2Engine();
  const session = connectHttp2(`http://127.0.0.1:${proxy.port}`);
  const fetch = async (scheme: string, port: number, more: Record<string, string> = {}): Promise<string> => {
    const authority = `localhost:${port}`;
    const stream = session.request({ ":scheme": scheme, ":authority": authority, ":path": path, ...more }, END);
    let text = "";
    stream.setEncoding("latin1").on("data", (piece: string) => (text += piece));
    await once(stream, "end");
    return text;
  };
  assert.equal(await fetch("http", plain.port), `GET ${path} HTTP/1.1`);
  assert.equal(await fetch("https", secure.port), path);
  const traced = await fetch("https", secure.port, { ":method": "TRACE", "max-forwards": "0", cookie: "a=s3cret" });
  const target = `https://localhost:${secure.port}${path}`;
  assert.equal(traced, `TRACE ${target} HTTP/2\r\nhost: localhost:${secure.port}\r\nmax-forwards: 0\r\n\r\n`);
  session.destroy();
  const entries = await proxy.waitFor(3);
  assert.deepEqual([...new Set(entries.map(({ request }) => request.path))], ["/caf%C3%A9?%FF"]);
  assert.equal(secure.seen.length, 1);
});

test("the preface of HTTP/2 is known byte by byte, and a method that begins like it is none", async () => {
  await using plain = await startVersioned("1.1", ({ method }) => ({ body: method }), { isPlain: true });
  await using proxy = await http2Engine();
  const socket = connect(proxy.port, "127.0.0.1").setNoDelay(true);
  await once(socket, "connect");
  const session = connectHttp2("http://a.test", {
    createConnection: () =>
      new Duplex({
        read: () => undefined,
        write(chunk: Buffer, _encoding, done) {
          for (const byte of chunk) socket.write(Buffer.from([byte]));
          done();
        },
      }),
  });
  session.on("error", () => undefined);
  session.request({ ":authority": `127.0.0.1:${plain.port}`, ":path": "/" }).on("error", () => undefined);
  await proxy.waitFor(1);
  session.destroy();
  socket.destroy();
  const other = connect(proxy.port, "127.0.0.1").setNoDelay(true);
  for (const piece of ["P", "R", "OPFIND", ` http://127.0.0.1:${plain.port}/ HTTP/1.1\r\nHost: a\r\n\r\n`]) {
    other.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const [response] = (await once(other, "data")) as [Buffer];
  assert.match(response.toString(), /^HTTP\/1\.1 200 /);
  other.destroy();
});

for (const origin of ["1.1", "2"] as const) {
  test(`a status above 599 of an origin over HTTP/${origin} reaches clients as it is`, async () => {
    await using server =
      origin === "1.1"
        ? await startVersioned("1.1", () => ({ status: 999, fields: [["X-A", "1"]], body: "body" }), { isPlain: true })
        : await startRawHttp2Origin((stream, write) => {
            const fields = section([
              [":status", "999"],
              ["content-length", "4"],
              ["x-a", "1"],
            ]);
            write(frame(FRAME.headers, FLAG.endHeaders, stream, fields), frame(FRAME.data, 1, stream, "body"));
          });
    await using proxy = await http2Engine();
    await using client = await clientOf("2", proxy, server.port, { isPlain: true });
    const { status, fields, body, code } = await client.fetch();
    assert.deepEqual([status, body, code, valuesOf(fields, "x-a")], [999, "body", 0, ["1"]]);
    const [exchange] = await proxy.waitFor(1);
    assert.deepEqual([exchange?.state.step, exchange?.response?.status], ["completed", 999]);
    if (origin === "2") return;
    await using older = await clientOf("1.1", proxy, server.port, { isPlain: true });
    assert.equal((await older.fetch()).status, 999);
  });
}

test("a status below 100 is a failure that says so, whatever the client speaks", async () => {
  await using server = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n");
  });
  await using proxy = await http2Engine();
  for (const version of ["1.1", "2"] as const) {
    await using client = await clientOf(version, proxy, server.port, { isPlain: true });
    const { status, body } = await client.fetch();
    assert.equal(status, 502);
    assert.match(body, /UPSTREAM_PROTOCOL/);
  }
});

test("an answer that cannot be said in HTTP/2 is a page that says so; trailers that cannot are left out", async () => {
  const heads = {
    head: "HTTP/1.1 200 OK\r\nX-Odd: a\x01b\r\nContent-Length: 4\r\n\r\nbody",
    trailers: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Odd: a\x01b\r\n\r\n",
  };
  for (const [place, response] of Object.entries(heads)) {
    await using server = await startRawServer(async (connection) => {
      await connection.readUntil("\r\n\r\n");
      await connection.write(response);
    });
    await using proxy = await http2Engine();
    await using client = await clientOf("2", proxy, server.port, { isPlain: true });
    const { status, body, code } = await client.fetch();
    const [exchange] = await proxy.waitFor(1);
    const isGood = place === "trailers";
    assert.deepEqual([status, code], [isGood ? 200 : 502, 0], place);
    assert.match(body, isGood ? /^body$/ : /a field that cannot be forwarded/);
    assert.equal(exchange?.state.step, isGood ? "completed" : "failed");
  }
});

test("HTTP/2: an answer that comes before the end of its request is the client's however late it takes it", async () => {
  const response = "x".repeat(180_000);
  await using server = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write(`HTTP/1.1 413 Too Large\r\nContent-Length: ${response.length}\r\n\r\n${response}`);
  });
  await using proxy = await http2Engine();
  const session = connectHttp2(`http://127.0.0.1:${proxy.port}`);
  const authority = `127.0.0.1:${server.port}`;
  const stream = session.request({ ":method": "POST", ":scheme": "http", ":authority": authority, ":path": "/" });
  stream.write("some of it");
  await once(stream, "response");
  // Longer than the limit for a body that is no longer read.
  await sleep(1500);
  let sizeBytes = 0;
  for await (const piece of stream) sizeBytes += (piece as Buffer).length;
  assert.equal(sizeBytes, response.length);
  session.destroy();
});

test("an answer without content over HTTP/2 is complete with its head, whenever its stream ends", async () => {
  for (const status of ["200", "204"]) {
    await using server = await startRawHttp2Origin((stream, write) => {
      const fields = section([[":status", status], ...(status === "204" ? [] : [["content-length", "0"] as const])]);
      write(frame(FRAME.headers, FLAG.endHeaders, stream, fields));
    });
    await using proxy = await http2Engine();
    await using client = await clientOf("2", proxy, server.port, { isPlain: true });
    assert.deepEqual(
      [(await client.fetch()).status, (await proxy.waitFor(1))[0]?.state.step],
      [Number(status), "completed"],
    );
  }
});
