import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { Writable } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { connect as connectTls, createServer as createSecureServer } from "node:tls";
import { CertificateAuthority } from "@headworks/tls-authority";
import { BatchedWriter, type Flushable, scheduleFlush, turnMs } from "./batched-writer.ts";

const PIECE_BYTES = 16_384;

/** Completes each write at once, or when released. */
class Receiver extends Writable {
  readonly writes: Buffer[] = [];
  /** The content at the time it was taken. */
  received = "";
  encrypted = false;
  isLate = false;
  #waiting: (() => void) | undefined;

  constructor() {
    super({ highWaterMark: 1e9, decodeStrings: false });
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes.push(chunk);
    this.received += chunk.toString("latin1");
    if (this.isLate) this.#waiting = done;
    else done();
  }

  take(): void {
    this.#waiting?.();
  }
}

/** Writes a head and a piece of `letter`s. */
function response(receiver: Receiver, letter: string): Buffer {
  const writer = new BatchedWriter(receiver, true);
  writer.text(`head of ${letter};`);
  writer.bytes(Buffer.alloc(PIECE_BYTES, letter));
  writer.flush();
  const written = receiver.writes.at(-1);
  assert.ok(written !== undefined);
  return written;
}

function isSameMemory(one: Buffer, other: Buffer): boolean {
  return one.buffer === other.buffer && one.byteOffset === other.byteOffset;
}

test("a head and its piece are one write", () => {
  const written = response(new Receiver(), "a");
  assert.equal(written.toString("latin1"), `head of a;${"a".repeat(PIECE_BYTES)}`);
});

test("memory that the system took at once serves the next write, of whichever connection", () => {
  const first = response(new Receiver(), "a");
  assert.ok(isSameMemory(response(new Receiver(), "b"), first));
});

test("memory of a write that is still under way is not used again, nor that of what waits behind it", () => {
  const slow = new Receiver();
  slow.isLate = true;
  const first = response(slow, "a");
  const text = first.toString("latin1");
  const second = response(new Receiver(), "b");
  assert.ok(!isSameMemory(second, first));
  response(slow, "c");
  response(new Receiver(), "d");
  assert.equal(first.toString("latin1"), text);
  slow.take();
  assert.equal(slow.writes[1]?.toString("latin1"), `head of c;${"c".repeat(PIECE_BYTES)}`);
});

test("TLS looks at a write at once: its memory serves the next one, but not that of what waits behind it", () => {
  const secure = new Receiver();
  secure.encrypted = true;
  secure.isLate = true;
  const first = response(secure, "a");
  assert.ok(isSameMemory(response(new Receiver(), "b"), first));
  response(secure, "c");
  response(new Receiver(), "d");
  secure.take();
  const [a, c] = [`head of a;${"a".repeat(PIECE_BYTES)}`, `head of c;${"c".repeat(PIECE_BYTES)}`];
  assert.equal(secure.received, a + c);
});

test("bytes joined for TLS and queued after another write keep their memory", () => {
  const secure = new Receiver();
  secure.encrypted = true;
  secure.isLate = true;
  const writer = new BatchedWriter(secure, true);
  writer.text("head;");
  writer.bytes(Buffer.alloc(PIECE_BYTES, "a"));
  secure.write("between;");
  writer.flush();
  response(new Receiver(), "b");
  secure.take();
  assert.equal(secure.received, `between;head;${"a".repeat(PIECE_BYTES)}`);
});

test("what waits behind another write over TLS shares memory without touching each other", () => {
  const responses = Array.from({ length: 100 }, (_, at) => {
    const secure = new Receiver();
    secure.encrypted = true;
    secure.isLate = true;
    secure.write("first;");
    const text = String(at).repeat(900 + 30 * at);
    const writer = new BatchedWriter(secure, true);
    writer.text("head;");
    writer.bytes(Buffer.from(text));
    writer.flush();
    return { secure, text };
  });
  for (const { secure, text } of responses) {
    secure.take();
    secure.take();
    assert.equal(secure.received, `first;head;${text}`);
  }
  const memories = new Set(responses.map(({ secure }) => secure.writes[1]?.buffer));
  assert.ok(memories.size < responses.length, "memory is shared");
});

test("what is flushed soon leaves at the end of the turn, as one write", async () => {
  const receiver = new Receiver();
  const writer = new BatchedWriter(receiver);
  writer.text("a");
  assert.equal(writer.flushSoon(), true);
  writer.bytes(Buffer.from("b"));
  writer.flushSoon();
  assert.deepEqual(receiver.writes, []);
  await turn();
  assert.deepEqual(receiver.writes.map(String), ["ab"]);
});

test("what waits for the end of the turn goes before the end of the connection, and before larger pieces", () => {
  const receiver = new Receiver();
  const writer = new BatchedWriter(receiver);
  writer.text("head;");
  writer.flushSoon();
  writer.bytes(Buffer.alloc(PIECE_BYTES, "x"));
  writer.text("last");
  writer.flushSoon();
  writer.end();
  assert.equal(receiver.received, `head;${"x".repeat(PIECE_BYTES)}last`);
  assert.ok(receiver.writableEnded);
});

test("larger pieces, too, leave at the end of the turn, those of several connections each from memory of its own", async () => {
  const memory = Buffer.alloc(PIECE_BYTES);
  const receivers = ["a", "b", "c"].map((letter) => {
    const receiver = new Receiver();
    const writer = new BatchedWriter(receiver, true);
    writer.text(`head of ${letter};`);
    writer.bytes(memory.fill(letter));
    writer.text("end");
    writer.flushSoon();
    return { letter, receiver };
  });
  assert.ok(receivers.every(({ receiver }) => receiver.writes.length === 0));
  await turn();
  for (const { letter, receiver } of receivers) {
    const [piece, ...behind] = receiver.writes;
    assert.ok(piece !== undefined);
    assert.equal(piece.toString("latin1"), `head of ${letter};${letter.repeat(PIECE_BYTES)}`);
    assert.deepEqual(behind.map(String), ["end"]);
  }
  assert.equal(new Set(receivers.map(({ receiver }) => receiver.writes[0]?.buffer)).size, receivers.length);
});

test("a second larger piece in one turn goes behind the first, and one that is too large to be copied behind both", async () => {
  const receiver = new Receiver();
  const writer = new BatchedWriter(receiver);
  const whole = Buffer.alloc(200_000, "z");
  for (const letter of ["a", "b"]) writer.bytes(Buffer.alloc(PIECE_BYTES, letter), "4000\r\n", "\r\n");
  writer.bytes(whole);
  writer.text("end");
  writer.flushSoon();
  await turn();
  const chunk = (letter: string): string => `4000\r\n${letter.repeat(PIECE_BYTES)}\r\n`;
  assert.equal(receiver.received, `${chunk("a")}${chunk("b")}${"z".repeat(200_000)}end`);
  assert.ok(receiver.writes.includes(whole), "what is not overwritten is not copied");
});

test("a larger piece that waited for a connection that was destroyed is dropped, and its memory serves the next", async () => {
  const gone = new Receiver();
  const writer = new BatchedWriter(gone, true);
  writer.text("head");
  writer.bytes(Buffer.alloc(PIECE_BYTES, "x"));
  gone.destroy();
  await turn();
  assert.deepEqual(gone.writes, []);
  const one = response(new Receiver(), "a");
  assert.ok(isSameMemory(response(new Receiver(), "b"), one));
});

test("responses to a crowd of pipelined requests do not gather without a bound", () => {
  const receiver = new Receiver();
  const writer = new BatchedWriter(receiver);
  for (let round = 0; round < 1000; round += 1) {
    writer.text("x".repeat(100));
    writer.flushSoon();
  }
  assert.ok(receiver.writes.length > 0, "some were written before the turn ended");
});

test("what waited for a connection that was destroyed in the same turn is dropped without an error", async () => {
  const receiver = new Receiver();
  const writer = new BatchedWriter(receiver);
  writer.text("late");
  writer.flushSoon();
  receiver.destroy();
  await turn();
  assert.deepEqual(receiver.writes, []);
});

const authority = CertificateAuthority.create();

const leaf = authority.issueLeaf({ ip: ["127.0.0.1"] });

const SECURE = { key: leaf.keyPem, cert: leaf.chainPem };

/** A connection whose client reads at once, or only when released. */
class SlowLink {
  readonly socket: Socket;
  readonly writer: BatchedWriter;
  readonly sent = createHash("sha256");
  readonly #received = createHash("sha256");
  readonly #client: Socket;

  private constructor(client: Socket, socket: Socket) {
    this.#client = client;
    this.socket = socket;
    this.writer = new BatchedWriter(socket, true);
  }

  static async open(server: Server, isSecure: boolean, pace: "fast" | "slow"): Promise<SlowLink> {
    const accepted = once(server, isSecure ? "secureConnection" : "connection") as Promise<[Socket]>;
    const target = { port: (server.address() as AddressInfo).port, host: "127.0.0.1" };
    const client = isSecure ? connectTls({ ...target, ca: authority.certificatePem }) : connect(target);
    const line = new SlowLink(client, (await accepted)[0]);
    if (pace === "fast") line.#read();
    return line;
  }

  /** Ends the connection; returns whether the client received exactly what was sent. */
  async isIntact(): Promise<boolean> {
    const ended = once(this.#client, "end");
    if (!this.#client.readableFlowing) this.#read();
    this.writer.end();
    await ended;
    return this.#received.digest("hex") === this.sent.digest("hex");
  }

  #read(): void {
    this.#client.on("data", (bytes) => this.#received.update(bytes));
  }
}

for (const [isChunked, isSecure] of [
  [false, false],
  [true, false],
  [false, true],
  [true, true],
] as const) {
  const how = `${isChunked ? "in chunks" : "as they are"}, ${isSecure ? "with TLS" : "without TLS"}`;
  test(`pieces of all sizes in memory that is overwritten reach each of three readers unmixed, slow ones too, ${how}`, async () => {
    const server = (isSecure ? createSecureServer(SECURE) : createServer()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const lines: SlowLink[] = [];
    for (const pace of ["slow", "fast", "slow"] as const) {
      lines.push(await SlowLink.open(server, isSecure, pace));
    }
    const sizesBytes = [1, 8192, 8193, 16_384, 32_768, 49_152, 65_536];
    const largeBytes = [69_632, 131_072, 131_073];
    const memory = Buffer.alloc(131_073);
    for (let round = 0; round < 300; round += 1) {
      for (const [at, { writer, sent }] of lines.entries()) {
        const head = `round ${round} of ${at}\r\n`;
        // The write that fills a connection must be a joined one, so large pieces come last.
        const sizes = round < 280 ? sizesBytes : largeBytes;
        const piece = memory.subarray(0, sizes[(round + at) % sizes.length]);
        randomBytes(64).copy(piece.fill(round));
        sent.update(isChunked ? `${head}${piece.length.toString(16)}\r\n` : head).update(piece);
        if (isChunked) sent.update("\r\n");
        writer.text(head);
        if (isChunked) writer.bytes(piece, `${piece.length.toString(16)}\r\n`, "\r\n");
        else writer.bytes(piece);
        memory.fill(0);
        if ((round + at) % 3 === 0) writer.flush();
        else writer.flushSoon();
      }
      if (round % 5 === 0) await turn();
    }
    const waiting = lines.map(({ socket }) => socket.writableLength > 0);
    const intact = await Promise.all(lines.map(async (line) => await line.isIntact()));
    server.close();
    assert.deepEqual([waiting[0], waiting[2]], [true, true], "the slow ones are behind");
    assert.deepEqual(intact, [true, true, true]);
  });
}

/** Records its name in a log when flushed. */
class Noted implements Flushable {
  isWaiting = false;
  readonly #name: number;
  readonly #log: number[];

  constructor(name: number, log: number[]) {
    this.#name = name;
    this.#log = log;
  }

  flush(): void {
    this.#log.push(this.#name);
  }
}

function noted(count: number, log: number[]): Noted[] {
  return Array.from({ length: count }, (_, name) => new Noted(name, log));
}

test("writers are flushed in order at the end of the turn, none earlier", async () => {
  const log: number[] = [];
  for (const writer of noted(3, log)) scheduleFlush(writer);
  await Promise.resolve();
  assert.deepEqual(log, []);
  await turn();
  assert.deepEqual(log, [0, 1, 2]);
});

test("a writer scheduled twice in a turn is flushed once, and can be scheduled again in the next", async () => {
  const log: number[] = [];
  const [writer] = noted(1, log);
  assert.ok(writer !== undefined);
  scheduleFlush(writer);
  scheduleFlush(writer);
  await turn();
  assert.deepEqual(log, [0]);
  scheduleFlush(writer);
  await turn();
  assert.deepEqual(log, [0, 0]);
});

test("a crowd is not held until the end of a long turn: the sixteenth flushes all that wait", async () => {
  const log: number[] = [];
  const writers = noted(20, log);
  for (const writer of writers.slice(0, 15)) scheduleFlush(writer);
  assert.equal(log.length, 0);
  for (const writer of writers.slice(15)) scheduleFlush(writer);
  assert.equal(log.length, 16);
  await turn();
  assert.deepEqual(
    log,
    writers.map((_, name) => name),
  );
});

test("a writer scheduled during a flush is flushed in the next turn", async () => {
  const log: number[] = [];
  const [later] = noted(1, log);
  assert.ok(later !== undefined);
  const first: Flushable = { isWaiting: false, flush: () => scheduleFlush(later) };
  scheduleFlush(first);
  await turn();
  await turn();
  assert.deepEqual(log, [0]);
});

test("the clock of turns stands still within one, however long it takes, and is right at the beginning of the next", async () => {
  await turn();
  const before = performance.now();
  const first = turnMs();
  assert.ok(first >= before && first <= performance.now());
  while (performance.now() < first + 5);
  assert.equal(turnMs(), first);
  await Promise.resolve();
  assert.equal(turnMs(), first);
  await turn();
  const next = performance.now();
  assert.ok(turnMs() >= next, "a moment that is over");
});

test("the clock of turns is right however many wait for the end of the turn when it is asked", async () => {
  for (let others = 0; others < 40; others += 1) {
    await turn();
    for (let at = 0; at < others; at += 1) scheduleFlush({ isWaiting: false, flush: () => undefined });
    const before = performance.now();
    const first = turnMs();
    assert.ok(first >= before && first <= performance.now(), `${first} with ${others} others`);
    await turn();
    const next = performance.now();
    assert.ok(turnMs() >= next, `a moment that is over, with ${others} others`);
  }
});
