import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { Writable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import { connect as connectTls, createServer as createSecureServer } from "node:tls";
import { CertificateAuthority } from "@headworks/tls-authority";
import fc from "fast-check";
import { PooledWriter } from "./batched-writer.ts";
import { POOLED_BUFFER_BYTES } from "./buffer-pool.ts";
import { MAX_SHARED_SLICE_BYTES } from "./memory.ts";

const authority = CertificateAuthority.create();

/** This many writers in one turn are flushed in the last one's call. */
const CROWD = 16;

/** Completes each write at once or when released; reads its memory only then. */
class Receiver extends Writable {
  readonly taken: Buffer[] = [];
  readonly writes: Buffer[] = [];
  isLate = false;
  readonly #waiting: (() => void)[] = [];

  constructor() {
    super({ highWaterMark: 16_384 });
  }

  get text(): string {
    return Buffer.concat(this.taken).toString("latin1");
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes.push(chunk);
    const take = (): void => {
      this.taken.push(Buffer.from(chunk));
      done();
    };
    if (this.isLate) this.#waiting.push(take);
    else take();
  }

  /** Completes all pending writes. */
  take(): void {
    for (let take = this.#waiting.shift(); take !== undefined; take = this.#waiting.shift()) take();
  }
}

function put(writer: PooledWriter, text: string): void {
  const at = writer.reserve(text.length);
  writer.pooledBuffer.write(text, at, "latin1");
}

async function socketPair(isSecure: boolean): Promise<readonly [writing: Socket, reading: Socket]> {
  const leaf = authority.issueLeaf({ ip: ["127.0.0.1"] });
  const listener = isSecure ? createSecureServer({ key: leaf.keyPem, cert: leaf.chainPem }) : createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const target = { port: (listener.address() as AddressInfo).port, host: "127.0.0.1" };
  const writing = isSecure ? connectTls({ ...target, ca: authority.certificatePem }) : connect(target);
  const [reading] = (await once(listener, isSecure ? "secureConnection" : "connection")) as [Socket];
  if (writing.connecting) await once(writing, "connect");
  listener.close();
  return [writing, reading];
}

test("what is written to a pooled buffer in one turn leaves in order as one write at its end", async () => {
  const receiver = new Receiver();
  const writer = new PooledWriter(receiver);
  for (const text of ["a", "", "bc", "d".repeat(1000)]) put(writer, text);
  assert.equal(receiver.writes.length, 0);
  await turn();
  assert.equal(receiver.writes.length, 1);
  assert.equal(receiver.text, `abc${"d".repeat(1000)}`);
  put(writer, "next");
  await turn();
  assert.deepEqual([receiver.writes.length, writer.flushCount], [2, 2]);
});

test("a flush hands over at once, and the turn's end adds nothing to it", async () => {
  const receiver = new Receiver();
  const writer = new PooledWriter(receiver);
  put(writer, "now");
  writer.flush();
  assert.equal(receiver.text, "now");
  writer.flush();
  await turn();
  assert.deepEqual([receiver.writes.length, writer.flushCount], [1, 1]);
  put(writer, "later");
  await turn();
  assert.equal(receiver.text, "nowlater");
});

test("the offset of what was reserved holds for as long as nothing was handed over", () => {
  const receiver = new Receiver();
  const writer = new PooledWriter(receiver);
  put(writer, "head");
  const { flushCount } = writer;
  const at = writer.reserve(4);
  put(writer, "tail");
  assert.equal(writer.flushCount, flushCount);
  writer.pooledBuffer.write("body", at);
  writer.flush();
  assert.notEqual(writer.flushCount, flushCount);
  assert.equal(receiver.text, "headbodytail");
});

for (const [what, sizes] of [
  ["exactly a desk", [POOLED_BUFFER_BYTES]],
  ["a byte more than a desk in two parts", [POOLED_BUFFER_BYTES - 5, 6]],
  ["a desk twice", [POOLED_BUFFER_BYTES, POOLED_BUFFER_BYTES]],
  ["nothing on a full desk", [POOLED_BUFFER_BYTES, 0, 1]],
  ["ten desks in parts of a frame", Array.from({ length: 45 }, () => 16_393)],
] as const) {
  test(`${what} leaves whole and in order`, async () => {
    const receiver = new Receiver();
    const writer = new PooledWriter(receiver);
    const texts = sizes.map((size, at) => String.fromCharCode(97 + (at % 26)).repeat(size));
    for (const text of texts) put(writer, text);
    await turn();
    receiver.take();
    assert.ok(receiver.text === texts.join(""), `${receiver.text.length} of ${texts.join("").length} bytes`);
    for (const { length } of receiver.writes) assert.ok(length <= POOLED_BUFFER_BYTES);
  });
}

for (const count of [CROWD - 1, CROWD, CROWD + 1, 3 * CROWD]) {
  test(`of ${count} writers in one turn none has half of what it reserved taken along`, async () => {
    const receivers = Array.from({ length: count }, () => new Receiver());
    const writers = receivers.map((receiver) => new PooledWriter(receiver));
    // Reserved space is filled only after the call, as frames do.
    for (const [at, writer] of writers.entries()) {
      const place = writer.reserve(6);
      assert.deepEqual(receivers[at]?.writes, [], "nothing of it left before it was written");
      writer.pooledBuffer.write(`<${String(at).padStart(4, "0")}`, place);
      writer.pooledBuffer[place + 5] = 0x3e;
    }
    await turn();
    await turn();
    assert.deepEqual(
      receivers.map(({ text }) => text),
      receivers.map((_, at) => `<${String(at).padStart(4, "0")}>`),
    );
  });
}

test("the one that is flushed with a crowd while it writes on has it all, once and in order", async () => {
  const receiver = new Receiver();
  const writer = new PooledWriter(receiver);
  put(writer, "before ");
  for (let at = 1; at < CROWD; at += 1) put(new PooledWriter(new Receiver()), "x");
  assert.equal(receiver.text, "before ");
  put(writer, "behind");
  await turn();
  assert.equal(receiver.text, "before behind");
});

for (const [what, bytes] of [
  ["small", 100],
  ["as large as a strip", MAX_SHARED_SLICE_BYTES],
  ["larger than a strip", MAX_SHARED_SLICE_BYTES + 1],
  ["as large as a desk", POOLED_BUFFER_BYTES],
] as const) {
  test(`memory of a write that is under way is not written again, ${what} as it is`, () => {
    const slow = new Receiver();
    slow.isLate = true;
    const writer = new PooledWriter(slow);
    put(writer, "a".repeat(bytes));
    writer.flush();
    put(writer, "b".repeat(bytes));
    writer.flush();
    // Others overwrite free memory.
    for (let at = 0; at < 5; at += 1) {
      const other = new PooledWriter(new Receiver());
      put(other, "x".repeat(POOLED_BUFFER_BYTES));
      other.flush();
      put(other, "y".repeat(100));
      other.flush();
    }
    slow.take();
    slow.take();
    assert.ok(slow.text === "a".repeat(bytes) + "b".repeat(bytes));
  });
}

test("isFull follows the socket, for as long as it needs to drain", async () => {
  const slow = new Receiver();
  slow.isLate = true;
  const writer = new PooledWriter(slow);
  assert.equal(writer.isFull, false);
  put(writer, "x".repeat(20_000));
  assert.equal(writer.isFull, false);
  writer.flush();
  assert.equal(writer.isFull, true);
  const drained = once(slow, "drain");
  slow.take();
  await drained;
  assert.equal(writer.isFull, false);
});

for (const [what, end] of [
  ["destroyed", (receiver: Receiver): unknown => receiver.destroy()],
  ["ended", (receiver: Receiver): unknown => receiver.end()],
] as const) {
  test(`what is put down for a socket that was ${what} is dropped without an error`, async () => {
    const receiver = new Receiver();
    const errors: Error[] = [];
    receiver.on("error", (error: Error) => void errors.push(error));
    const writer = new PooledWriter(receiver);
    put(writer, "lost");
    end(receiver);
    await turn();
    for (let at = 0; at < 10; at += 1) put(writer, "x".repeat(50_000));
    writer.flush();
    await turn();
    assert.deepEqual(errors, []);
    assert.equal(receiver.text, "");
  });
}

test("any writes and flushes of several writers give each socket its own bytes, in order", async () => {
  const step = fc.record({
    who: fc.nat({ max: 19 }),
    bytes: fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: POOLED_BUFFER_BYTES })),
    behind: fc.constantFrom("go on", "go on", "flush", "turn", "take"),
  });
  const property = fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.subarray([0, 3, 5]), async (steps, late) => {
    const receivers = Array.from({ length: 20 }, () => new Receiver());
    for (const at of late) if (receivers[at] !== undefined) receivers[at].isLate = true;
    const writers = receivers.map((receiver) => new PooledWriter(receiver));
    const expected = receivers.map(() => "");
    for (const [at, { who, bytes, behind }] of steps.entries()) {
      const text = String.fromCharCode(33 + (at % 90)).repeat(bytes);
      const writer = writers[who];
      if (writer === undefined) continue;
      put(writer, text);
      expected[who] += text;
      if (behind === "flush") writer.flush();
      if (behind === "turn") await turn();
      if (behind === "take") receivers[who]?.take();
    }
    await turn();
    for (const receiver of receivers) while (receiver.writableLength > 0) receiver.take();
    for (const [who, { text }] of receivers.entries()) assert.ok(text === expected[who], `writer ${who}`);
  });
  await fc.assert(property, { numRuns: 60 });
});

for (const isSecure of [false, true]) {
  test(`a socket ${isSecure ? "of TLS" : "of the system"} whose peer is slow gets everything in order, whatever else is written meanwhile`, async (t) => {
    const [writing, reading] = await socketPair(isSecure);
    t.after(() => {
      writing.destroy();
      reading.destroy();
    });
    const writer = new PooledWriter(writing);
    reading.pause();
    const pieces: string[] = [];
    // The system buffers some megabytes, so writes continue for a while.
    for (let left = 100; left > 0; left -= writer.isFull ? 1 : 0) {
      const piece = String.fromCharCode(33 + (pieces.length % 90)).repeat(pieces.length % 3 === 0 ? 60_000 : 900);
      pieces.push(piece);
      put(writer, piece);
      writer.flush();
      const other = new PooledWriter(new Receiver());
      put(other, "?".repeat(POOLED_BUFFER_BYTES));
      other.flush();
      assert.ok(pieces.length < 5000, "the socket was never full");
    }
    const found: Buffer[] = [];
    reading.on("data", (chunk: Buffer) => void found.push(chunk));
    reading.resume();
    writing.end();
    await once(reading, "end");
    assert.ok(Buffer.concat(found).toString("latin1") === pieces.join(""));
  });
}
