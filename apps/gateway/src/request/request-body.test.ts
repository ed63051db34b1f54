import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CHUNKED, type Framing, lengthFraming, NO_BODY } from "@headworks/http1";
import type { UpstreamExchange } from "#upstream/upstream-exchange.ts";
import type { BodyCheck, ClientHandler } from "./context.ts";
import { type ClientBody, CheckedBody, UpstreamBody } from "./request-body.ts";

interface Seen {
  body: string;
  calls: string[];
}

function recorder(): ClientHandler & Seen {
  return {
    body: "",
    calls: [],
    onBodyData(piece) {
      this.body += piece.toString("latin1");
      this.calls.push("data");
    },
    onBodyTrailers() {
      this.calls.push("trailers");
    },
    onBodyEnd() {
      this.calls.push("end");
    },
    onBodyBatch() {
      this.calls.push("batch");
    },
    onClientDrain() {
      this.calls.push("drain");
    },
    onClientGone() {
      this.calls.push("gone");
    },
    onRefused(refusal) {
      this.calls.push(refusal.code);
    },
  };
}

/** Accepts one body only. */
function only(expected: string): BodyCheck {
  let seen = "";
  return {
    onData: (piece) => (seen += piece.toString("latin1")),
    onEnd: () => (seen === expected ? undefined : { code: "unauthorized" }),
  };
}

function pass(framing: Framing, pieces: readonly string[], expected: string): Seen {
  const seen = recorder();
  const handler = CheckedBody.around(seen, only(expected), framing);
  const memory = Buffer.alloc(64);
  for (const piece of pieces) {
    // Like a connection, which reads every piece into the same memory.
    memory.write(piece, "latin1");
    handler.onBodyData(memory.subarray(0, piece.length));
    handler.onBodyBatch();
  }
  handler.onBodyEnd();
  return seen;
}

test("a valid body arrives whole, however it is split and framed; the end of an invalid one is withheld", () => {
  const pieces = fc.array(fc.string({ minLength: 1, maxLength: 9, unit: "binary-ascii" }), {
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(pieces, fc.boolean(), fc.boolean(), (cut, isLength, isGood) => {
      const whole = cut.join("");
      const framing = isLength ? lengthFraming(whole.length) : CHUNKED;
      const { body, calls } = pass(framing, cut, isGood ? whole : `${whole}!`);
      if (isGood) {
        assert.equal(body, whole);
        assert.equal(calls.at(-1), "end");
      } else {
        assert.equal(body, isLength ? whole.slice(0, -1) : whole);
        assert.equal(calls.includes("end"), false);
        assert.equal(calls.at(-1), "unauthorized");
      }
    }),
  );
});

test("only the last byte of a body of known length is held back until the check", () => {
  const seen = recorder();
  const handler = CheckedBody.around(seen, only("abcdef"), lengthFraming(6));
  handler.onBodyData(Buffer.from("abc"));
  assert.equal(seen.body, "abc");
  handler.onBodyData(Buffer.from("def"));
  assert.equal(seen.body, "abcde");
  handler.onBodyEnd();
  assert.equal(seen.body, "abcdef");
});

test("without a check, or without a body, there is no wrapper", () => {
  const seen = recorder();
  assert.equal(CheckedBody.around(seen, undefined, lengthFraming(6)), seen);
  assert.equal(CheckedBody.around(seen, only(""), NO_BODY), seen);
});

test("other client events are passed on", () => {
  const seen = recorder();
  const handler = CheckedBody.around(seen, only(""), CHUNKED);
  handler.onBodyTrailers([]);
  handler.onBodyBatch();
  handler.onClientDrain();
  handler.onRefused({ code: "request_timeout" });
  handler.onClientGone();
  assert.deepEqual(seen.calls, ["trailers", "batch", "drain", "request_timeout", "gone"]);
});

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
  const source: ClientBody = {
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
