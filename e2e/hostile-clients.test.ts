import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect as connectTls, createSecureContext } from "node:tls";
import { proxyClient, rawClient, startOrigin, waitUntil } from "@headworks/testkit";
import type { Origin, RawConnection } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";
import { atRest, descriptorsReturn, inParallel, numbers, whileHealthy } from "./watch.ts";

const cleanups = new Cleanups();
let weir: Weir;
let plain: Origin;
let secure: Origin;
before(async () => {
  weir = cleanups.use(
    await startWeir({ args: ["--head-timeout-ms=2000", "--idle-timeout-ms=2000", "--connect-timeout-ms=3000"] }),
  );
  const large = Buffer.alloc(400_000, "x");
  const handler: Parameters<typeof startOrigin>[0] = {
    handler: (request, response) =>
      void request.resume().on("end", () => response.end(request.url === "/large" ? large : "ok")),
  };
  plain = cleanups.use(await startOrigin(handler));
  secure = cleanups.use(await startOrigin({ ...handler, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
});
after(() => cleanups.run());

/** A well-behaved client, over TLS and plain. */
async function servesOthers(rounds = 10): Promise<void> {
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  for (let round = 0; round < rounds; round += 1) {
    const { port } = round % 2 === 0 ? plain : secure;
    const scheme = round % 2 === 0 ? "http" : "https";
    assert.equal((await client.fetch(`${scheme}://localhost:${port}/other`)).status, 200);
  }
}

/** After each test, Weir has no open exchanges and no additional descriptors. */
async function attack(name: string, run: () => Promise<void>): Promise<void> {
  await servesOthers(2);
  const before = (await atRest(weir)).openFiles();
  await whileHealthy(weir, name, run);
  await descriptorsReturn(weir, before);
  await servesOthers(2);
  const active = async (): Promise<boolean> =>
    (await weir.get<{ active_exchanges: number }>("/metrics")).active_exchanges === 0;
  await waitUntil(active, { what: "the end of every exchange" });
}

test("slow heads time out, and other clients are served meanwhile", async () => {
  await attack("slow heads", async () => {
    const slow = await Promise.all(numbers(200).map(async () => await rawClient(weir.proxyPort)));
    const text = "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n";
    let at = 0;
    const drip = setInterval(() => {
      at += 1;
      for (const connection of slow) connection.socket.write(text[at % text.length] ?? "x");
    }, 100);
    await servesOthers();
    for (const connection of slow) {
      assert.match((await connection.collect()).toString("latin1"), /^HTTP\/1\.1 4(?:00|08) /);
    }
    clearInterval(drip);
    for (const connection of slow) connection.destroy();
  });
});

test("stalled bodies time out, and other clients are served meanwhile", async () => {
  await attack("slow bodies", async () => {
    const slow = await Promise.all(numbers(150).map(async () => await rawClient(weir.proxyPort)));
    for (const connection of slow) {
      await connection.write(
        `POST http://localhost:${plain.port}/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nbeginning`,
      );
    }
    await servesOthers();
    for (const connection of slow) assert.match((await connection.collect()).toString("latin1"), /^HTTP\/1\.1 408 /);
    for (const connection of slow) connection.destroy();
  });
  const [entry] = await weir.waitForEntries(150, "/slow");
  assert.equal(entry?.failure?.code, "CLIENT_TIMEOUT");
});

test("2,000 idle connections do not affect other clients", async () => {
  await attack("idle connections", async () => {
    const idle: RawConnection[] = [];
    await inParallel(numbers(2000), 50, async () => void idle.push(await rawClient(weir.proxyPort)));
    await servesOthers(40);
    for (const connection of idle) connection.destroy();
  });
});

test("each tunnel in a flood to closed ports gets a response", async () => {
  const gone = await startOrigin();
  const { port } = gone;
  await gone.close();
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  await attack("tunnels to dead ports", async () => {
    await inParallel(numbers(400), 40, async (index) => {
      if (index % 2 === 0) {
        const { connection } = await client.tunnel(`localhost:${port}`);
        await connection.write(`GET /dead HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`);
        assert.match((await connection.collect()).toString("latin1"), /^HTTP\/1\.1 502 [^]*UPSTREAM_REFUSED/);
        connection.destroy();
      } else {
        assert.equal((await client.fetch(`https://localhost:${port}/dead`)).status, 502);
      }
    });
  });
});

test("memory stays bounded with 5,000 different host names", async () => {
  // A TLS context for each of them costs the client more than the handshake.
  const secureContext = createSecureContext({ ecdhCurve: "X25519" });
  await attack("5,000 names", async () => {
    const openTunnelTo = async (index: number): Promise<void> => {
      const { connection } = await proxyClient(weir.proxyPort).tunnel(`h${index}.example:443`);
      const socket = connection.detach();
      const name = `h${index}.example.test`;
      const secured = Promise.withResolvers<void>();
      const options = { socket, servername: name, rejectUnauthorized: false, session: undefined, secureContext };
      const tls = connectTls(options, () => {
        assert.equal(tls.getPeerX509Certificate()?.checkHost(name), name);
        secured.resolve();
      });
      tls.on("error", secured.reject);
      await secured.promise;
      tls.destroy();
      socket.destroy();
    };
    await inParallel(numbers(1500), 8, openTunnelTo);
    const warmBytes = weir.residentBytes();
    await inParallel(
      numbers(3500).map((index) => 1500 + index),
      8,
      openTunnelTo,
    );
    const grownBytes = weir.residentBytes() - warmBytes;
    process.stdout.write(`# resident memory grew by ${(grownBytes / 1e6).toFixed(0)} MB over the last 3,500 names\n`);
    assert.ok(grownBytes < 150e6, `${grownBytes} bytes`);
  });
});

/** The stage at which a client goes away. */
const STAGES: readonly [name: string, go: () => Promise<RawConnection>][] = [
  ["before its first byte", async () => await rawClient(weir.proxyPort)],
  ["in the middle of a head", async () => await written(`GET http://localhost:${plain.port}/ HTTP/1.1\r\nHo`)],
  [
    "right behind a head",
    async () => await written(`GET http://localhost:${plain.port}/large HTTP/1.1\r\nHost: x\r\n\r\n`),
  ],
  [
    "in the middle of a body",
    async () =>
      await written(`POST http://localhost:${plain.port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab`),
  ],
  [
    "in the middle of a chunk",
    async () =>
      await written(
        `POST http://localhost:${plain.port}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nab`,
      ),
  ],
  ["during a response", midResponse],
  ["after CONNECT", async () => (await proxyClient(weir.proxyPort).tunnel(`localhost:${secure.port}`)).connection],
  ["in the middle of a ClientHello", midHello],
  ["right after TLS", async () => await securely("")],
  ["in the middle of a head inside TLS", async () => await securely("GET / HTT")],
  ["during a response inside TLS", async () => await securely("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")],
];

async function written(text: string): Promise<RawConnection> {
  const connection = await rawClient(weir.proxyPort);
  await connection.write(text);
  return connection;
}

async function midResponse(): Promise<RawConnection> {
  const connection = await written(`GET http://localhost:${plain.port}/large HTTP/1.1\r\nHost: x\r\n\r\n`);
  await connection.readSome();
  return connection;
}

async function midHello(): Promise<RawConnection> {
  const { connection } = await proxyClient(weir.proxyPort).tunnel(`localhost:${secure.port}`);
  await connection.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]));
  return connection;
}

async function securely(text: string): Promise<RawConnection> {
  const connection = await proxyClient(weir.proxyPort, { ca: weir.caPem }).secureTunnel("localhost", secure.port);
  if (text !== "") await connection.write(text);
  return connection;
}

const LEAVINGS: readonly [name: string, leave: (connection: RawConnection) => void][] = [
  ["ends", (connection) => connection.destroy()],
  [
    "resets",
    (connection) =>
      ((connection.socket as { _parent?: RawConnection["socket"] })._parent ?? connection.socket).resetAndDestroy(),
  ],
  ["half-closes", (connection) => connection.end()],
];

for (const [how, leave] of LEAVINGS) {
  test(`a client that ${how} the connection at any stage leaves nothing behind`, async () => {
    await attack(`clients that ${how}`, async () => {
      const left: RawConnection[] = [];
      await inParallel(numbers(10 * STAGES.length), 10, async (index) => {
        const connection = await (STAGES[index % STAGES.length]?.[1] ?? midResponse)();
        leave(connection);
        left.push(connection);
      });
      // A half-closed client still reads the response, to its end or until Weir's timeout.
      await Promise.all(left.map(async (connection) => await connection.collect().catch(() => undefined)));
      for (const connection of left) connection.destroy();
    });
  });
}
