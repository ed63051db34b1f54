import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, test } from "node:test";
import { CertificateAuthority } from "@headworks/tls-authority";
import {
  rawClient,
  readResponse,
  secure,
  startRawServer,
  type RawConnection,
  type RawServer,
} from "@headworks/testkit";
import { CONTINUE, type Verdict } from "#exchange/phases.ts";
import type { BodyCapture } from "#exchange/body.ts";
import { startEngine } from "./engine-harness.ts";

/** Connections read into memory that all share from their second exchange on; here another one reads in between. */
const originCa = CertificateAuthority.create({ commonName: "Origins" });
const leaf = originCa.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });
const BODY = "what was sent, byte by byte. ".repeat(60);

/** What a test holds back until others have read. */
class Gate {
  readonly #reached = Promise.withResolvers<void>();
  readonly #opened = Promise.withResolvers<void>();

  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  readonly pass = async (): Promise<void> => {
    this.#reached.resolve();
    await this.#opened.promise;
  };

  async openAfter(work: () => Promise<void>): Promise<void> {
    await this.#reached.promise;
    await work();
    this.#opened.resolve();
  }
}

let gate = new Gate();

const decides = (path: string) => async (): Promise<Verdict> => {
  if (path.endsWith("decided")) await gate.pass();
  return CONTINUE;
};

const engine = await startEngine({
  upstreamRoots: originCa.certificatePem,
  interceptors: [
    {
      name: "blocklist",
      onRequestHead: ({ request }) => (request.path === "/request-decided" ? decides(request.path)() : CONTINUE),
      onResponseHead: ({ request }) => (request.path === "/answer-decided" ? decides(request.path)() : CONTINUE),
    },
  ],
});
after(async () => await engine.stop());

/** Sends back the body, or the path where there is none; some paths wait at the gate. */
async function respondToEach(connection: RawConnection): Promise<void> {
  for (;;) {
    const bytes = await connection.readUntil("\r\n\r\n", 60_000).catch(() => undefined);
    if (bytes === undefined) return;
    const head = bytes.toString("latin1");
    const path = head.split(" ", 2)[1] ?? "";
    const lengthBytes = Number(/content-length: (\d+)/iu.exec(head)?.[1] ?? 0);
    if (path === "/upgrade") return await switchOver(connection);
    const body = lengthBytes > 0 ? await connection.read(lengthBytes) : Buffer.from(path);
    if (path === "/slow") await gate.pass();
    await connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`);
    if (path !== "/in-parts") {
      await connection.write(body);
      continue;
    }
    await connection.write(body.subarray(0, 700));
    await gate.pass();
    await connection.write(body.subarray(700));
  }
}

/** Speaks first, and in the same bytes as its head; then sends back what comes. */
async function switchOver(connection: RawConnection): Promise<void> {
  await gate.pass();
  await connection.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello");
  for (;;) {
    const bytes = await connection.readSome(60_000).catch(() => undefined);
    if (bytes === undefined) return;
    await connection.write(bytes);
  }
}

interface Connected {
  readonly client: RawConnection;
  /** What stands before the paths of its requests. */
  readonly base: string;
  readonly reset: () => void;
}

/** A client of the proxy with a connection to the origin that is used for the second time from now on. */
async function secondTime(origin: RawServer, isSecure: boolean): Promise<Connected> {
  const place = `127.0.0.1:${origin.port}`;
  const plain = await rawClient(engine.port);
  let client = plain;
  if (isSecure) {
    await client.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n\r\n`);
    await client.readUntil("\r\n\r\n");
    client = await secure(client.socket, { servername: "localhost", ca: engine.ca.certificatePem });
  }
  const base = isSecure ? "" : `http://${place}`;
  await client.write(`GET ${base}/first HTTP/1.1\r\nHost: ${place}\r\n\r\n`);
  assert.equal((await readResponse(client)).body.toString(), "/first");
  return { client, base, reset: () => void plain.socket.resetAndDestroy() };
}

const stored = (body: BodyCapture | undefined): string => Buffer.concat([...(body?.pieces ?? [])]).toString();

interface Case {
  readonly name: string;
  readonly run: (connected: Connected, overwrite: () => Promise<void>) => Promise<void>;
}

const post = (target: string, body: string | Buffer, more = ""): string =>
  `POST ${target} HTTP/1.1\r\nHost: a.test\r\n${more}Content-Length: ${body.length}\r\n\r\n`;

/** Sends one request with a body to a path that waits at the gate; it comes back, and is stored, as it was sent. */
const echoes = (path: string): Case["run"] => {
  return async ({ client, base }, overwrite) => {
    await client.write(post(`${base}${path}`, BODY) + BODY);
    await gate.openAfter(overwrite);
    assert.equal((await readResponse(client)).body.toString(), BODY);
    const exchange = engine.finished.findLast(({ request }) => request.path === path);
    assert.deepEqual([stored(exchange?.requestBody), stored(exchange?.responseBody)], [BODY, BODY]);
  };
};

const CASES: readonly Case[] = [
  { name: "bodies whose answer comes later", run: echoes("/slow") },
  { name: "an answer in parts", run: echoes("/in-parts") },
  { name: "a body that is held while a rule decides on its request", run: echoes("/request-decided") },
  { name: "a body that is held while a rule decides on its answer", run: echoes("/answer-decided") },
  {
    name: "requests that wait behind another one",
    async run({ client, base }, overwrite) {
      const paths = ["/slow", "/second", "/third"];
      await client.write(paths.map((path) => `GET ${base}${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`).join(""));
      await gate.openAfter(overwrite);
      for (const path of paths) assert.equal((await readResponse(client)).body.toString(), path);
    },
  },
  {
    name: "a head in two parts",
    async run({ client, base }, overwrite) {
      await client.write(`GET ${base}/in-two-parts HTTP/1.1\r\nHo`);
      await overwrite();
      await client.write("st: a.test\r\n\r\n");
      assert.equal((await readResponse(client)).body.toString(), "/in-two-parts");
    },
  },
  {
    name: "what both sides send behind an upgrade",
    async run({ client, base }, overwrite) {
      const head = `GET ${base}/upgrade HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n`;
      await client.write(`${head}early`);
      await gate.openAfter(overwrite);
      await client.readUntil("\r\n\r\n");
      assert.equal((await client.read(10)).toString(), "helloearly");
      const large = randomBytes(3_000_000);
      const sent = client.write(large);
      await overwrite();
      assert.ok((await client.read(large.length)).equals(large));
      await sent;
    },
  },
  {
    name: "a large body to a slow taker, both ways",
    async run({ client, base }, overwrite) {
      const large = randomBytes(6_000_000);
      await client.write(post(`${base}/in-parts`, large));
      const sent = client.write(large);
      await gate.openAfter(overwrite);
      client.socket.pause();
      await overwrite();
      client.socket.resume();
      assert.ok((await readResponse(client)).body.equals(large));
      await sent;
    },
  },
  {
    name: "the reset of a client whose next request waits",
    async run({ client, base, reset }) {
      await client.write(
        ["/slow", "/second"].map((path) => `GET ${base}${path} HTTP/1.1\r\nHost: a.test\r\n\r\n`).join(""),
      );
      client.socket.on("error", () => undefined);
      await gate.reached;
      const count = engine.finished.length;
      reset();
      const exchange = (await engine.waitFor(count + 1)).at(-1);
      assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "CLIENT_ABORTED");
      await gate.openAfter(async () => {});
    },
  },
];

for (const isSecure of [false, true]) {
  for (const { name, run } of CASES) {
    test(`${name}: as it was sent, whatever others send meanwhile, ${isSecure ? "with TLS" : "without TLS"}`, async () => {
      gate = new Gate();
      const tls = isSecure ? { tls: { key: leaf.keyPem, cert: leaf.chainPem } } : {};
      await using origin = await startRawServer(respondToEach, tls);
      const connected = await secondTime(origin, isSecure);
      const other = await secondTime(origin, isSecure);
      let round = 0;
      const overwrite = async (): Promise<void> => {
        round += 1;
        const body = `overwritten ${round} `.repeat(2000);
        await other.client.write(post(`${other.base}/other`, body) + body);
        assert.equal((await readResponse(other.client)).body.toString(), body);
      };
      await run(connected, overwrite);
      connected.client.destroy();
      other.client.destroy();
    });
  }
}

test("bytes behind a CONNECT that comes second: as they were sent, whatever others send meanwhile", async () => {
  await using origin = await startRawServer(respondToEach);
  await using echo = await startRawServer(async (connection) => {
    await connection.write(await connection.read(BODY.length, 60_000));
  });
  const { client } = await secondTime(origin, false);
  const other = await secondTime(origin, false);
  const body = "overwritten ".repeat(2000);
  await Promise.all([
    client.write(`CONNECT 127.0.0.1:${echo.port} HTTP/1.1\r\nHost: a.test\r\n\r\n${BODY}`),
    other.client.write(post(`${other.base}/other`, body) + body),
  ]);
  await client.readUntil("\r\n\r\n");
  assert.equal((await client.read(BODY.length)).toString(), BODY);
  client.destroy();
  other.client.destroy();
});
