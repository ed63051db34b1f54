import assert from "node:assert/strict";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { connect as connectTls, TLSSocket } from "node:tls";
import { test, type TestContext } from "node:test";
import { credentials } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { pattern } from "../test/raw-peer.ts";
import { ASK, both, OK, type Tested } from "../test/session-rig.ts";
import { within } from "../test/within.ts";
import { CANCEL, CONNECT_ERROR, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR } from "./codes.ts";
import type { Http2Stream } from "./stream.ts";
import { StreamSocket } from "./stream-socket.ts";

type Options = ConstructorParameters<typeof StreamSocket>[1];

interface Ends {
  readonly client: StreamSocket;
  readonly server: StreamSocket;
  readonly clientStream: Http2Stream;
  readonly serverStream: Http2Stream;
  readonly sessions: readonly [client: Tested, server: Tested];
}

/** Two sockets over one stream, which is gone behind the test. */
async function ends(context: TestContext, options: Options = {}): Promise<Ends> {
  const { client, server } = await both();
  context.after(async () => {
    for (const { session, socket } of [client, server]) {
      session.destroy();
      socket.destroy();
    }
    await Promise.all([client.end(), server.end()]);
  });
  const accepted = Promise.withResolvers<readonly [StreamSocket, Http2Stream]>();
  server.onStream = ({ stream }) => {
    stream.sendSection(OK, false);
    accepted.resolve([new StreamSocket(stream, options), stream]);
  };
  const clientStream = client.session.request(ASK, false);
  const clientSocket = new StreamSocket(clientStream, options);
  const [serverSocket, serverStream] = await within(accepted.promise, () => "no stream came");
  return { client: clientSocket, server: serverSocket, clientStream, serverStream, sessions: [client, server] };
}

/** By its events: a loop over a stream destroys it behind its end, and the other side may still be wanted. */
async function all(socket: Readable): Promise<Buffer> {
  const found: Buffer[] = [];
  socket.on("data", (piece: Buffer) => void found.push(piece));
  await once(socket, "end");
  return Buffer.concat(found);
}

async function happens(socket: StreamSocket, event: string): Promise<unknown> {
  return await within(once(socket, event), () => `"${event}" did not happen`);
}

/** Notes what a socket says of its end. */
function noted(socket: StreamSocket): string[] {
  const events: string[] = [];
  for (const event of ["end", "finish", "close", "error"]) socket.on(event, () => void events.push(event));
  return events;
}

for (const side of ["client", "server"] as const) {
  test(`RFC 8441, 5: when the ${side} ends its side, the other one still sends, and both close behind the second end`, async (t) => {
    const sockets = await ends(t);
    const other = sockets[side === "client" ? "server" : "client"];
    const own = sockets[side];
    const [ownEvents, otherEvents] = [noted(own), noted(other)];
    own.end("bye");
    assert.equal((await all(other)).toString(), "bye");
    assert.equal(other.writable, true);
    const response = all(own);
    other.write("still ");
    other.end("here");
    assert.equal((await response).toString(), "still here");
    if (!own.closed) await happens(own, "close");
    if (!other.closed) await happens(other, "close");
    assert.deepEqual(ownEvents, ["finish", "end", "close"]);
    assert.deepEqual(otherEvents, ["end", "finish", "close"]);
    assert.deepEqual([sockets.clientStream.closeCode, sockets.serverStream.closeCode], [NO_ERROR, NO_ERROR]);
  });
}

test("5 MB go each way at once, through readers that are slow", async (t) => {
  const { client, server } = await ends(t);
  const [up, down] = [pattern(5_000_000, 1), pattern(5_000_000, 2)];
  const slowly = (into: Buffer[]): Writable =>
    new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        into.push(chunk);
        setImmediate(done);
      },
    });
  const [atServer, atClient]: [Buffer[], Buffer[]] = [[], []];
  await within(
    Promise.all([
      pipeline(Readable.from([up.subarray(0, 3_000_000), up.subarray(3_000_000)]), client),
      pipeline(Readable.from([down]), server),
      pipeline(server, slowly(atServer)),
      pipeline(client, slowly(atClient)),
    ]),
    () => "not all of it came over",
  );
  assert.ok(Buffer.concat(atServer).equals(up));
  assert.ok(Buffer.concat(atClient).equals(down));
});

test("5.2: a writer stops while the peer does not read, and continues when it does", async (t) => {
  const { client, clientStream, server } = await ends(t);
  const bytes = 2_000_000;
  let written = 0;
  const piece = pattern(10_000);
  while (written < bytes && client.write(piece)) written += piece.length;
  assert.ok(written < bytes, "nothing stopped the writer");
  assert.equal(client.writableNeedDrain, true);
  const rest = bytes - written - piece.length;
  client.end(Buffer.alloc(rest));
  assert.ok(clientStream.waitingBytes > 0);
  assert.equal((await all(server)).length, bytes);
});

test("nothing is delivered before reading starts, and then nothing is missing", async (t) => {
  const { client, server, serverStream } = await ends(t);
  client.end(pattern(300_000));
  while (!serverStream.isHeld) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(server.readableLength <= 131_072, `${server.readableLength} bytes were taken unasked`);
  assert.ok((await all(server)).equals(pattern(300_000)));
});

test("destroySoon() sends what was written and the end first, then closes", async (t) => {
  const { client, server } = await ends(t);
  const body = pattern(1_000_000);
  const events = noted(client);
  client.write(body);
  client.destroySoon();
  client.destroySoon();
  assert.equal(client.destroyed, false);
  assert.ok((await all(server)).equals(body));
  if (!client.closed) await happens(client, "close");
  assert.deepEqual(events, ["finish", "close"]);
  client.destroySoon();
});

test("destroySoon() behind an end that was sent closes at once", async (t) => {
  const { client, server } = await ends(t);
  client.end();
  await happens(client, "finish");
  client.destroySoon();
  assert.equal(client.destroyed, true);
  assert.equal((await all(server)).length, 0);
});

for (const [what, options, code] of [
  ["CANCEL", {}, CANCEL],
  ["the code it was given", { resetCode: CONNECT_ERROR }, CONNECT_ERROR],
  ["its code where resets are errors", { resetsAreErrors: true, resetCode: CONNECT_ERROR }, CONNECT_ERROR],
] as const) {
  test(`8.5: resetAndDestroy() says ${what}, and is no error at this end`, async (t) => {
    const { client, server, serverStream } = await ends(t, options);
    const [own, other] = [noted(client), noted(server)];
    server.resume();
    client.resetAndDestroy();
    if (!client.closed) await happens(client, "close");
    if (!server.closed) await once(server, "close").catch(() => undefined);
    assert.deepEqual(own, ["close"]);
    assert.equal(serverStream.closeCode, code);
    const isError = "resetsAreErrors" in options;
    assert.deepEqual(other, isError ? ["error", "close"] : ["close"]);
  });
}

for (const [side, other] of [
  ["client", "server"],
  ["server", "client"],
] as const) {
  test(`8.5: HEADERS of a ${side} in a tunnel are an error of its stream`, async (t) => {
    const sockets = await ends(t);
    const events = noted(sockets[other]);
    sockets[other].resume();
    sockets[side].resume();
    sockets[side].write("x");
    sockets[`${side}Stream`].sendSection(["x", "y"], true);
    if (!sockets[side].closed) await happens(sockets[side], "close");
    assert.equal(sockets[`${side}Stream`].closeCode, PROTOCOL_ERROR);
    assert.equal(sockets[`${other}Stream`].problem, "HEADERS in a tunnel");
    assert.deepEqual(events, ["close"]);
    assert.ok(sockets.sessions.every(({ session }) => !session.isFinished));
  });
}

for (const code of [NO_ERROR, CANCEL, INTERNAL_ERROR]) {
  for (const resetsAreErrors of [false, true]) {
    const what = `a reset of the peer's with ${code} ${resetsAreErrors ? "is an error" : "only closes"}`;
    test(`${what}, where resets ${resetsAreErrors ? "are" : "are no"} errors`, async (t) => {
      const { client, server, serverStream } = await ends(t, { resetsAreErrors });
      server.on("error", () => undefined);
      const events = noted(client);
      client.resume();
      client.write("x");
      serverStream.reset(code);
      if (!client.closed) await once(client, "close").catch(() => undefined);
      assert.deepEqual(events, resetsAreErrors ? ["error", "close"] : ["close"]);
      assert.equal(server.destroyed, true);
    });
  }
}

test("a connection that is gone closes both sides, and is no end", async (t) => {
  const { client, server, sessions } = await ends(t);
  const events = [noted(client), noted(server)];
  client.resume();
  server.resume();
  client.write("x");
  sessions[0].socket.destroy();
  sessions[1].socket.destroy();
  if (!client.closed) await happens(client, "close");
  if (!server.closed) await happens(server, "close");
  assert.deepEqual(events, [["close"], ["close"]]);
});

test("a writer learns that the connection is gone behind the peer's end, too", async (t) => {
  const { client, server, sessions } = await ends(t);
  client.end();
  assert.equal((await all(server)).length, 0);
  server.write(pattern(1000));
  sessions[0].socket.destroy();
  sessions[1].socket.destroy();
  if (!server.closed) await happens(server, "close");
  assert.equal(server.destroyed, true);
});

test("what came before a connection was gone behind the peer's end can still be read", async (t) => {
  const sockets = await ends(t);
  const { client, server } = sockets;
  client.end(pattern(20_000));
  await happens(server, "readable");
  const { serverStream } = sockets;
  while (!serverStream.hasReceivedEnd) await new Promise((resolve) => setImmediate(resolve));
  sockets.sessions[1].socket.destroy();
  await sockets.sessions[1].end();
  assert.ok((await all(server)).equals(pattern(20_000)));
});

test("destroy() in the middle resets the stream with CANCEL, and behind both ends says nothing", async (t) => {
  const { client, server, serverStream } = await ends(t);
  server.resume();
  client.write("x");
  client.destroy();
  await happens(server, "close");
  assert.equal(serverStream.closeCode, CANCEL);
  const next = await ends(t);
  next.client.end();
  next.server.end();
  await Promise.all([all(next.client), all(next.server)]);
  next.client.destroy();
  assert.equal(next.clientStream.closeCode, NO_ERROR);
});

test("TLS goes through it, both ways, and ends as it should", async (t) => {
  const { client, server } = await ends(t);
  const { cert, key } = credentials(CertificateAuthority.create());
  const secureServer = new TLSSocket(server, { isServer: true, cert, key });
  const secureClient = connectTls({ socket: client, servername: "localhost", rejectUnauthorized: false });
  const body = pattern(1_000_000);
  secureServer.pipe(secureServer);
  const response = all(secureClient);
  secureClient.end(body);
  assert.ok((await within(response, () => "the answer did not end")).equals(body));
});
