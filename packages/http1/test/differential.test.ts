import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RequestHead, ResponseHead } from "../src/index.ts";
import { cutAt, nearResponses, nearRequests } from "./arbitrary-messages.ts";
import { ORACLE_METHODS, readWithOracle, type OracleMessage } from "./llhttp-oracle.ts";
import { bytes, readResponse, readRequests, type Recorded } from "./recording.ts";

const METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "PROPFIND", "M-SEARCH"];
const PROBE = "GET /probe HTTP/1.1\r\nHost: probe.test\r\n\r\n";
const BEYOND_ASCII = /[\x80-\xff]/g;
const BLANK_BEFORE_COLON = /^([^\s:]+)[ \t]+:/gm;
const RUNS = 6_000;
const places = fc.array(fc.nat(), { maxLength: 6 });

test("the oracle refuses what every parser must refuse, so that agreeing with it means something", () => {
  for (const input of [
    "GET / HTTP/1.1\nHost: a\n\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
  ]) {
    assert.notEqual(readWithOracle("request", [bytes(input)]).error, undefined);
  }
  assert(METHODS.every((method) => ORACLE_METHODS.includes(method)));
});

test("what the strict reader accepts, Node's parser accepts, with the same requests at the same bytes", () => {
  let accepted = 0;
  let withBody = 0;
  fc.assert(
    fc.property(nearRequests(METHODS), places, (input, cuts) => {
      const whole = readRequests([input]);
      assert.deepEqual(readRequests(cutAt(input, cuts)), whole, "cuts change nothing");
      const complete = whole.messages.filter(({ ended }) => ended);
      // Unknown methods are the one difference: a proxy forwards them, Node's parser refuses them.
      if (complete.length === 0 || !complete.every(({ head }) => ORACLE_METHODS.includes(head.method))) return;
      // Behind a CONNECT Node's parser hands over the bytes, and behind a close it reads none.
      const last = complete.findIndex(({ head }) => head.method === "CONNECT" || !head.keepAlive);
      const compared = last < 0 ? complete : complete.slice(0, last + 1);
      const taken = asciiTargets(input.toString("latin1", 0, whole.takenBytes), complete);
      const oracle = readWithOracle("request", [bytes(taken), bytes(last < 0 ? PROBE : "")]);
      assert.deepEqual(oracle.messages.slice(0, compared.length).map(describeOracle), compared.map(describeRequest));
      for (const [index, { head }] of compared.entries()) {
        if (head.keepAlive) assert.equal(oracle.messages[index]?.keepAlive, true, "the oracle keeps alive too");
      }
      if (last < 0) {
        assert.equal(oracle.error, undefined);
        assert.deepEqual(
          oracle.messages.slice(compared.length).map(({ target }) => target),
          ["/probe"],
        );
      }
      accepted += compared.length;
      withBody += compared.filter((message) => message.body !== "").length;
    }),
    { numRuns: RUNS },
  );
  assert(accepted > RUNS / 20 && withBody > RUNS / 200, `only ${accepted} accepted, ${withBody} with a body`);
});

/** Non-ASCII octets in a target, accepted by Node's parser only in lenient mode, are replaced by letters. */
function asciiTargets(text: string, messages: readonly Recorded<RequestHead>[]): string {
  let ascii = text;
  for (const { head } of messages) {
    const { method, target } = head;
    const line = `${method} ${target} `;
    ascii = ascii.replace(line, () => line.replaceAll(BEYOND_ASCII, "x"));
  }
  return ascii;
}

function describeRequest({ head, body, trailers }: Recorded<RequestHead>): unknown {
  const { method, version, fields } = head;
  const target = head.target.replaceAll(BEYOND_ASCII, "x");
  return { method, target, version, fields, body, trailers: trailers ?? [] };
}

function describeOracle({ method, target, version, fields, body, trailers }: OracleMessage): unknown {
  return { method, target, version, fields, body, trailers };
}

test("what the strict reader accepts as a response, Node's parser accepts, with the same body", () => {
  let accepted = 0;
  fc.assert(
    fc.property(nearResponses, places, (input, cuts) => {
      const whole = readResponse([input], { end: true });
      assert.deepEqual({ ...readResponse(cutAt(input, cuts), { end: true }), rest: "" }, { ...whole, rest: "" });
      const [message] = whole.messages;
      if (message?.ended !== true || whole.error !== undefined) return;
      const taken = input.toString("latin1", 0, input.length - whole.rest.length);
      const headEnd = taken.indexOf("\r\n\r\n");
      // A proxy removes white space before a colon (RFC 9112, 5.1); Node's parser refuses it.
      const head = taken.slice(0, headEnd).replaceAll(BLANK_BEFORE_COLON, "$1:");
      const trailers = message.trailers === undefined ? [] : taken.slice(headEnd).match(BLANK_BEFORE_COLON);
      if (trailers !== null && trailers.length > 0) return;
      const oracle = readWithOracle("response", [bytes(head + taken.slice(headEnd))], true);
      assert.equal(oracle.error, undefined);
      const [read] = oracle.messages;
      assert.deepEqual(
        [read?.status, read?.version, read?.fields, read?.body, read?.trailers, oracle.messages.length],
        [message.head.status, message.head.version, message.head.fields, message.body, message.trailers ?? [], 1],
      );
      accepted++;
    }),
    { numRuns: RUNS },
  );
  assert(accepted > RUNS / 20, `only ${accepted} accepted`);
});

test("blanks before the colons of a response change nothing but that its connection may end", () => {
  let read = 0;
  fc.assert(
    fc.property(nearResponses, fc.constantFrom(" ", "\t", " \t "), places, (input, blanks, cuts) => {
      const plain = readResponse([input], { end: true });
      const text = input.toString("latin1");
      const headEnd = text.indexOf("\r\n\r\n");
      if (plain.error !== undefined || headEnd < 0) return;
      const padded = text.slice(0, headEnd).replaceAll(/^([^\s:]+):/gm, `$1${blanks}:`) + text.slice(headEnd);
      for (const lenient of [false, true]) {
        const { messages, rest, error } = readResponse(cutAt(bytes(padded), cuts), { end: true, lenient });
        assert.equal(error, undefined);
        assert.deepEqual(messages.map(essence), plain.messages.map(essence));
        assert.equal(plain.rest.startsWith(rest), true);
        read += messages.length;
      }
    }),
    { numRuns: RUNS },
  );
  assert(read > RUNS / 20, `only ${read} read`);
});

function essence({ head, body, trailers, ended }: Recorded<ResponseHead>): unknown {
  const { version, status, reason, fields, framing, upgrade } = head;
  return { version, status, reason, fields, framing, upgrade, body, trailers, ended };
}

test("the lenient mode reads everything the strict mode reads, and exactly like it", () => {
  fc.assert(
    fc.property(nearResponses, (input) => {
      const strict = readResponse([input], { end: true });
      if (strict.error !== undefined) return;
      assert.deepEqual(readResponse([input], { end: true, lenient: true }), strict);
    }),
    { numRuns: RUNS },
  );
});

test("the lenient mode gives one verdict however a response is cut, and never stays open behind an oddity", () => {
  let odd = 0;
  fc.assert(
    fc.property(nearResponses, places, (input, cuts) => {
      const whole = readResponse([input], { end: true, lenient: true });
      assert.deepEqual(readResponse(cutAt(input, cuts), { end: true, lenient: true }), whole);
      const [message] = whole.messages;
      if (message !== undefined && message.head.oddities.length > 0) {
        odd++;
        assert.equal(message.head.keepAlive, false);
      }
    }),
    { numRuns: RUNS },
  );
  assert(odd > RUNS / 50, `only ${odd} odd answers`);
});

test("random bytes never make a reader throw, hang or take less than all", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), places, (raw, lenient, cuts) => {
      const pieces = cutAt(Buffer.from(raw), cuts);
      readRequests(pieces, { end: true });
      readResponse(pieces, { end: true, lenient });
    }),
    { numRuns: RUNS },
  );
});
