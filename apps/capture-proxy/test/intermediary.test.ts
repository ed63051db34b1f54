import assert from "node:assert/strict";
import { after, test } from "node:test";
import { rawClient, readResponse, startRawServer } from "@headworks/testkit";
import type { RawConnection, RawServer } from "@headworks/testkit";
import { exchangeUrl } from "#exchange/exchange.ts";
import { startEngine } from "./engine-harness.ts";

const RESPONSES: Readonly<Record<string, string>> = {
  "/padded":
    "HTTP/1.1 200 OK\r\nContent-Length : 2\r\nX-XSS-Protection \t: 1\r\nSet-Cookie: a\r\nSet-Cookie : b\r\n\r\nok",
  "/padded-chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding\t: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T : 1\r\n\r\n",
  "/two-lengths": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length : 3\r\n\r\nok!",
  "/folded": "HTTP/1.1 200 OK\r\nX-A: 1\r\n\t2\r\nContent-Length: 2\r\n\r\nok",
  "/folded-length": "HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok",
  "/bare-cr": "HTTP/1.1 200 OK\r\nX-A: 1\rContent-Length: 5\r\nContent-Length: 2\r\n\r\nok",
  "/hints":
    "HTTP/1.1 103 Early Hints\r\nLink : </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
  "/hop":
    "HTTP/1.1 200 OK\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nok",
};
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** Keeps the heads that it gets, and answers by the path. */
const heads: string[] = [];
async function response(connection: RawConnection): Promise<void> {
  for (;;) {
    const head = await connection.readUntil("\r\n\r\n").catch(() => undefined);
    if (head === undefined) return;
    const text = head.toString("latin1");
    heads.push(text);
    await connection.write(RESPONSES[/^\S+ ([^\s?]+)/.exec(text)?.[1] ?? ""] ?? OK);
  }
}

const origin: RawServer = await startRawServer(response);
const proxy = await startEngine({ keepAliveMs: 5000 });
after(async () => {
  await proxy.stop();
  await origin.close();
});
const place = `127.0.0.1:${origin.port}`;

/** One request to the proxy: what the origin got of it, the response, and its entry. */
async function ask(bytes: string, method = "GET") {
  await using client = await rawClient(proxy.port);
  const [seen, done] = [heads.length, proxy.finished.length];
  await client.write(bytes);
  const response = await readResponse(client, method);
  const entry = (await proxy.waitFor(done + 1))[done];
  return { response, received: heads.slice(seen), entry };
}

const get = (path: string, fields = ""): string => `GET http://${place}${path} HTTP/1.1\r\nHost: x\r\n${fields}\r\n`;

test("white space before a colon in a response is removed and the field forwarded, framing fields included", async () => {
  const { response, entry } = await ask(get("/padded"));
  assert.deepEqual([response.status, response.body.toString()], [200, "ok"]);
  const expected = [
    ["Content-Length", "2"],
    ["X-XSS-Protection", "1"],
    ["Set-Cookie", "a"],
    ["Set-Cookie", "b"],
  ];
  assert.deepEqual(response.headers.slice(0, 4), expected);
  assert.deepEqual(entry?.response?.fields, expected.flat());
  const chunks = await ask(get("/padded-chunks"));
  assert.deepEqual([chunks.response.body.toString(), chunks.response.trailers], ["ok", [["X-T", "1"]]]);
});

test("a response that two readers could end at different bytes is refused all the same", async () => {
  for (const path of ["/two-lengths", "/folded-length", "/bare-cr"]) {
    const { response, entry } = await ask(get(path));
    assert.deepEqual([path, response.status, entry?.state.step], [path, 502, "failed"]);
  }
});

test("a folded field of a response is joined by a space (RFC 9112, 5.2)", async () => {
  const { response } = await ask(get("/folded"));
  assert.deepEqual([response.header("x-a"), response.body.toString()], ["1 2", "ok"]);
});

test("fields that concern one connection stay behind, in final and informational responses (RFC 9110, 7.6.1)", async () => {
  const { response } = await ask(get("/hop"));
  for (const name of ["x-hop", "keep-alive", "proxy-authenticate", "upgrade"]) {
    assert.equal(response.header(name), undefined, name);
  }
  await using client = await rawClient(proxy.port);
  await client.write(get("/hints", "Connection: close\r\n"));
  const text = (await client.collect()).toString("latin1");
  assert.match(text, /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a>\r\n\r\nHTTP\/1\.1 204 /);
  assert.doesNotMatch(text, /x-hop/i);
});

test("fields that Connection names, TE without trailers and Upgrade reach no origin (RFC 9110, 7.6.1)", async () => {
  const hop =
    "Connection: X-Hop, close, TE\r\nX-Hop: 1\r\nTE: trailers\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\n";
  const { received } = await ask(get("/", `${hop}Upgrade: x\r\nProxy-Authorization: Basic dTpw\r\n`));
  assert.doesNotMatch(received.join(""), /x-hop|keep-alive|proxy-|upgrade/i);
});

const EACCENT = "é";
const TARGETS: readonly (readonly [sent: string, shown: string])[] = [
  [`/s?q=${Buffer.from(EACCENT).toString("latin1")}`, "/s?q=%C3%A9"],
  ["/caf\xe9/%e9?\xff", "/caf%E9/%e9?%FF"],
];
for (const [sent, shown] of TARGETS) {
  test(`octets beyond ASCII in a target go to the origin as they came, and the entry shows ${shown}`, async () => {
    const { response, received, entry } = await ask(get(sent));
    assert.equal(response.status, 200);
    assert.equal(received[0]?.split("\r\n")[0], `GET ${sent} HTTP/1.1`);
    assert.ok(entry);
    assert.equal(exchangeUrl(entry.request), `http://${place}${shown}`);
  });
}

test("an empty line before a request line is skipped, also between pipelined requests", async () => {
  await using client = await rawClient(proxy.port);
  const post = `POST http://${place}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc\r\n`;
  await client.write(`\r\n${post}${post}${get("/")}`);
  for (let count = 0; count < 3; count += 1) assert.equal((await readResponse(client)).status, 200);
  await client.write(`\r\n\r\n${get("/")}`);
  assert.equal((await readResponse(client)).status, 400);
});

const COUNTED: readonly (readonly [method: string, sent: string, received: string])[] = [
  ["OPTIONS", "1", "0"],
  ["OPTIONS", "10", "9"],
  ["TRACE", "3", "2"],
  ["OPTIONS", "x", "x"],
  ["GET", "0", "0"],
];
for (const [method, sent, received] of COUNTED) {
  test(`Max-Forwards ${sent} of ${method} reaches the origin as ${received}, and the entry shows what was sent`, async () => {
    const { received: seen, entry } = await ask(
      `${method} http://${place}/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: ${sent}\r\n\r\n`,
    );
    assert.match(seen[0] ?? "", new RegExp(`\r\nMax-Forwards: ${received}\r\n`));
    assert.deepEqual(entry?.request.fields.slice(2), ["Max-Forwards", sent]);
  });
}

test("TRACE and OPTIONS that may not be forwarded any more are answered here (RFC 9110, 7.6.2)", async () => {
  const target = `http://${place}/a?b`;
  const fields = "Host: x\r\nMax-Forwards: 0\r\nX-Mine: 1\r\nCookie: s=s3cret\r\nAuthorization: Bearer s3cret\r\n";
  const traced = await ask(`TRACE ${target} HTTP/1.1\r\n${fields}\r\n`);
  assert.deepEqual([traced.response.status, traced.response.header("content-type")], [200, "message/http"]);
  assert.equal(
    traced.response.body.toString("latin1"),
    `TRACE ${target} HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\nX-Mine: 1\r\n\r\n`,
  );
  assert.deepEqual([traced.entry?.state.step, traced.entry?.source, traced.received], ["completed", "slice", []]);
  const options = await ask(`OPTIONS ${target} HTTP/1.1\r\n${fields}Content-Length: 3\r\n\r\nabc`);
  assert.deepEqual([options.response.status, options.response.header("content-length")], [200, "0"]);
  assert.deepEqual(options.received, []);
});

/** HTTP/1.0 needs no Host; what goes on is HTTP/1.1, which does (RFC 9112, 3.2). */
const WITHOUT_HOST: readonly (readonly [what: string, bytes: string, host: string])[] = [
  ["inside a tunnel", `CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\nGET /t HTTP/1.0\r\n\r\n`, place],
  [
    "inside a tunnel, with an absolute target",
    `CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\nGET http://named.test/t HTTP/1.0\r\n\r\n`,
    "named.test",
  ],
  ["with an absolute target", `GET http://${place}/t HTTP/1.0\r\n\r\n`, place],
  [
    "inside a tunnel, where Host says something",
    `CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\nGET /t HTTP/1.0\r\nHost: named.test\r\n\r\n`,
    "named.test",
  ],
];
for (const [what, bytes, host] of WITHOUT_HOST) {
  test(`a request of HTTP/1.0 ${what} reaches the origin with Host ${host === place ? "of the place" : host}`, async () => {
    await using client = await rawClient(proxy.port);
    const seen = heads.length;
    await client.write(bytes);
    assert.match((await client.collect()).toString("latin1"), /HTTP\/1\.1 200 OK\r\n[^]*ok$/);
    const [head = ""] = heads.slice(seen);
    assert.match(head, /^GET \/t HTTP\/1\.1\r\n/);
    assert.deepEqual(
      head.match(/^host: .*$/gim)?.map((line) => line.trim().toLowerCase()),
      [`host: ${host}`],
    );
  });
}
