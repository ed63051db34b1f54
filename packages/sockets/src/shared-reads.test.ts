import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { SharedBytes, shareReadBuffer } from "./shared-reads.ts";

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
function collector(): { readonly take: (bytes: SharedBytes) => void; readonly until: (text: string) => Promise<void> } {
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

test("shared reads lie in the same memory until sharing ends", async () => {
  const [accepted, client, server] = await acceptedPair();
  let received = (_: SharedBytes): void => undefined;
  const receive = (chunk: SharedBytes): void => received(chunk);
  const stopSharing = shareReadBuffer(accepted, receive);
  accepted.on("data", receive);
  const read = async (text: string): Promise<SharedBytes> => {
    client.write(text);
    const chunk = await new Promise<SharedBytes>((resolve) => {
      received = resolve;
    });
    assert.equal(chunk.toString(), text);
    return chunk;
  };
  accepted.resume();
  const shared = await read("first");
  const owned = SharedBytes.copy(shared);
  await read("other");
  assert.deepEqual([shared.toString(), owned.toString()], ["other", "first"]);
  assert.deepEqual([SharedBytes.copy(owned), SharedBytes.copyAlone(owned)], [owned, owned]);
  assert.equal(owned.buffer.byteLength, 5, "small pieces hold on to nothing else");
  const large = SharedBytes.copy(await read("x".repeat(2000)));
  const waiting = SharedBytes.copyAlone(await read("y".repeat(2000)));
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

test("keeping shared bytes without a copy does not compile", () => {
  const shared: SharedBytes = Buffer.from("own bytes are accepted");
  // @ts-expect-error: shared bytes are no Buffer
  const kept: Buffer = shared;
  // @ts-expect-error: nor is a part of them
  const piece: Buffer = shared.subarray(1);
  assert.deepEqual([SharedBytes.copy(shared), SharedBytes.copyAlone(shared)], [kept, kept]);
  assert.deepEqual(SharedBytes.concat(shared, piece).toString(), "own bytes are acceptedwn bytes are accepted");
});

test("a paused socket with shared reads keeps received bytes, up to its high-water mark, and notices a reset", async () => {
  const [accepted, client, server] = await acceptedPair();
  const { take, until } = collector();
  shareReadBuffer(accepted, take);
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

test("streams without a system handle are not changed by sharing", () => {
  const stream = new PassThrough();
  const names = Reflect.ownKeys(stream);
  shareReadBuffer(stream, () => undefined)();
  assert.deepEqual(Reflect.ownKeys(stream), names);
});
