import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { credentials } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { cutConnection, readPastBrokenWrites } from "./closing.ts";

/** Both ends of an open connection. */
async function pair(): Promise<{ readonly near: Socket; readonly far: Socket; readonly close: () => void }> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => undefined);
  const [far] = (await accepted) as [Socket];
  await once(near, "connect");
  far.on("error", () => undefined).resume();
  return { near, far, close: () => server.close() };
}

test("a cut connection is reset, so that its peer cannot take it for an end", async () => {
  const { near, far, close } = await pair();
  near.write("half");
  const broken = once(far, "error");
  cutConnection(near);
  const [error] = (await broken) as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNRESET");
  close();
});

test("a connection that is cut right after its end is closed all the same, and keeps no descriptor", async () => {
  const { near, far, close } = await pair();
  near.write("all");
  near.end();
  const closed = once(near, "close");
  cutConnection(near);
  await closed;
  far.destroy();
  close();
});

const RESPONSE = "read me";

/** Writes, reads nothing, and closes. */
function closeUnread(socket: Socket): void {
  socket.on("error", () => undefined);
  socket.once("data", () => {
    socket.pause();
    socket.write(RESPONSE, () => socket.destroy());
  });
}

/** Writes until the socket ends; returns what was read before, and how it ended. */
async function read(socket: Socket): Promise<string> {
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => void pieces.push(piece));
  let end = "no end";
  socket.on("end", () => (end = "ended"));
  socket.on("error", ({ code }: NodeJS.ErrnoException) => (end = code ?? ""));
  const more = (): void => {
    while (!socket.destroyed && socket.write(Buffer.alloc(100_000)));
  };
  socket.on("drain", more);
  more();
  await new Promise((resolve) => socket.once("close", resolve));
  return `${Buffer.concat(pieces).toString()}, ${end}`;
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

test("what a peer sent before it closed is read though a write failed, and then the reset is told", async () => {
  const server = createServer(closeUnread);
  const port = await listening(server);
  for (let at = 0; at < 10; at++) {
    assert.equal(await read(readPastBrokenWrites(connect(port, "127.0.0.1"))), `${RESPONSE}, ECONNRESET`);
  }
  server.close();
});

test("the same holds over TLS", async () => {
  const server = createTlsServer(credentials(CertificateAuthority.create()), closeUnread);
  const port = await listening(server);
  for (let at = 0; at < 10; at++) {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
    assert.equal(await read(readPastBrokenWrites(socket)), `${RESPONSE}, ECONNRESET`);
  }
  server.close();
});

test("a write that fails for another reason fails as before", async () => {
  const server = createServer((socket) => void socket.resume());
  const port = await listening(server);
  const socket = connect(port, "127.0.0.1");
  socket._write = (_chunk, _encoding, done) => done(Object.assign(new Error("no memory"), { code: "ENOBUFS" }));
  readPastBrokenWrites(socket).write("x");
  const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
  assert.deepEqual([error.code, socket.destroyed], ["ENOBUFS", true]);
  server.close();
});
