import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { frameMessage } from "@headworks/grpc-framing";
import { waitUntil } from "@headworks/testkit";
import type { MessageVerdict } from "#exchange/messages.ts";
import { type GrpcDecider, GrpcMessages } from "./grpc-messages.ts";

const PASS: MessageVerdict = { kind: "pass" };

interface RigOptions {
  readonly decide?: GrpcDecider["decide"];
  readonly gates?: () => boolean;
  readonly encoding?: string;
  readonly limitBytes?: number;
  /** Backpressure after each piece. */
  readonly blocks?: boolean;
}

/** Messages in front of a receiver that keeps what it gets. */
class Rig {
  readonly sent: Buffer[] = [];
  readonly asked: Buffer[] = [];
  readonly notes: string[] = [];
  readonly failures: unknown[] = [];
  moves = 0;
  readonly messages: GrpcMessages;

  constructor({ decide = async () => PASS, gates = () => true, encoding = "identity", ...options }: RigOptions = {}) {
    this.messages = new GrpcMessages({
      to: {
        take: (piece) => {
          this.sent.push(piece);
          return options.blocks !== true;
        },
        moved: () => void (this.moves += 1),
        failed: (error) => void this.failures.push(error),
      },
      decider: {
        gates,
        decide: (message, over) => {
          this.asked.push(message);
          return decide(message, over);
        },
      },
      encoding,
      limitBytes: options.limitBytes ?? 100_000,
      onNote: (words) => void this.notes.push(words),
    });
  }

  get bytes(): Buffer {
    return Buffer.concat(this.sent);
  }

  async settled(): Promise<void> {
    await waitUntil(() => this.messages.isEmpty);
    assert.deepEqual(this.failures, []);
  }
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
const frames = (...messages: string[]): Buffer =>
  Buffer.concat(messages.map((each) => frameMessage(Buffer.from(each))));

test("a frame is one message wherever it is split", async () => {
  const whole = frames("one", "", "three");
  const rigs: Rig[] = [];
  for (let first = 0; first <= whole.length; first += 1) {
    for (let second = first; second <= whole.length; second += 1) {
      const rig = new Rig();
      rig.messages.add(whole.subarray(0, first));
      rig.messages.add(whole.subarray(first, second));
      rig.messages.add(whole.subarray(second));
      rig.messages.end();
      rigs.push(rig);
    }
  }
  await Promise.all(rigs.map((rig) => rig.settled()));
  for (const rig of rigs) {
    assert.deepEqual(rig.asked.map(text), ["one", "", "three"]);
    assert.deepEqual(rig.bytes, whole);
  }
});

test("any bytes in any split leave unchanged when nothing changes them", async () => {
  const piece = fc.oneof(
    { weight: 4, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => frameMessage(bytes)) },
    fc.uint8Array({ maxLength: 40 }).map((bytes) => frameMessage(gzipSync(bytes), 1)),
    fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 8 }),
      fc.array(fc.nat({ max: 400 }), { maxLength: 20 }),
      fc.boolean(),
      async (pieces, sizes, blocks) => {
        const whole = Buffer.concat(pieces);
        const rig = new Rig({ limitBytes: 200, encoding: "gzip", blocks });
        let at = 0;
        for (const size of sizes) {
          rig.messages.add(whole.subarray(at, at + size));
          at += size;
        }
        rig.messages.add(whole.subarray(at));
        rig.messages.end();
        await waitUntil(() => {
          rig.messages.resume();
          return rig.messages.isEmpty;
        });
        assert.deepEqual(rig.failures, []);
        assert.deepEqual(rig.bytes, whole);
      },
    ),
  );
});

test("messages are changed and dropped in order, one decision at a time", async () => {
  const verdicts: PromiseWithResolvers<MessageVerdict>[] = [];
  const rig = new Rig({
    decide: () => {
      const verdict = Promise.withResolvers<MessageVerdict>();
      verdicts.push(verdict);
      return verdict.promise;
    },
  });
  rig.messages.add(frames("one", "two", "three"));
  rig.messages.end();
  await waitUntil(() => verdicts.length === 1);
  assert.deepEqual([rig.messages.isDeciding, rig.messages.isEmpty, rig.sent.length], [true, false, 0]);
  verdicts[0]?.resolve({ kind: "replace", payload: Buffer.from("first") });
  await waitUntil(() => verdicts.length === 2);
  assert.deepEqual(rig.asked.map(text), ["one", "two"]);
  verdicts[1]?.resolve({ kind: "drop" });
  await waitUntil(() => verdicts.length === 3);
  verdicts[2]?.resolve(PASS);
  await rig.settled();
  assert.deepEqual(rig.bytes, frames("first", "three"));
  assert.deepEqual([rig.messages.isDeciding, rig.moves], [false, 3]);
});

test("the receiver's backpressure stops decisions, and a full queue stops the source", async () => {
  const rig = new Rig({ blocks: true });
  rig.messages.add(frames("one", "x".repeat(70_000)));
  await waitUntil(() => rig.sent.length === 1);
  assert.deepEqual([rig.asked.length, rig.messages.isLow, rig.messages.isEmpty], [1, false, false]);
  rig.messages.resume();
  await waitUntil(() => rig.sent.length === 2);
  assert.deepEqual([rig.messages.isLow, rig.messages.isEmpty], [true, true]);
});

test("a message that is not complete does not stop the source, however long it is", () => {
  const rig = new Rig();
  rig.messages.add(frameMessage(Buffer.alloc(90_000)).subarray(0, 80_000));
  assert.deepEqual([rig.messages.isLow, rig.messages.isEmpty, rig.sent.length], [true, false, 0]);
  rig.messages.close();
});

test("compressed messages are decided about without compression, and keep their bytes unless they are changed", async () => {
  const large = Buffer.alloc(90_000, "a");
  for (const [encoding, compress] of [
    ["gzip", gzipSync],
    ["deflate", deflateSync],
  ] as const) {
    const rig = new Rig({
      encoding,
      decide: async (message) =>
        text(message) === "two" ? { kind: "replace", payload: Buffer.from("second") } : { kind: "pass" },
    });
    const [one, two, three] = [Buffer.from("one"), Buffer.from("two"), large].map((each) =>
      frameMessage(compress(each), 1),
    ) as [Buffer, Buffer, Buffer];
    rig.messages.add(Buffer.concat([one, two, three]));
    await rig.settled();
    assert.deepEqual(rig.asked.map(text), ["one", "two", text(large)]);
    assert.deepEqual(rig.bytes, Buffer.concat([one, frames("second"), three]));
    assert.deepEqual(rig.notes, []);
  }
});

const UNDECIDED: readonly (readonly [what: string, bytes: Buffer, encoding: string, note: RegExp])[] = [
  ["an unknown compression", frameMessage(Buffer.from("??"), 1), "zstd", /in zstd are forwarded unchanged/],
  ["a compression that was not named", frameMessage(Buffer.from("??"), 1), "identity", /without grpc-encoding/],
  ["damaged compression", frameMessage(Buffer.from("??"), 1), "gzip", /no valid gzip/],
  ["a size over the limit", frameMessage(Buffer.alloc(1001)), "gzip", /over 1000 bytes/],
  ["a decompressed size over the limit", frameMessage(gzipSync(Buffer.alloc(1001)), 1), "gzip", /over 1000 bytes/],
];
for (const [what, bytes, encoding, note] of UNDECIDED) {
  test(`a message with ${what} passes unchanged with a note, in its place`, async () => {
    const rig = new Rig({ encoding, limitBytes: 1000 });
    const whole = Buffer.concat([frames("before"), bytes, frames("after")]);
    for (const octet of whole) rig.messages.add(Buffer.from([octet]));
    await rig.settled();
    assert.deepEqual(rig.bytes, whole);
    assert.deepEqual(rig.asked.map(text), ["before", "after"]);
    assert.equal(rig.notes.length, 1);
    assert.match(rig.notes[0] ?? "", note);
  });
}

test("bytes that are no gRPC pass unchanged, and half a frame passes at the end", async () => {
  const foreign = new Rig();
  foreign.messages.add(Buffer.concat([frames("before"), Buffer.from("HTTP is something else"), frames("after")]));
  foreign.messages.add(Buffer.from("more"));
  await foreign.settled();
  assert.deepEqual(
    foreign.bytes,
    Buffer.concat([frames("before"), Buffer.from("HTTP is something else"), frames("after"), Buffer.from("more")]),
  );
  assert.deepEqual([foreign.asked.length, foreign.notes.length], [1, 1]);
  const half = new Rig();
  half.messages.add(frames("whole", "half").subarray(0, 17));
  await waitUntil(() => half.sent.length === 1);
  assert.equal(half.messages.isEmpty, false);
  half.messages.end();
  await half.settled();
  assert.deepEqual(half.bytes, frames("whole", "half").subarray(0, 17));
});

test("without a script that decides, messages pass at once", () => {
  const rig = new Rig({ gates: () => false });
  rig.messages.add(frames("one", "two"));
  assert.deepEqual([rig.bytes, rig.asked, rig.moves], [frames("one", "two"), [], 0]);
});

test("after the end of the exchange nothing is sent, and the decision is told", async () => {
  const verdict = Promise.withResolvers<MessageVerdict>();
  const over = Promise.withResolvers<AbortSignal>();
  const rig = new Rig({
    decide: (_message, signal) => {
      over.resolve(signal);
      return verdict.promise;
    },
  });
  rig.messages.add(frames("one", "two"));
  const signal = await over.promise;
  rig.messages.close();
  assert.deepEqual([signal.aborted, rig.messages.isDeciding, rig.messages.isEmpty], [true, false, true]);
  verdict.resolve(PASS);
  await verdict.promise;
  await new Promise((resolve) => setImmediate(resolve));
  rig.messages.add(frames("three"));
  rig.messages.resume();
  assert.deepEqual([rig.sent, rig.asked.length, rig.moves], [[], 1, 0]);
});

test("a decision that fails is a defect of the exchange", async () => {
  const rig = new Rig({ decide: () => Promise.reject(new Error("broken")) });
  rig.messages.add(frames("one"));
  await waitUntil(() => rig.failures.length === 1);
  assert.equal((rig.failures[0] as Error).message, "broken");
});
