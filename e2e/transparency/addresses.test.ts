import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { credentials, proxyClient, rawClient, startRawServer, waitUntil } from "@headworks/testkit";
import type { RawConnection, RawServer } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "../rig.ts";
import type { Weir } from "../rig.ts";
import { readResponse, readHead, valueOf } from "./wire.ts";
import type { Head } from "./wire.ts";

// The destinations of absolute targets, and the Host that the origin gets.

const cleanups = new Cleanups();
const heads: Head[] = [];
let weir: Weir;
let four: RawServer;
let six: RawServer;
let secure: RawServer;

async function serve(connection: RawConnection): Promise<void> {
  heads.push(await readHead(connection));
  await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

before(async () => {
  weir = cleanups.use(await startWeir());
  four = cleanups.use(await startRawServer(serve));
  six = cleanups.use(await startRawServer(serve, { host: "::1" }));
  secure = cleanups.use(await startRawServer(serve, { tls: credentials(originAuthority, LOCAL_NAMES) }));
});
after(() => cleanups.run());

/** `4` and `6` are the origins' ports. */
const TARGETS: readonly [target: string, line: string, host: string, url: string][] = [
  ["http://127.0.0.1:{4}/x", "/x", "127.0.0.1:{4}", "http://127.0.0.1:{4}/x"],
  ["HTTP://LocalHost:{4}/X", "/X", "LocalHost:{4}", "http://localhost:{4}/X"],
  ["http://localhost:{4}", "/", "localhost:{4}", "http://localhost:{4}/"],
  ["http://localhost:{4}?a=b", "/?a=b", "localhost:{4}", "http://localhost:{4}/?a=b"],
  ["http://[::1]:{6}/six", "/six", "[::1]:{6}", "http://[::1]:{6}/six"],
  ["http://[0:0:0:0:0:0:0:1]:{6}/six", "/six", "[0:0:0:0:0:0:0:1]:{6}", ""],
  ["http://[::ffff:127.0.0.1]:{4}/mapped", "/mapped", "[::ffff:127.0.0.1]:{4}", ""],
  ["http://user:secret@localhost:{4}/u", "/u", "localhost:{4}", "http://localhost:{4}/u"],
  ["http://localhost:{4}//x//", "//x//", "localhost:{4}", "http://localhost:{4}//x//"],
];

for (const [target, path, host, url] of TARGETS) {
  test(`the target ${target} reaches the origin with its own Host`, async () => {
    const filled = (text: string): string => text.replace("{4}", String(four.port)).replace("{6}", String(six.port));
    await using client = await rawClient(weir.proxyPort);
    heads.length = 0;
    const last = (await weir.entries()).at(-1)?.seq ?? 0;
    await client.write(`GET ${filled(target)} HTTP/1.1\r\nHost: other.example\r\nX: y\r\n\r\n`);
    assert.equal((await readResponse(client, "GET")).status, 200);
    assert.deepEqual(heads, [
      {
        start: `GET ${path} HTTP/1.1`,
        fields: [
          ["Host", filled(host)],
          ["X", "y"],
        ],
      },
    ]);
    const entry = await waitUntil(async () => (await weir.entries()).find(({ seq }) => seq > last));
    if (url !== "") assert.equal(entry.request.url, filled(url));
    assert.ok(!JSON.stringify(await weir.entries()).includes("secret"), "credentials of a URL are not stored");
  });
}

test("OPTIONS without a path addresses the whole server", async () => {
  await using client = await rawClient(weir.proxyPort);
  heads.length = 0;
  await client.write(`OPTIONS http://localhost:${four.port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.equal((await readResponse(client, "OPTIONS")).status, 200);
  assert.equal(heads[0]?.start, "OPTIONS * HTTP/1.1");
});

test("inside a tunnel, * and absolute targets work too, and go to the tunnel's target", async () => {
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  for (const [line, path] of [
    ["OPTIONS *", "*"],
    [`GET https://localhost:${secure.port}/abs`, "/abs"],
    ["GET https://elsewhere.invalid/abs", "/abs"],
  ] as const) {
    heads.length = 0;
    await using connection = await client.secureTunnel("localhost", secure.port);
    await connection.write(`${line} HTTP/1.1\r\nHost: localhost:${secure.port}\r\n\r\n`);
    assert.equal((await readResponse(connection, "GET")).status, 200);
    assert.equal(heads[0]?.start.split(" ")[1], path);
  }
  assert.equal(valueOf(heads[0]?.fields ?? [], "host"), "elsewhere.invalid");
});

test("a client of HTTP/1.0 without Host gets its target as Host", async () => {
  await using client = await rawClient(weir.proxyPort);
  heads.length = 0;
  await client.write(`GET http://localhost:${four.port}/old HTTP/1.0\r\n\r\n`);
  const response = await readResponse(client, "GET");
  assert.equal(response.status, 200);
  assert.deepEqual(heads, [{ start: "GET /old HTTP/1.1", fields: [["Host", `localhost:${four.port}`]] }]);
  await client.collect();
});

test("an origin on IPv6 is reached with TLS, and its certificate is verified for the address", async () => {
  await using server = await startRawServer(serve, { host: "::1", tls: credentials(originAuthority, LOCAL_NAMES) });
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  assert.equal((await client.fetch(`https://[::1]:${server.port}/six`)).status, 200);
  const [entry] = await weir.waitForEntries(1, `https://[::1]:${server.port}/six`);
  assert.equal(entry?.server_addr, `[::1]:${server.port}`);
  assert.equal(entry.tls?.sni, null);
  assert.equal(entry.tls?.upstream_verified, true);
});
