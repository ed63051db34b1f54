import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import type { Socket } from "node:net";
import { proxyClient, rawClient, startOrigin } from "@headworks/testkit";
import type { Origin, RawConnection } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";
import { atRest } from "./watch.ts";

const TOTAL_BYTES = 1024 * 1024 * 1024;
const PIECE = Buffer.alloc(1024 * 1024, "0123456789abcdef");
const MAX_GROWTH_BYTES = 80e6;

const cleanups = new Cleanups();
let weir: Weir;
let plain: Origin;
let secure: Origin;
before(async () => {
  weir = cleanups.use(await startWeir({ args: ["--max-body-size=1048576"] }));
  plain = cleanups.use(await startOrigin({ handler: serve }));
  secure = cleanups.use(await startOrigin({ handler: serve, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
  await warmUp();
});
after(() => cleanups.run());

/** Counts received bytes, and sends as many on request. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  let receivedBytes = 0;
  request.on("data", (piece: Buffer) => (receivedBytes += piece.length));
  request.on("end", () => {
    if (request.method === "PUT") response.end(String(receivedBytes));
    else void sendAll(response);
  });
}

async function sendAll(response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-length": TOTAL_BYTES });
  for (let sent = 0; sent < TOTAL_BYTES; sent += PIECE.length) {
    if (!response.write(PIECE)) await once(response, "drain");
  }
  response.end();
}

/** Samples Weir's memory during `run`. */
async function withFlatMemory(name: string, run: () => Promise<void>): Promise<void> {
  const startBytes = (await atRest(weir)).residentBytes();
  let peakBytes = startBytes;
  const sampler = setInterval(() => (peakBytes = Math.max(peakBytes, weir.residentBytes())), 50);
  const startedMs = performance.now();
  try {
    await run();
  } finally {
    clearInterval(sampler);
  }
  const seconds = (performance.now() - startedMs) / 1000;
  process.stdout.write(
    `# ${name}: 1 GB in ${seconds.toFixed(1)} s, memory grew by ${((peakBytes - startBytes) / 1e6).toFixed(0)} MB\n`,
  );
  assert.ok(peakBytes - startBytes < MAX_GROWTH_BYTES, `memory grew by ${peakBytes - startBytes} bytes`);
}

/** Small transfers first, so that one-time allocations do not count as growth. */
async function warmUp(): Promise<void> {
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
  for (const url of [`http://localhost:${plain.port}/warm`, `https://localhost:${secure.port}/warm`]) {
    for (let round = 0; round < 20; round += 1) {
      assert.equal((await client.fetch({ method: "PUT", url, body: PIECE })).status, 200);
    }
  }
}

for (const scheme of ["http", "https"] as const) {
  const open = async (): Promise<{ connection: RawConnection; prefix: string }> => {
    if (scheme === "http") {
      return { connection: await rawClient(weir.proxyPort), prefix: `http://localhost:${plain.port}` };
    }
    const client = proxyClient(weir.proxyPort, { ca: weir.caPem });
    return { connection: await client.secureTunnel("localhost", secure.port), prefix: "" };
  };

  test(`memory stays flat for 1 GB down over ${scheme}`, async () => {
    await withFlatMemory(`down over ${scheme}`, async () => {
      const { connection, prefix } = await open();
      await connection.write(`GET ${prefix}/down-${scheme} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      await connection.readUntil("\r\n\r\n");
      const socket = connection.detach();
      await counted(socket, TOTAL_BYTES);
      socket.destroy();
    });
    const [own] = await weir.waitForEntries(1, `/down-${scheme}`);
    assert.equal(own?.response?.body_size, TOTAL_BYTES);
    assert.equal(own.response?.body_state, "truncated");
    assert.equal(own.response?.body_stored_size, 1_048_576);
  });

  test(`memory stays flat for 1 GB up over ${scheme}`, async () => {
    await withFlatMemory(`up over ${scheme}`, async () => {
      const { connection, prefix } = await open();
      await connection.write(
        `PUT ${prefix}/up-${scheme} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${TOTAL_BYTES}\r\n\r\n`,
      );
      for (let sent = 0; sent < TOTAL_BYTES; sent += PIECE.length) {
        if (!connection.socket.write(PIECE)) await once(connection.socket, "drain");
      }
      assert.match((await connection.readUntil(String(TOTAL_BYTES), 30_000)).toString("latin1"), /^HTTP\/1\.1 200 /);
      connection.destroy();
    });
    const [own] = await weir.waitForEntries(1, `/up-${scheme}`);
    assert.equal(own?.request.body_size, TOTAL_BYTES);
    assert.equal(own.request.body_state, "truncated");
  });
}

/** Discards the stream, which must end exactly after `totalBytes`. */
async function counted(socket: Socket, totalBytes: number): Promise<void> {
  let receivedBytes = 0;
  const done = Promise.withResolvers<void>();
  socket.on("data", (piece: Buffer) => {
    receivedBytes += piece.length;
    if (receivedBytes >= totalBytes) done.resolve();
  });
  socket.on("error", done.reject);
  socket.on("close", () => done.reject(new Error(`the connection ended after ${receivedBytes} bytes`)));
  socket.resume();
  await done.promise;
  assert.equal(receivedBytes, totalBytes);
}
