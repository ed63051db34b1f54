import assert from "node:assert/strict";
import { test } from "node:test";
import { heapGrowthBytes } from "@headworks/testkit";
import fc from "fast-check";
import { bytes, readResponse, readRequests } from "../test/recording.ts";
import {
  CHUNK_END,
  chunkPrefix,
  Http1Error,
  LAST_CHUNK,
  lastChunkWithTrailers,
  requestHeadText,
  responseHeadText,
} from "./index.ts";

const token = fc.string({ unit: fc.constantFrom(..."abcXYZ019-_!~".split("")), minLength: 1, maxLength: 10 });
const value = fc
  .string({ unit: fc.constantFrom(...'aZ09 ,;:=\t"/\\\xe9\xff'.split("")), maxLength: 30 })
  .map((text) => text.replace(/^[ \t]+|[ \t]+$/g, ""));
const FRAMING = ["content-length", "transfer-encoding", "host", "connection"];
const fields = fc
  .array(fc.tuple(token, value), { maxLength: 20 })
  .map((pairs) => pairs.filter(([name]) => !FRAMING.includes(name.toLowerCase())).flat());

test("heads are written in the form of RFC 9112", () => {
  assert.equal(requestHeadText("GET", "/a?b", ["Host", "x", "A", ""]), "GET /a?b HTTP/1.1\r\nHost: x\r\nA: \r\n\r\n");
  assert.equal(responseHeadText(200, "OK", ["A", "b"]), "HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
  assert.equal(responseHeadText(204, "", []), "HTTP/1.1 204 \r\n\r\n");
  assert.equal(chunkPrefix(255), "ff\r\n");
  assert.equal(lastChunkWithTrailers([]), LAST_CHUNK);
  assert.equal(lastChunkWithTrailers(["A", "b"]), "0\r\nA: b\r\n\r\n");
});

test("what is written is read back the same: requests", () => {
  fc.assert(
    fc.property(token, fields, (method, others) => {
      fc.pre(method !== "CONNECT");
      const written = ["Host", "a.test:80", ...others];
      const { messages, error } = readRequests([bytes(requestHeadText(method, "/x?y=z", written))]);
      assert.equal(error, undefined);
      const head = messages[0]?.head;
      assert.deepEqual([head?.method, head?.target, head?.fields], [method, "/x?y=z", written]);
    }),
  );
});

test("the lines of a head stand for its fields: with them the same is written as without", () => {
  fc.assert(
    fc.property(fields, (others) => {
      const written = ["Host", "a.test:80", ...others];
      const request = readRequests([bytes(requestHeadText("GET", "/", written))]).messages[0]?.head;
      assert.equal(request?.fieldLines, requestHeadText("GET", "/", written).slice(16, -2));
      assert.equal(
        requestHeadText("PUT", "/x", request?.fields ?? [], request?.fieldLines),
        requestHeadText("PUT", "/x", written),
      );
      const text = responseHeadText(200, "OK", ["Content-Length", "0", ...others]);
      const response = readResponse([bytes(text)]).messages[0]?.head;
      assert.equal(response?.fieldLines, text.slice(17, -2));
      assert.equal(responseHeadText(200, "OK", response?.fields ?? [], response?.fieldLines), text);
    }),
  );
});

test("lines that are not what would be written stand for nothing", () => {
  const cases = ["A:b", "A:", "A:  b", "A:\tb", "A: \tb", "A: b ", "A: b\t", "A: b\r\nB:c", "A:b\r\nB: c"];
  for (const line of cases) {
    const request = readRequests([bytes(`GET / HTTP/1.1\r\nHost: a.test\r\n${line}\r\n\r\n`)]);
    assert.equal(request.error, undefined, line);
    assert.equal(request.messages[0]?.head.fieldLines, undefined, line);
    const next = readRequests([bytes("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")]);
    assert.equal(next.messages[0]?.head.fieldLines, "Host: a.test\r\n", "the next head has its own");
  }
  const { messages } = readResponse([bytes("HTTP/1.1 200 OK\nContent-Length: 0\n\n")], { lenient: true });
  const odd = messages[0]?.head;
  assert.deepEqual([odd?.oddities, odd?.fieldLines], [["bare-lf"], undefined]);
});

test("a reason is looked at with lines, too", () => {
  for (const reason of ["a\r\nB: c", "a\n", "a\0", "\u{1f600}"]) {
    assert.throws(() => responseHeadText(200, reason, [], ""), new Http1Error("unsafe-text"), JSON.stringify(reason));
  }
});

test("what is written is read back the same: responses with chunks and trailers", () => {
  const chunks = fc.array(
    fc.string({ unit: fc.constantFrom("a", "\r", "\n", "0", "\xff"), minLength: 1, maxLength: 40 }),
  );
  const trailers = fc
    .array(
      fc.tuple(
        token.map((name) => `X-${name}`),
        value,
      ),
      { maxLength: 3 },
    )
    .map((pairs) => pairs.flat());
  fc.assert(
    fc.property(
      fc.integer({ min: 200, max: 999 }),
      value,
      fields,
      chunks,
      trailers,
      (status, reason, others, data, last) => {
        fc.pre(status !== 204 && status !== 304);
        const written = ["Transfer-Encoding", "chunked", ...others];
        const body = data.map((text) => chunkPrefix(text.length) + text + CHUNK_END).join("");
        const text = responseHeadText(status, reason, written) + body + lastChunkWithTrailers(last);
        const { messages, error } = readResponse([bytes(text)]);
        assert.equal(error, undefined);
        const [message] = messages;
        assert.deepEqual([message?.head.status, message?.head.reason, message?.head.fields], [status, reason, written]);
        assert.deepEqual([message?.body, message?.trailers ?? [], message?.ended], [data.join(""), last, true]);
      },
    ),
  );
});

const UNSAFE = ["\r", "\n", "\0", "\r\n", "a\r\nX: y", "\r\n\r\n", "\u010a", "\u0d0a", "\ud83d\ude00", "x\n", "\nx"];

for (const part of UNSAFE) {
  test(`no part of a head may carry ${JSON.stringify(part)}`, () => {
    const attempts: (() => string)[] = [
      () => requestHeadText(`GET${part}`, "/", []),
      () => requestHeadText("GET", `/${part}`, []),
      () => requestHeadText("GET", "/", [`A${part}`, "b"]),
      () => requestHeadText("GET", "/", ["A", `b${part}`]),
      () => requestHeadText("GET", "/", ["A", part, "C", "d"]),
      () => responseHeadText(200, `OK${part}`, []),
      () => responseHeadText(200, part, ["A", "b"]),
      () => responseHeadText(200, "OK", [`${part}A`, "b"]),
      () => responseHeadText(200, "OK", ["A", `${part}b`]),
      () => lastChunkWithTrailers(["A", part]),
      () => lastChunkWithTrailers([part, "b"]),
    ];
    for (const attempt of attempts) {
      assert.throws(
        attempt,
        (error) => error instanceof Http1Error && error.code === "unsafe-text" && error.status === 500,
      );
    }
  });
}

test("names, methods and targets that would shift a boundary are refused", () => {
  for (const name of ["", "A:", "A B", " A", "A\t", "(A)", "A\xe9"]) {
    assert.throws(() => requestHeadText("GET", "/", [name, "x"]), Http1Error, name);
  }
  for (const method of ["", "GET ", "G(T"]) assert.throws(() => requestHeadText(method, "/", []), Http1Error);
  for (const target of ["", "/ HTTP/1.1", "/a b", "/\x7f", "/\u0119", "/#x"]) {
    assert.throws(() => requestHeadText("GET", target, []), Http1Error);
  }
  for (const status of [0, 99, 1000, 200.5, Number.NaN]) {
    assert.throws(() => responseHeadText(status, "", []), Http1Error);
  }
});

test("a target's octets beyond ASCII are written as they are", () => {
  assert.equal(requestHeadText("GET", "/\xc3\xa9?\xff", []), "GET /\xc3\xa9?\xff HTTP/1.1\r\n\r\n");
});

test("control characters that end nothing are written, since lenient readers let them in", () => {
  assert.equal(responseHeadText(200, "O\x1bK", ["A", "\x07"]), "HTTP/1.1 200 O\x1bK\r\nA: \x07\r\n\r\n");
});

test("a written head never has more or fewer lines than it has parts", () => {
  const anything = fc.string({
    unit: fc.constantFrom("a", "\r", "\n", "\0", ":", " ", "\u010a", "\xff"),
    maxLength: 4,
  });
  fc.assert(
    fc.property(anything, fc.array(fc.tuple(anything, anything), { maxLength: 3 }), (reason, pairs) => {
      let text;
      try {
        text = responseHeadText(200, reason, pairs.flat());
      } catch (error) {
        assert(error instanceof Http1Error);
        return;
      }
      assert.equal(text.split(/[\r\n]+/).length, pairs.length + 2);
      assert.equal(text.split("\r\n").length, pairs.length + 3);
    }),
    { numRuns: 2_000 },
  );
});

test("chunk sizes that would end the body or not fit are refused", () => {
  for (const size of [0, -1, 1.5, Number.NaN, 2 ** 32]) assert.throws(() => chunkPrefix(size), RangeError);
  assert.equal(chunkPrefix(2 ** 32 - 1), "ffffffff\r\n");
});

test("what is known of names holds on to nothing else of the heads they came from, and to no long ones", async () => {
  const filling = "x".repeat(50_000);
  const grownBytes = await heapGrowthBytes(() => {
    for (let at = 0; at < 200; at += 1) {
      const name = `X-A-Name-Of-Its-Own-${at}`;
      assert.match(
        requestHeadText("GET", "/", [`${filling}${name}`.slice(50_000), "v"]),
        new RegExp(`\r\n${name}: v\r\n`),
      );
      assert.equal(requestHeadText("GET", "/", [`${filling}${name}`, "v"]).length > 50_000, true);
    }
  });
  assert.ok(grownBytes < 200_000, `${grownBytes} bytes`);
});
