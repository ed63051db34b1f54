import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { waitUntil, websocketFields } from "@headworks/testkit";
import { frameBytes } from "@headworks/websocket";
import { WebSocketServer } from "ws";
import type { TappedFrame } from "#exchange/messages.ts";
import { clientOf, http2Engine, originCa } from "./http2-rig.ts";

test("messages of a WebSocket on a stream of HTTP/2 are read, and changed by rules", async () => {
  const leaf = originCa.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });
  const server = createServer({ key: leaf.keyPem, cert: leaf.chainPem }, (_request, response) => response.end("hello"));
  const webSockets = new WebSocketServer({ server });
  webSockets.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const frames: TappedFrame[] = [];
  await using proxy = await http2Engine({
    rules: {
      onMessages: () => ({
        gates: () => true,
        decide: ({ payload }) => ({ kind: "replace", payload: Buffer.from(`${payload.toString()}!`) }),
        frame: (frame) => void frames.push(frame),
        broken: () => undefined,
        closed: () => undefined,
      }),
    },
  });
  await using client = await clientOf("2", proxy, port);
  await client.fetch();
  assert.ok(client.session);
  const stream = client.session.request(websocketFields("https", `localhost:${port}`, "/"), { endStream: false });
  stream.on("error", () => undefined);
  await once(stream, "response");
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => void pieces.push(piece));
  stream.write(frameBytes({ opcode: 1, payload: Buffer.from("hi"), mask: 7 }));
  const expected = frameBytes({ opcode: 1, payload: Buffer.from("hi!!") });
  await waitUntil(() => Buffer.concat(pieces).length >= expected.length);
  assert.deepEqual(Buffer.concat(pieces), expected);
  assert.deepEqual(
    frames.map(({ direction, effect, payload, original }) => [
      direction,
      effect,
      payload.toString(),
      original?.toString(),
    ]),
    [
      ["send", "modified", "hi!", "hi"],
      ["receive", "modified", "hi!!", "hi!"],
    ],
  );
  stream.destroy();
  for (const peer of webSockets.clients) peer.terminate();
  server.closeAllConnections();
  server.close();
});
