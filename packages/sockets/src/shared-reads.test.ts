import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { acceptedWithSharedReads, lendReads, ownBytes } from "./shared-reads.ts";

async function acceptedPair(
  server: Server = createServer({ allowHalfOpen: true, pauseOnConnect: true }),
): Promise<readonly [accepted: Socket, client: Socket, server: Server]> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
  const [accepted] = (await once(server, "connection")) as [Socket];
  return [accepted, client, server];
}

/** Resolves with what came when it is `text`. */
function collector(): { readonly take: (bytes: Buffer) => void; readonly until: (text: string) => Promise<void> } {
  let came = "";
  let check = (): void => undefined;
  return {
    take: (bytes) => {
      came += bytes.toString("latin1");
      check();
    },
    until: async (text) =>
      await new Promise<void>((resolve) => {
        check = () => {
          if (came === text) resolve();
        };
        check();
      }),
  };
}

test("an accepted connection goes on with shared reads: bytes, holding back, both ends", async () => {
  const [accepted, client, server] = await acceptedPair();
  const { take, until } = collector();
  const shared = acceptedWithSharedReads(accepted, take);
  assert.ok(shared);
  client.write("abc");
  await until("abc");
  shared.pause();
  client.write("def");
  shared.write("answer");
  const [answer] = (await once(client, "data")) as [Buffer];
  assert.equal(answer.toString(), "answer");
  shared.resume();
  await until("abcdef");
  client.end("last");
  await once(shared, "end");
  await until("abcdeflast");
  const closed = Promise.all([once(shared, "close"), once(client, "close")]);
  shared.end("goodbye");
  const [goodbye] = (await once(client, "data")) as [Buffer];
  assert.equal(goodbye.toString(), "goodbye");
  await closed;
  server.close();
  await once(server, "close");
});

test("what was read before, and from inside that read, is where it was: the rest comes by shared reads", async () => {
  const [accepted, client, server] = await acceptedPair();
  const { take, until } = collector();
  const shared = Promise.withResolvers<Socket | undefined>();
  accepted.once("data", (first: Buffer) => {
    take(first);
    shared.resolve(acceptedWithSharedReads(accepted, take));
  });
  accepted.resume();
  client.write("first");
  const socket = await shared.promise;
  assert.ok(socket);
  assert.deepEqual([socket.remotePort, socket.localPort], [client.localPort, client.remotePort]);
  client.write("second");
  await until("firstsecond");
  socket.resetAndDestroy();
  const [error] = (await once(client, "error")) as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNRESET");
  server.close();
});

test("a socket that is spent says nothing and is not counted; the connection is not ended with it", async () => {
  const [accepted, client, server] = await acceptedPair();
  accepted.on("close", () => assert.fail("it is spent"));
  const shared = acceptedWithSharedReads(accepted, () => undefined);
  assert.ok(shared);
  server.close();
  await once(server, "close");
  shared.write("still here");
  const [said] = (await once(client, "data")) as [Buffer];
  assert.equal(said.toString(), "still here");
  shared.destroy();
  client.destroy();
});

test("a socket in which bytes wait, or that is gone, stays as it is", async () => {
  const [accepted, client, server] = await acceptedPair();
  accepted.unshift(Buffer.from("waits"));
  assert.equal(
    acceptedWithSharedReads(accepted, () => undefined),
    undefined,
  );
  accepted.resume();
  const [waits] = (await once(accepted, "data")) as [Buffer];
  assert.equal(waits.toString(), "waits");
  accepted.destroy();
  assert.equal(
    acceptedWithSharedReads(accepted, () => undefined),
    undefined,
  );
  client.destroy();
  server.close();
});

test("lent reads lie in the same memory, until they are not lent any more", async () => {
  const [accepted, client, server] = await acceptedPair();
  const endLending = lendReads(accepted);
  const read = async (text: string): Promise<Buffer> => {
    client.write(text);
    const [chunk] = (await once(accepted, "data")) as [Buffer];
    assert.equal(chunk.toString(), text);
    return chunk;
  };
  accepted.resume();
  const lent = await read("first");
  const owned = ownBytes(lent);
  await read("other");
  assert.deepEqual([lent.toString(), owned.toString()], ["other", "first"]);
  assert.equal(ownBytes(owned), owned);
  endLending();
  const kept = await read("third");
  await read("fourth");
  assert.equal(kept.toString(), "third");
  client.destroy();
  accepted.destroy();
  server.close();
});

test("a paused socket whose reads are lent keeps what comes, up to its high-water mark, and notices a reset", async () => {
  const [accepted, client, server] = await acceptedPair();
  lendReads(accepted);
  const { take, until } = collector();
  accepted.on("data", take);
  accepted.resume();
  client.write("abc");
  await until("abc");
  accepted.pause();
  client.write("def");
  await waitUntil(() => accepted.readableLength === 3);
  accepted.resume();
  client.write("ghi");
  await until("abcdefghi");
  accepted.pause();
  client.resetAndDestroy();
  const [error] = (await once(accepted, "error")) as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNRESET");
  server.close();
});

test("streams that are no sockets of the system are not changed by lending", () => {
  const stream = new PassThrough();
  const names = Reflect.ownKeys(stream);
  lendReads(stream)();
  assert.deepEqual(Reflect.ownKeys(stream), names);
});
