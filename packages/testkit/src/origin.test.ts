import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { proxyClient, rawClient, readResponse, startOrigin, startRawServer, type RawConnection } from "./index.ts";

/** A proxy of a few lines: absolute form is passed to node:http, CONNECT is relayed. */
async function relayOneConnection(connection: RawConnection): Promise<void> {
  const head = (await connection.readUntil("\r\n\r\n")).toString("latin1");
  const [method = "", target = ""] = head.split(" ");
  if (method === "CONNECT") {
    if (!head.includes("Proxy-Authorization: yes")) {
      await connection.write("HTTP/1.1 407 Who Are You\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    await connection.write("HTTP/1.1 200 Connected\r\n\r\n");
    const upstream = connect(Number(new URL(`http://${target}`).port), "127.0.0.1");
    const downstream = connection.detach();
    downstream.pipe(upstream).pipe(downstream);
    upstream.on("error", () => downstream.destroy());
    await connection.closed;
    return;
  }
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  const outgoing = httpRequest(target, { method, agent: false }, (response) => {
    connection.socket.write(`HTTP/1.1 ${response.statusCode} Relayed\r\n\r\n`);
    response.pipe(connection.socket, { end: false }).on("error", reject);
    response.on("end", () => resolve(undefined));
  });
  outgoing.on("error", reject).end();
  await promise;
}

test("an origin records heads as they came and echoes", async () => {
  await using origin = await startOrigin();
  await using client = await rawClient(origin.port);
  await client.write("POST /a?b HTTP/1.1\r\nhOST: x\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nhi");
  const response = await readResponse(client);
  const echoed: unknown = JSON.parse(response.body.toString());
  const headers = [
    ["hOST", "x"],
    ["X-A", "1"],
    ["x-a", "2"],
    ["Content-Length", "2"],
  ];
  assert.deepEqual(echoed, { method: "POST", url: "/a?b", headers, body: "aGk=" });
  assert.deepEqual(origin.requests, [{ method: "POST", url: "/a?b", httpVersion: "1.1", rawHeaders: headers.flat() }]);
  assert.equal(origin.connectionCount, 1);
});

test("an origin over TLS is trusted through its own CA, on IPv6 too", async () => {
  await using origin = await startOrigin({
    tls: true,
    host: "::1",
    handler: (_request, response) => response.end("yes"),
  });
  assert.equal(origin.url, `https://[::1]:${origin.port}`);
  assert.ok(origin.caPem);
  await using client = await rawClient(origin.port, { host: "::1", tls: { ca: origin.caPem, host: "::1" } });
  await client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  assert.equal((await readResponse(client)).body.toString(), "yes");
});

test("closing an origin cuts its idle connections", async () => {
  const origin = await startOrigin();
  await using client = await rawClient(origin.port);
  await client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await readResponse(client);
  await origin.close();
  assert.equal((await client.collect()).length, 0);
});

test("the proxy client sends plain requests in absolute form", async () => {
  await using origin = await startOrigin();
  await using proxy = await startRawServer(relayOneConnection);
  const response = await proxyClient(proxy.port).fetch(`${origin.url}/path?q=1#fragment`);
  assert.equal(response.reason, "Relayed");
  assert.equal(origin.requests[0]?.url, "/path?q=1");
});

test("the proxy client reaches TLS origins through a tunnel", async () => {
  await using origin = await startOrigin({ tls: true });
  await using proxy = await startRawServer(relayOneConnection);
  assert.ok(origin.caPem);
  const client = proxyClient(proxy.port, { ca: origin.caPem, proxyHeaders: [["Proxy-Authorization", "yes"]] });
  const response = await client.fetch({ method: "PUT", url: `https://localhost:${origin.port}/x`, body: "abc" });
  assert.equal(response.status, 200);
  const rawHeaders = ["Host", `localhost:${origin.port}`, "Content-Length", "3"];
  assert.deepEqual(origin.requests.slice(0, 1), [{ method: "PUT", url: "/x", httpVersion: "1.1", rawHeaders }]);
  assert.equal((await client.fetch(`https://127.0.0.1:${origin.port}/`)).status, 200);
  const stranger = proxyClient(proxy.port, { proxyHeaders: [["Proxy-Authorization", "yes"]] });
  await assert.rejects(stranger.fetch(`https://localhost:${origin.port}/`), /self.signed/i);
});

test("a tunnel that the proxy refuses is told with its status", async () => {
  await using proxy = await startRawServer(relayOneConnection);
  const client = proxyClient(proxy.port);
  await assert.rejects(client.secureTunnel("localhost", 1), /407 Who Are You/);
  const { response, connection } = await client.tunnel("odd authority");
  assert.equal(response.status, 407);
  connection.destroy();
});
