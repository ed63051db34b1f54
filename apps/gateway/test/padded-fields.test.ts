import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient, readResponse, startRawServer, type RawConnection } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

/** Responses with white space between a field name and its colon (RFC 9112, 5.1), by the path that asks for them. */
const PADDED: Readonly<Record<string, string>> = {
  "/plain": "HTTP/1.1 200 OK\r\nX-XSS-Protection : 1\r\nContent-Length: 2\r\n\r\nok",
  "/length": "HTTP/1.1 200 OK\r\nContent-Length \t: 2\r\nX-XSS-Protection\t: 1\r\n\r\nok",
  "/chunked":
    "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nX-XSS-Protection : 1\r\n\r\n2\r\nok\r\n0\r\nX-T : 1\r\n\r\n",
  "/close": "HTTP/1.1 200 OK\r\nConnection : close\r\nX-XSS-Protection : 1\r\n\r\nok",
};
/** Refused all the same: two readers could end the message at different bytes. */
const REFUSED: Readonly<Record<string, string>> = {
  "/two-lengths": "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length : 3\r\n\r\nok!",
  "/both": "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
  "/fold": "HTTP/1.1 200 OK\r\nX-A: 1\r\n Content-Length : 2\r\n\r\nok",
  "/nameless": "HTTP/1.1 200 OK\r\n : 1\r\nContent-Length: 2\r\n\r\nok",
  "/two-words": "HTTP/1.1 200 OK\r\nX A : 1\r\nContent-Length: 2\r\n\r\nok",
};
const RESPONSES = { ...PADDED, ...REFUSED };

async function respondPadded(connection: RawConnection): Promise<void> {
  for (;;) {
    const head = await connection.readUntil("\r\n\r\n").catch(() => undefined);
    if (head === undefined) return;
    const [, path = "", cut] = /^GET (\/[a-z-]+)(?:\?(\d+))? /.exec(head.toString("latin1")) ?? [];
    const response = RESPONSES[path] ?? "";
    await connection.write(response.slice(0, Number(cut ?? response.length)));
    if (cut !== undefined) {
      await new Promise(setImmediate);
      await connection.write(response.slice(Number(cut)));
    }
    if (path === "/close") return;
  }
}

const document = (port: number) => ({ ...serving("api", [port]), routes: [proxied("api")] });

test("white space before a colon in a response is removed and the field forwarded, wherever the response is cut", async () => {
  await using upstream = await startRawServer(respondPadded);
  await using gateway = await startGateway(document(upstream.port));
  await using client = await rawClient(gateway.port());
  for (const [path, response] of Object.entries(PADDED)) {
    const cuts = Array.from({ length: response.length - 1 }, (_, at) => `${path}?${at + 1}`);
    for (const target of [path, ...(path === "/close" ? [] : cuts)]) {
      await client.write(`GET ${target} HTTP/1.1\r\nHost: a.test\r\n\r\n`);
      const response = await readResponse(client);
      const seen = [response.status, response.body.toString(), response.header("x-xss-protection")];
      assert.deepEqual(seen, [200, "ok", "1"], target);
      const framing = response.headers.filter(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name));
      assert.equal(framing.length, path === "/close" ? 0 : 1, target);
    }
  }
});

test("only white space before the colon of a framing field ends the upstream connection", async () => {
  await using upstream = await startRawServer(respondPadded);
  await using gateway = await startGateway(document(upstream.port));
  for (const [path, connections] of [
    ["/plain", 1],
    ["/plain", 1],
    ["/length", 1],
    ["/chunked", 2],
    ["/plain", 3],
    ["/plain", 3],
  ] as const) {
    assert.equal((await gateway.send({ path })).status, 200);
    assert.equal(upstream.connections.length, connections, path);
  }
});

for (const path of Object.keys(REFUSED)) {
  test(`a response that two readers could end at different bytes is refused whatever stands before its colons: ${path}`, async () => {
    await using upstream = await startRawServer(respondPadded);
    await using gateway = await startGateway(document(upstream.port));
    const { status, body } = await gateway.send({ path });
    assert.deepEqual([status, body.includes("upstream_unavailable")], [502, true]);
  });
}
