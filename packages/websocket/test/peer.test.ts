import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { WebSocketServer } from "ws";
import { frameBytes, MessageDeflater, MessageInflater, readDeflate } from "../src/index.ts";
import type { DeflateParameters } from "../src/index.ts";
import { readAll, SERVER } from "./reading.ts";

/** A server of another implementation that says everything again, and our own frames towards it. */
async function openEcho(offer: string): Promise<{
  readonly deflate: DeflateParameters | undefined;
  /** Sends bytes and gives what came back once that is so many bytes of payload. */
  readonly exchange: (bytes: Buffer, messages: number) => Promise<ReturnType<typeof readAll>>;
  readonly close: () => Promise<void>;
}> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: { threshold: 0 } });
  server.on("connection", (peer) => {
    peer.on("message", (data, isBinary) => peer.send(data, { binary: isBinary }));
  });
  await once(server, "listening");
  const socket: Socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write(
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
      `Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n${offer === "" ? "" : `Sec-WebSocket-Extensions: ${offer}\r\n`}\r\n`,
  );
  const [head] = (await once(socket, "data")) as [Buffer];
  const value = /sec-websocket-extensions: (.*)\r\n/iu.exec(head.toString())?.[1];
  const { deflate } = readDeflate(value === undefined ? [] : [value]);
  const reading = { ...SERVER, allowedReserved: deflate === undefined ? 0 : 4 };
  const inflater = deflate === undefined ? undefined : new MessageInflater(!deflate.serverNoContextTakeover, 1_000_000);
  return {
    deflate,
    exchange: async (bytes, messages) => {
      const pieces: Buffer[] = [];
      socket.write(bytes);
      for (;;) {
        const [piece] = (await once(socket, "data")) as [Buffer];
        pieces.push(piece);
        const plain = readAll(pieces, reading);
        if (plain.violation === undefined && plain.frames.length < messages) continue;
        return readAll(pieces, reading, { inflater, keptBytes: 1_000_000 });
      }
    },
    close: async () => {
      socket.destroy();
      for (const client of server.clients) client.terminate();
      server.close();
      await once(server, "close");
    },
  };
}

test("another implementation reads what is written, in every class of length", async () => {
  const echo = await openEcho("");
  const payloads = [0, 1, 125, 126, 65_535, 65_536].map((length) => Buffer.alloc(length, length));
  const bytes = Buffer.concat(payloads.map((payload) => frameBytes({ opcode: 2, payload, mask: 0xa5c3_0f1e })));
  const { read, violation } = await echo.exchange(bytes, payloads.length);
  assert.equal(violation, undefined);
  assert.deepEqual(
    read.map(({ payload }) => payload),
    payloads,
  );
  await echo.close();
});

test("compressed messages go both ways between this and another implementation, with every parameter", async () => {
  const offers = [
    "permessage-deflate",
    "permessage-deflate; server_no_context_takeover",
    "permessage-deflate; client_no_context_takeover",
    "permessage-deflate; client_max_window_bits=9",
    "permessage-deflate; server_max_window_bits=9; client_max_window_bits",
  ];
  for (const offer of offers) {
    const echo = await openEcho(offer);
    const { deflate } = echo;
    assert.ok(deflate, offer);
    const deflater = new MessageDeflater(!deflate.clientNoContextTakeover, deflate.clientMaxWindowBits);
    const texts = Array.from(
      { length: 20 },
      (_, index) => `{"price": ${index}, "note": "${"again ".repeat(index * 9)}"}`,
    );
    const bytes = texts.map((text) =>
      frameBytes({ opcode: 1, payload: deflater.deflate(Buffer.from(text)), reserved: 4, mask: 0x01020304 }),
    );
    const { read, violation } = await echo.exchange(Buffer.concat(bytes), texts.length);
    assert.equal(violation, undefined, offer);
    assert.deepEqual(
      read.map(({ payload, problem }) => problem ?? payload.toString()),
      texts,
      offer,
    );
    await echo.close();
  }
});
