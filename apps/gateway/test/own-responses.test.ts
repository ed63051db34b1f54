import assert from "node:assert/strict";
import { test } from "node:test";
import { http2Client, rawClient, readResponse, startHttp2Origin, startOrigin } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";
import { errorOf, proxied, responding } from "./route-documents.ts";

const VIA = "Via: 1.1 edge";

test("OPTIONS that may not be forwarded any more is answered by the gateway itself (RFC 9110, 7.6.2)", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [
      proxied("api", "/", {}),
      proxied("few", "/few", { service: "api", methods: ["GET", "options"] }),
      responding("own", "/own"),
      proxied("closed", "/closed", { service: "api", auth_required: true }),
    ],
    consumers: [{ name: "acme", credentials: [{ type: "api_key", key: "the-key-of-acme" }] }],
  });
  for (const [path, status, allow] of [
    ["/", 200, undefined],
    ["/few", 200, "GET, OPTIONS"],
    ["/own", 200, undefined],
    ["/closed", 401, undefined],
  ] as const) {
    const response = await gateway.send({ method: "OPTIONS", path, fields: ["Max-Forwards: 0", VIA] });
    assert.deepEqual([response.status, response.header("allow")], [status, allow], path);
    if (status === 401) assert.equal(errorOf(response).code, "unauthorized");
  }
  assert.equal(origin.requests.length, 0);
});

test("an answer of the gateway's own keeps the connection when the body that it does not want is there", async () => {
  await using gateway = await startGateway({
    routes: [responding("own", "/own"), responding("closed", "/closed", { auth_required: true })],
  });
  await using client = await rawClient(gateway.port());
  const post = (path: string, body: string): string => `POST ${path} HTTP/1.1\r\nHost: a\r\n${body}`;
  await client.write(
    [
      post("/own", "Content-Length: 3\r\n\r\nabc"),
      post("/closed", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"),
      post("/none", "Content-Length: 5\r\n\r\nGET /"),
      "GET /own HTTP/1.1\r\nHost: a\r\n\r\n",
    ].join(""),
  );
  for (const status of [200, 401, 404, 200]) {
    const response = await readResponse(client);
    assert.deepEqual([response.status, response.header("connection")], [status, undefined]);
  }
});

for (const [what, body] of [
  ["still arrives", "Content-Length: 5\r\n\r\nabc"],
  ["cannot be read", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"],
  ["waits for 100 Continue", "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"],
] as const) {
  test(`an answer of the gateway's own is the last one where a body that it does not want ${what}`, async () => {
    await using gateway = await startGateway({ routes: [responding("own", "/own")] });
    await using client = await rawClient(gateway.port());
    await client.write(`POST /own HTTP/1.1\r\nHost: a\r\n${body}`);
    const response = await readResponse(client);
    assert.deepEqual([response.status, response.header("connection")], [200, "close"]);
    assert.equal((await client.collect()).length, 0);
  });
}

test("OPTIONS * asks the gateway itself and no upstream (RFC 9110, 9.3.7)", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api", "/", {})] });
  const response = await gateway.send({ method: "OPTIONS", path: "*" });
  assert.deepEqual([response.status, response.header("content-length"), origin.requests.length], [200, "0", 0]);
  assert.equal((await gateway.send({ method: "GET", path: "*" })).status, 400);
});

test("TRACE that may not be forwarded any more shows the request as it came, and no secret (RFC 9110, 9.3.8)", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api", "/", {})] });
  const secrets = ["Authorization: Bearer s3cret", "Cookie: s=s3cret", "X-Edge-Token: s3cret"];
  const response = await gateway.send({
    method: "TRACE",
    path: "/a?b",
    fields: ["Max-Forwards: 00", VIA, "X-Mine: 1", ...secrets],
  });
  assert.deepEqual([response.status, response.header("content-type")], [200, "message/http"]);
  assert.equal(
    response.body.toString(),
    "TRACE /a?b HTTP/1.1\r\nHost: gateway.test\r\nMax-Forwards: 00\r\nVia: 1.1 edge\r\nX-Mine: 1\r\n\r\n",
  );
  assert.equal(origin.requests.length, 0);
});

for (const [method, sent, received] of [
  ["OPTIONS", "1", "0"],
  ["OPTIONS", "10", "9"],
  ["TRACE", "3", "2"],
  ["OPTIONS", "99999999999999999999", "2147483647"],
  ["OPTIONS", "-1", "-1"],
  ["OPTIONS", "", ""],
  ["GET", "0", "0"],
  ["GET", "7", "7"],
] as const) {
  test(`Max-Forwards is counted down only for OPTIONS and TRACE: ${method} "${sent}"`, async () => {
    await using origin = await startOrigin();
    await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api", "/", {})] });
    assert.equal((await gateway.send({ method, path: "/", fields: [`Max-Forwards: ${sent}`] })).status, 200);
    assert.deepEqual(
      origin.requests.map(({ rawHeaders }) => rawHeaders[rawHeaders.indexOf("Max-Forwards") + 1]),
      [received],
    );
  });
}

test("Max-Forwards is counted down, and answered at 0, over HTTP/2 on either side", async () => {
  await using origin = await startHttp2Origin((stream) => stream.respond({ ":status": 200 }, { endStream: true }));
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "h2c" }),
    routes: [proxied("api", "/", {})],
  });
  await using client = await http2Client(gateway.port());
  const ask = (method: string, forwards: string) =>
    client.fetch({ ":method": method, ":path": "/a", "max-forwards": forwards, cookie: "s=s3cret", "x-mine": "1" });
  assert.equal((await ask("OPTIONS", "2")).status, 200);
  const [section = []] = origin.requests;
  assert.equal(section[section.indexOf("max-forwards") + 1], "1");
  const traced = await ask("TRACE", "0");
  assert.equal(traced.status, 200);
  assert.match(traced.body.toString(), /^TRACE \/a HTTP\/2\r\nhost: [^]*max-forwards: 0\r\n[^]*x-mine: 1\r\n\r\n$/);
  assert.doesNotMatch(traced.body.toString(), /s3cret/);
  assert.equal(origin.requests.length, 1);
});

test("octets beyond ASCII in a :path are routed and forwarded percent-encoded over HTTP/2", async () => {
  await using origin = await startHttp2Origin((stream) => stream.respond({ ":status": 200 }, { endStream: true }));
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "h2c" }),
    routes: [proxied("api", "/caf%C3%A9", { service: "api" })],
  });
  await using client = await http2Client(gateway.port());
  assert.equal((await client.fetch({ ":path": "/caf\xc3\xa9/x?q=\xff" })).status, 200);
  const [section = []] = origin.requests;
  assert.equal(section[section.indexOf(":path") + 1], "/caf%C3%A9/x?q=%FF");
});
