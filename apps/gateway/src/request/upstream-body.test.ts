import assert from "node:assert/strict";
import { test } from "node:test";
import type { UpstreamExchange } from "#upstream/upstream-exchange.ts";
import fc from "fast-check";
import { UpstreamBody, type BodySource } from "./upstream-body.ts";

function fakeExchange(): UpstreamExchange & { readonly sent: string[]; isFull: boolean } {
  const sent: string[] = [];
  return {
    sent,
    isFull: false,
    send: () => undefined,
    sendData: (piece) => void sent.push(piece.toString("latin1")),
    sendEnd: (trailers) => void sent.push(`end ${trailers?.join("=") ?? ""}`),
    flush() {
      return !this.isFull;
    },
    hold: () => undefined,
    release: () => undefined,
    abandon: () => undefined,
    takeOver: () => {
      throw new Error("not here");
    },
  };
}

function rig(maxKeptBytes: number, limitBytes = 1000) {
  const calls: string[] = [];
  const source: BodySource = {
    readBody: () => void calls.push("read"),
    pauseBody: () => void calls.push("pause"),
    resumeBody: () => void calls.push("resume"),
  };
  const body = new UpstreamBody(source, { limitBytes, maxKeptBytes });
  // Like a connection, which reads every piece into the same memory.
  const memory = Buffer.alloc(64);
  const data = (text: string): boolean => {
    memory.write(text, "latin1");
    return body.data(memory.subarray(0, text.length));
  };
  return { body, calls, data };
}

test("retries: the next attempt gets the bytes sent so far, then the rest, trailers last", () => {
  const { body, calls, data } = rig(100);
  const [first, second] = [fakeExchange(), fakeExchange()];
  body.attach(first);
  data("one ");
  data("two ");
  body.detach();
  assert.deepEqual(calls, ["read", "pause"], "between attempts the client is paused");
  body.attach(second);
  assert.deepEqual(calls, ["read", "pause", "resume"]);
  data("three");
  body.trailers(["x", "1"]);
  body.end();
  assert.deepEqual(first.sent, ["one ", "two "]);
  assert.deepEqual(second.sent, ["one ", "two ", "three", "end x=1"]);
  const third = fakeExchange();
  body.detach();
  body.attach(third);
  assert.deepEqual(third.sent, second.sent);
  assert.equal(calls.length, 3, "a complete body needs no further reads");
});

test("retries: a body beyond the kept size is still sent but cannot be repeated", () => {
  const { body, data } = rig(5);
  const only = fakeExchange();
  body.attach(only);
  data("12345");
  assert.equal(body.canRepeat, true);
  data("6");
  assert.deepEqual([body.canRepeat, only.sent], [false, ["12345", "6"]]);
});

test("retries: an unread body can be repeated although nothing is kept", () => {
  const { body, data } = rig(0);
  assert.equal(body.canRepeat, true);
  body.attach(fakeExchange());
  data("1");
  assert.equal(body.canRepeat, false);
});

test("a full endpoint pauses the client until it drains", () => {
  const { body, calls, data } = rig(100);
  const slow = fakeExchange();
  body.attach(slow);
  slow.isFull = true;
  data("1");
  body.batch();
  body.drained();
  assert.deepEqual(calls, ["read", "pause", "resume"]);
  body.detach();
  body.attach(slow);
  assert.deepEqual(calls.slice(3), ["pause"], "the kept bytes filled it already");
});

test("a body beyond the limit is detected with the excess piece, which is not sent", () => {
  const { body, data } = rig(0, 3);
  const only = fakeExchange();
  body.attach(only);
  assert.deepEqual([data("123"), data("4"), only.sent], [true, false, ["123"]]);
});

test("retries at any time: while the body can be repeated, every connection gets a prefix and the last one the whole", () => {
  const step = fc.oneof(fc.string({ minLength: 1, maxLength: 9, unit: "binary-ascii" }), fc.constant(null));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), fc.integer({ min: 1, max: 60 }), (steps, maxKeptBytes) => {
      const { body, data } = rig(maxKeptBytes);
      const exchanges = [fakeExchange()];
      body.attach(exchanges[0] as UpstreamExchange);
      let whole = "";
      for (const each of steps) {
        if (each !== null) {
          whole += each;
          data(each);
        } else if (body.canRepeat) {
          body.detach();
          const next = fakeExchange();
          exchanges.push(next);
          body.attach(next);
        }
      }
      for (const { sent } of exchanges) assert.ok(whole.startsWith(sent.join("")));
      assert.equal(exchanges.at(-1)?.sent.join(""), whole);
      assert.equal(body.canRepeat, whole.length <= maxKeptBytes);
    }),
  );
});
