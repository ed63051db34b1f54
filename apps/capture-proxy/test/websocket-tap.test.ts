import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { closePayload, frameBytes, MessageDeflater } from "@headworks/websocket";
import type { Failure } from "#exchange/failure.ts";
import type { MessageControl, MessageHandler, MessageVerdict, TappedFrame, TappedMessage } from "#exchange/messages.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine } from "./engine-harness.ts";

/** A connection through the engine, both ends of it raw, and what the handler of its messages saw. */
interface Connection extends AsyncDisposable {
  readonly client: Socket;
  readonly origin: Socket;
  readonly engine: Engine;
  /** What came out at each end. */
  readonly atOrigin: () => Buffer;
  readonly atClient: () => Buffer;
  readonly frames: TappedFrame[];
  readonly broken: string[];
  readonly closed: (Failure | undefined)[];
  readonly control: MessageControl;
}

interface Options {
  readonly decide?: (message: TappedMessage) => MessageVerdict | Promise<MessageVerdict>;
  readonly gates?: () => boolean;
  readonly extensions?: string;
  readonly maxBodyBytes?: number;
}

async function openConnection(options: Options = {}): Promise<Connection> {
  const frames: TappedFrame[] = [];
  const broken: string[] = [];
  const closed: (Failure | undefined)[] = [];
  let control: MessageControl | undefined;
  const handler: MessageHandler = {
    gates: options.gates ?? (() => options.decide !== undefined),
    decide: (message) => options.decide?.(message) ?? { kind: "pass" },
    frame: (frame) => void frames.push(frame),
    broken: (direction, reason) => void broken.push(`${direction}: ${reason}`),
    closed: (failure) => void closed.push(failure),
  };
  const engine = await startEngine({
    ...(options.maxBodyBytes === undefined ? {} : { policy: { maxBodyBytes: options.maxBodyBytes } }),
    interceptors: [
      {
        name: "traffic",
        onMessages: (_exchange, given) => {
          control = given;
          return handler;
        },
      },
    ],
  });
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect({ port: engine.port, host: "127.0.0.1", allowHalfOpen: true });
  client.write(
    `GET http://127.0.0.1:${port}/chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  const [origin] = (await once(server, "connection")) as [Socket];
  await once(origin, "data");
  const extensions = options.extensions === undefined ? "" : `Sec-WebSocket-Extensions: ${options.extensions}\r\n`;
  origin.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${extensions}\r\n`);
  await once(client, "data");
  const out = { origin: [] as Buffer[], client: [] as Buffer[] };
  origin.on("data", (piece: Buffer) => out.origin.push(piece));
  client.on("data", (piece: Buffer) => out.client.push(piece));
  for (const socket of [origin, client]) socket.on("error", () => undefined);
  await waitUntil(() => control !== undefined);
  assert.ok(control);
  return {
    client,
    origin,
    engine,
    atOrigin: () => Buffer.concat(out.origin),
    atClient: () => Buffer.concat(out.client),
    frames,
    broken,
    closed,
    control,
    [Symbol.asyncDispose]: async () => {
      client.destroy();
      origin.destroy();
      server.close();
      await engine.stop();
    },
  };
}

const MASK = 0x1a2b3c4d;
const text = (payload: string, change: object = {}): Buffer =>
  frameBytes({ opcode: 1, payload: Buffer.from(payload), ...change });
const masked = (payload: string, change: object = {}): Buffer => text(payload, { mask: MASK, ...change });

/** The readable payloads of unmasked frames that came out, with their opcodes. */
const seen = (frames: readonly TappedFrame[]): string[] =>
  frames.map(
    ({ direction, opcode, payload, effect }) =>
      `${direction} ${opcode} ${payload.toString()}${effect === undefined ? "" : ` ${effect}`}`,
  );

async function arrives(read: () => Buffer, expected: Buffer): Promise<void> {
  await waitUntil(() => read().length >= expected.length);
  assert.deepEqual(read(), expected);
}

test("bytes reach both sides unchanged, however they are cut, and every frame is seen", async () => {
  await using connection = await openConnection();
  const sent = Buffer.concat([
    masked("hello"),
    masked("frag", { isFinal: false }),
    frameBytes({ opcode: 9, payload: Buffer.from("p"), mask: 7 }),
    frameBytes({ opcode: 0, payload: Buffer.from("ment"), mask: 8 }),
    frameBytes({ opcode: 2, payload: Buffer.alloc(70_000, 9), mask: 9 }),
  ]);
  for (let at = 0; at < sent.length;) {
    const size = at < 60 ? 1 : 9999;
    connection.client.write(sent.subarray(at, at + size));
    at += size;
    if (size === 1) await new Promise(setImmediate);
  }
  const received = Buffer.concat([text("a"), frameBytes({ opcode: 10, payload: Buffer.from("p") }), text("ü")]);
  connection.origin.write(received);
  await arrives(connection.atOrigin, sent);
  await arrives(connection.atClient, received);
  await waitUntil(() => connection.frames.length === 8);
  const ways = connection.frames.filter(({ direction }) => direction === "send");
  assert.deepEqual(
    ways.map(({ opcode, isFinal, sizeBytes, mask, fragments }) => [opcode, isFinal, sizeBytes, mask, fragments]),
    [
      [1, true, 5, MASK, undefined],
      [1, false, 4, MASK, undefined],
      [9, true, 1, 7, undefined],
      [0, true, 4, 8, 2],
      [2, true, 70_000, 9, undefined],
    ],
  );
  assert.equal(
    ways.reduce((sum, { wireBytes }) => sum + wireBytes, 0),
    sent.length,
  );
  assert.deepEqual(seen(connection.frames.filter(({ direction }) => direction === "receive")), [
    "receive 1 a",
    "receive 10 p",
    "receive 1 ü",
  ]);
  connection.client.end();
  connection.origin.end();
  const [exchange] = await connection.engine.waitFor(1);
  assert.equal(exchange?.requestBody.sizeBytes, sent.length);
  assert.equal(exchange?.requestBody.state, "not_stored");
  assert.deepEqual(connection.closed, [undefined]);
});

test("a stream that breaks the protocol goes on as untouched bytes, and is told once", async () => {
  await using connection = await openConnection();
  const bytes = Buffer.concat([masked("good"), Buffer.from("8300", "hex"), Buffer.from("anything at all")]);
  connection.client.write(bytes);
  await arrives(connection.atOrigin, bytes);
  connection.client.write("more");
  await arrives(connection.atOrigin, Buffer.concat([bytes, Buffer.from("more")]));
  assert.deepEqual(connection.broken, ["send: The opcode 3 is reserved (5.2)"]);
  assert.deepEqual(seen(connection.frames), ["send 1 good"]);
  connection.origin.write(text("still read"));
  await waitUntil(() => connection.frames.length === 2);
  assert.equal(connection.control.inject("send", 1, Buffer.from("x")), false);
});

test("messages are replaced, left out and passed on as a rule says, with what they were", async () => {
  await using connection = await openConnection({
    decide: ({ payload }) => {
      const message = payload.toString();
      const censored = message.replace("secret", "******");
      if (censored !== message) return { kind: "replace", payload: Buffer.from(censored) };
      return { kind: message.includes("spam") ? "drop" : "pass" };
    },
  });
  connection.origin.write(
    Buffer.concat([
      text("plain"),
      text("a secret"),
      text("spam"),
      text("sec", { isFinal: false }),
      frameBytes({ opcode: 9, payload: Buffer.alloc(0) }),
      frameBytes({ opcode: 0, payload: Buffer.from("ret") }),
      text("end"),
    ]),
  );
  const expected = [
    text("plain"),
    text("a ******"),
    frameBytes({ opcode: 9, payload: Buffer.alloc(0) }),
    text("******"),
    text("end"),
  ];
  await arrives(connection.atClient, Buffer.concat(expected));
  assert.deepEqual(seen(connection.frames), [
    "receive 1 plain",
    "receive 1 a ****** modified",
    "receive 1 spam dropped",
    "receive 9 ",
    "receive 1 ****** modified",
    "receive 1 end",
  ]);
  assert.deepEqual(
    connection.frames.map(({ original }) => original?.toString()),
    [undefined, "a secret", undefined, undefined, "secret", undefined],
  );
  connection.client.write(masked("my secret"));
  await waitUntil(() => connection.frames.length === 7);
  await waitUntil(() => connection.atOrigin().length > 0);
  const [head, length] = connection.atOrigin();
  assert.deepEqual([head, length], [0x81, 0x80 | 9], "what a client sends stays masked");
});

test("a message that waits holds up what is behind it, in its direction only, and the end of the sender too", async () => {
  const decision = Promise.withResolvers<MessageVerdict>();
  await using connection = await openConnection({
    decide: ({ payload }) => (payload.toString() === "wait" ? decision.promise : { kind: "pass" }),
  });
  connection.client.write(Buffer.concat([masked("wait"), masked("behind")]));
  connection.client.end(masked("last"));
  connection.origin.write(text("other way"));
  await arrives(connection.atClient, text("other way"));
  assert.equal(connection.atOrigin().length, 0);
  let hasEnded = false;
  connection.origin.on("end", () => (hasEnded = true));
  decision.resolve({ kind: "pass" });
  await arrives(connection.atOrigin, Buffer.concat([masked("wait"), masked("behind"), masked("last")]));
  await waitUntil(() => hasEnded);
});

test("a sender that says more than fits behind a waiting message is not read until the decision", async () => {
  const decision = Promise.withResolvers<MessageVerdict>();
  await using connection = await openConnection({
    decide: ({ payload }) => (payload.toString() === "wait" ? decision.promise : { kind: "pass" }),
  });
  const flood = frameBytes({ opcode: 2, payload: Buffer.alloc(60_000) });
  connection.origin.write(text("wait"));
  let written = 0;
  while (connection.origin.write(flood) || written < 64) written += 1;
  const expected = Buffer.concat([text("wait"), ...Array.from({ length: written + 1 }, () => flood)]);
  await waitUntil(() => connection.origin.writableLength > 0);
  decision.resolve({ kind: "pass" });
  await arrives(connection.atClient, expected);
});

test("with context takeover, what follows a changed message is passed on so that it can be read", async () => {
  const deflater = new MessageDeflater(true, 15);
  const compressed = (message: string): Buffer =>
    frameBytes({ opcode: 1, payload: deflater.deflate(Buffer.from(message)), reserved: 4 });
  await using connection = await openConnection({
    extensions: "permessage-deflate",
    decide: ({ payload }) => (payload.toString().includes("drop") ? { kind: "drop" } : { kind: "pass" }),
  });
  const first = compressed("the first message of all");
  connection.origin.write(
    Buffer.concat([
      first,
      compressed("drop the second message of all"),
      compressed("drop the second message of all, not this: no"),
      compressed("the third message of all"),
      text("plain"),
    ]),
  );
  const expected = Buffer.concat([first, text("the third message of all"), text("plain")]);
  await arrives(connection.atClient, expected);
  assert.deepEqual(
    connection.frames.map(({ effect, isCompressed }) => [effect, isCompressed]),
    [
      [undefined, true],
      ["dropped", true],
      ["dropped", true],
      [undefined, true],
      [undefined, false],
    ],
  );
});

test("compressed messages pass as they came and are kept readable", async () => {
  await using connection = await openConnection({ extensions: "permessage-deflate; client_no_context_takeover" });
  const deflater = new MessageDeflater(false, 15);
  const bytes = Buffer.concat(
    [1, 2, 3].map((index) =>
      frameBytes({ opcode: 1, payload: deflater.deflate(Buffer.from(`message ${index}`)), reserved: 4, mask: index }),
    ),
  );
  connection.client.write(bytes);
  await arrives(connection.atOrigin, bytes);
  assert.deepEqual(seen(connection.frames), ["send 1 message 1", "send 1 message 2", "send 1 message 3"]);
});

test("an extension that is not known is told, and nothing of its stream is changed", async () => {
  await using connection = await openConnection({ extensions: "x-other; a=1", decide: () => ({ kind: "drop" }) });
  const bytes = frameBytes({ opcode: 1, payload: Buffer.from([1, 2]), reserved: 7 });
  connection.origin.write(bytes);
  await arrives(connection.atClient, bytes);
  assert.match(connection.broken[0] ?? "", /x-other; a=1 is not known/);
});

test("a message of our own waits for the end of the one under way", async () => {
  await using connection = await openConnection();
  const whole = masked("0123456789");
  connection.client.write(whole.subarray(0, 9));
  await arrives(connection.atOrigin, whole.subarray(0, 9));
  assert.equal(connection.control.inject("send", 1, Buffer.from("ours")), true);
  assert.equal(connection.control.inject("receive", 2, Buffer.from("to the client")), true);
  await arrives(connection.atClient, frameBytes({ opcode: 2, payload: Buffer.from("to the client") }));
  connection.client.write(Buffer.concat([whole.subarray(9), masked("next")]));
  await waitUntil(() => connection.frames.length === 4);
  assert.deepEqual(seen(connection.frames), [
    "receive 2 to the client injected",
    "send 1 0123456789",
    "send 1 ours injected",
    "send 1 next",
  ]);
  await waitUntil(() => connection.atOrigin().length === whole.length + 10 + masked("next").length);
  assert.deepEqual(connection.atOrigin().subarray(-10), masked("next"));
});

test("between the fragments of a message nothing of our own is sent", async () => {
  await using connection = await openConnection();
  connection.origin.write(text("one ", { isFinal: false }));
  await arrives(connection.atClient, text("one ", { isFinal: false }));
  connection.control.inject("receive", 1, Buffer.from("ours"));
  connection.origin.write(frameBytes({ opcode: 0, payload: Buffer.from("two") }));
  connection.origin.write(text("x"));
  await arrives(
    connection.atClient,
    Buffer.concat([
      text("one ", { isFinal: false }),
      frameBytes({ opcode: 0, payload: Buffer.from("two") }),
      text("ours"),
      text("x"),
    ]),
  );
});

test("our goodbye goes to both sides, nothing they say afterwards passes, and the connection ends when both answered", async () => {
  await using connection = await openConnection();
  assert.equal(connection.control.close(4001, "enough"), true);
  assert.equal(connection.control.close(4001, "enough"), false);
  await arrives(connection.atClient, frameBytes({ opcode: 8, payload: closePayload(4001, "enough") }));
  await waitUntil(() => connection.atOrigin().length === 2 + 4 + 8);
  connection.client.write(
    Buffer.concat([masked("too late"), frameBytes({ opcode: 8, payload: closePayload(4001, ""), mask: 1 })]),
  );
  connection.origin.write(
    Buffer.concat([text("too late"), frameBytes({ opcode: 8, payload: closePayload(4001, "") })]),
  );
  const [exchange] = await connection.engine.waitFor(1);
  assert.deepEqual(exchange?.state, { step: "completed" });
  assert.equal(connection.atOrigin().length, 2 + 4 + 8);
  assert.deepEqual(seen(connection.frames.filter(({ opcode }) => opcode === 1)), [
    "send 1 too late dropped",
    "receive 1 too late dropped",
  ]);
  assert.equal(connection.control.inject("send", 1, Buffer.from("x")), false);
});

test("our close frame does not wait for an undecided message", async () => {
  const asked = Promise.withResolvers<void>();
  await using connection = await openConnection({
    decide: ({ direction }) => {
      if (direction === "receive") return { kind: "pass" };
      asked.resolve();
      return new Promise<MessageVerdict>(() => undefined);
    },
  });
  const goodbye = { opcode: 8, payload: closePayload(1000, "") };
  connection.client.write(Buffer.concat([masked("wait"), frameBytes({ ...goodbye, mask: 1 })]));
  connection.origin.write(frameBytes(goodbye));
  await asked.promise;
  connection.control.close(1001, "");
  const [exchange] = await connection.engine.waitFor(1);
  assert.deepEqual(exchange?.state, { step: "completed" });
  assert.ok(seen(connection.frames).includes("send 1 wait dropped"));
});

test("a message larger than what is kept passes as it came although a rule would decide", async () => {
  await using connection = await openConnection({ decide: () => ({ kind: "drop" }), maxBodyBytes: 1000 });
  const large = text("x".repeat(200_000));
  connection.origin.write(Buffer.concat([text("small"), large, text("small again")]));
  await arrives(connection.atClient, large);
  await waitUntil(() => connection.frames.length === 3);
  assert.deepEqual(
    connection.frames.map(({ effect, payload, sizeBytes }) => [effect, payload.length, sizeBytes]),
    [
      ["dropped", 5, 5],
      [undefined, 1000, 200_000],
      ["dropped", 11, 11],
    ],
  );
});

test("a reset while a message waits ends the connection", async () => {
  await using connection = await openConnection({ decide: () => new Promise<MessageVerdict>(() => undefined) });
  connection.client.write(masked("wait"));
  await new Promise(setImmediate);
  connection.client.resetAndDestroy();
  await connection.engine.waitFor(1);
  assert.equal(connection.closed.length, 1);
});
