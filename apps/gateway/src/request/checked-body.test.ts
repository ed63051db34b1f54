import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNKED, lengthFraming, NO_BODY, type Framing } from "@headworks/http1";
import fc from "fast-check";
import { CheckedBody } from "./proxied-request.ts";
import type { ClientHandler } from "./client-stream.ts";
import type { BodyCheck } from "./phases.ts";

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
