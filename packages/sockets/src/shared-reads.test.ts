import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { keptBytes, shareReadBuffer, ownBytes } from "./shared-reads.ts";

async function acceptedPair(
  server: Server = createServer({ allowHalfOpen: true, pauseOnConnect: true }),
): Promise<readonly [accepted: Socket, client: Socket, server: Server]> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
  const [accepted] = (await once(server, "connection")) as [Socket];
  return [accepted, client, server];
}

/** Resolves once `text` was received. */
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

test("lent reads lie in the same memory, until they are not lent any more", async () => {
  const [accepted, client, server] = await acceptedPair();
  const stopSharing = shareReadBuffer(accepted);
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
  assert.deepEqual([ownBytes(owned), keptBytes(owned)], [owned, owned]);
  assert.equal(owned.buffer.byteLength, 5, "small pieces hold on to nothing else");
  const large = ownBytes(await read("x".repeat(2000)));
  const waiting = keptBytes(await read("y".repeat(2000)));
  await read("other");
  assert.deepEqual([large.toString(), waiting.toString()], ["x".repeat(2000), "y".repeat(2000)]);
  assert.equal(waiting.buffer.byteLength, 2000, "what waits holds on to nothing else");
  stopSharing();
  const kept = await read("third");
  await read("fourth");
  assert.equal(kept.toString(), "third");
  client.destroy();
  accepted.destroy();
  server.close();
});

test("a paused socket whose reads are lent keeps what comes, up to its high-water mark, and notices a reset", async () => {
  const [accepted, client, server] = await acceptedPair();
  shareReadBuffer(accepted);
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
  shareReadBuffer(stream)();
  assert.deepEqual(Reflect.ownKeys(stream), names);
});
