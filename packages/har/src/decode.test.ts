import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeHar, HarDecoder, HarFormatError, type HarItem } from "./decode.ts";
import { encodeHar, harEntryTexts, harEpilogue, harPrologue } from "./encode.ts";
import type { HarEntry } from "./har.ts";

const ENTRY: HarEntry = {
  startedDateTime: "2026-11-21T10:00:00.123Z",
  time: 1,
  request: {
    method: "GET",
    url: "http://a/",
    httpVersion: "HTTP/1.1",
    cookies: [],
    headers: [],
    queryString: [],
    headersSize: -1,
    bodySize: 0,
  },
  response: {
    status: 200,
    statusText: "OK",
    httpVersion: "HTTP/1.1",
    cookies: [],
    headers: [],
    content: { size: 0, mimeType: "" },
    redirectURL: "",
    headersSize: -1,
    bodySize: -1,
  },
  cache: {},
  timings: { blocked: -1, dns: -1, connect: -1, send: 0, wait: 1, receive: 0, ssl: -1 },
};

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function decode(
  chunks: readonly Uint8Array[],
  options = {},
): { readonly items: readonly HarItem[]; readonly decoder: HarDecoder } {
  const decoder = new HarDecoder(options);
  const items = chunks.flatMap((chunk) => [...decoder.write(chunk)]);
  decoder.end();
  return { items, decoder };
}

function entryWith(comment: string): HarEntry {
  return { ...ENTRY, comment };
}

function comments(items: readonly HarItem[]): readonly string[] {
  return items.map((item) => (item.kind === "entry" ? (item.entry.comment ?? "") : item.message));
}

test("entries are found wherever they stand among the members", () => {
  const entries = JSON.stringify([entryWith("one"), entryWith("two")]);
  const documents = [
    `{"log":{"entries":${entries}}}`,
    `\ufeff {"x":[{"log":{"entries":[1]}}],"log":{"version":"1.2","pages":[{"a":"]}\\""}],"entries" : ${entries},"comment":"c"},"y":null}\n`,
    `{"log":{"creator":{"name":"n","version":"1","entries":[{}]},"\\u0065ntries":${entries},"z":-1.5e3,"t":true}}`,
    `{"entries":[{}],"log":{"entries":${entries}}}`,
    `{"log":{"__proto__":{"entries":[{}]},"entries":${entries}}}`,
  ];
  for (const document of documents) {
    const { items, decoder } = decode([bytesOf(document)]);
    assert.deepEqual(comments(items), ["one", "two"], document);
    assert.equal(decoder.bytesSeen, bytesOf(document).length);
  }
});

test("members of the log are available as a header", () => {
  const { decoder } = decode([
    bytesOf('{"log":{"version":"1.2","entries":[],"creator":{"name":"n","version":"1"},"comment":"c","pages":[1]}}'),
  ]);
  assert.deepEqual(
    [...decoder.header],
    [
      ["version", "1.2"],
      ["creator", { name: "n", version: "1" }],
      ["comment", "c"],
    ],
  );
});

test("the result does not depend on how the bytes are cut", () => {
  const tricky = fc.string({
    unit: fc.constantFrom('"', "\\", "{", "}", "[", "]", ",", ":", "é", "😀", "a", "\n", "\u0000"),
    maxLength: 60,
  });
  fc.assert(
    fc.property(fc.array(tricky, { maxLength: 4 }), fc.integer({ min: 1, max: 40 }), tricky, (texts, size, key) => {
      const document = bytesOf(
        `{"log":{${JSON.stringify(key)}:${JSON.stringify({ [key]: [key] })},"entries":${JSON.stringify(texts.map(entryWith))},"comment":${JSON.stringify(key)}}}`,
      );
      // Reuses one buffer for all chunks, as a file reader would.
      const buffer = new Uint8Array(size);
      const decoder = new HarDecoder();
      const items: HarItem[] = [];
      for (let at = 0; at < document.length; at += size) {
        const piece = document.subarray(at, at + size);
        buffer.set(piece);
        items.push(...decoder.write(buffer.subarray(0, piece.length)));
      }
      decoder.end();
      assert.deepEqual(comments(items), texts);
      assert.equal(decoder.header.get("comment"), key);
    }),
    { numRuns: 1000 },
  );
});

test("elements that are no entries are skipped and reported by number and place", () => {
  const document = `{"log":{"entries":[1,null,"x",{"request":{}},{"a":tru},{"request":{"method":"GET","url":""}},{"request":{"method":"GET /","url":"u"}},{"request":{"method":"GET","url":"u"},"startedDateTime":"yesterday"},${JSON.stringify(ENTRY)}]}}`;
  const { items } = decode([bytesOf(document)]);
  assert.deepEqual(
    items.map((item) => (item.kind === "refused" ? item.message : "fine")),
    [
      "entry 0: is not an object",
      "entry 1: is not an object",
      "entry 2: is not an object",
      "entry 3: has no request method",
      "entry 4: is not JSON",
      "entry 5: has no request URL",
      "entry 6: has no request method",
      "entry 7: has no readable startedDateTime",
      "fine",
    ],
  );
  const fourth = items[4];
  assert.ok(fourth?.kind === "refused");
  assert.equal(document.slice(fourth.byteOffset, fourth.byteOffset + 5), '{"a":');
});

test("what cannot be true of an exchange is refused, or unknown where that is possible", () => {
  const withStatus = (status: unknown): unknown => ({ ...ENTRY, response: { ...ENTRY.response, status } });
  const refused: readonly (readonly [entry: unknown, why: string])[] = [
    [withStatus(3.5), "has a response status that is none"],
    [withStatus(1000), "has a response status that is none"],
    [withStatus("200.1"), "has a response status that is none"],
    [{ ...ENTRY, startedDateTime: "+275760-09-13T00:00:00Z" }, "has no readable startedDateTime"],
    [{ ...ENTRY, startedDateTime: "-000001-01-01T00:00:00Z" }, "has no readable startedDateTime"],
  ];
  for (const [entry, why] of refused) {
    const { items } = decode([bytesOf(`{"log":{"entries":[${JSON.stringify(entry)}]}}`)]);
    assert.deepEqual(comments(items), [`entry 0: ${why}`], JSON.stringify(entry));
  }
  const odd =
    '{"startedDateTime":"2026-01-01T00:00:00Z","time":1e999,"request":{"method":"GET","url":"http://a/","bodySize":1e300,"headersSize":-7},"response":{"status":-1,"bodySize":2.5,"content":{"size":-3}},"timings":{"blocked":1e300,"wait":1e999,"send":5}}';
  const [item] = decode([bytesOf(`{"log":{"entries":[${odd}]}}`)]).items;
  assert.ok(item?.kind === "entry");
  const { request, response, timings, time } = item.entry;
  assert.deepEqual([request.bodySize, request.headersSize, response.bodySize, response.content.size], [-1, -1, -1, 0]);
  assert.deepEqual([response.status, time, timings.blocked, timings.wait, timings.send], [0, 0, -1, 0, 5]);
});

test("an entry that is not UTF-8 is refused, not mended", () => {
  const [before, after] = JSON.stringify(entryWith("\u{1f600}-mark")).split("\u{1f600}-mark").map(bytesOf);
  assert.ok(before !== undefined && after !== undefined);
  const whole = (comment: Uint8Array): Uint8Array =>
    Buffer.concat([bytesOf('{"log":{"entries":['), before, comment, after, bytesOf(`,${JSON.stringify(ENTRY)}]}}`)]);
  for (const size of [1, 7, 100_000]) {
    const cut = (bytes: Uint8Array): Uint8Array[] =>
      Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
    for (const bad of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98]]) {
      const { items } = decode(cut(whole(Uint8Array.from(bad))));
      assert.deepEqual(comments(items), ["entry 0: is not valid UTF-8", ""], bad.join());
    }
    assert.deepEqual(comments(decode(cut(whole(bytesOf("\u{1f600}")))).items), ["\u{1f600}", ""]);
  }
  const large = "\u{1f600}".repeat(600_000);
  assert.deepEqual(comments(decode([whole(bytesOf(large)).subarray()]).items)[0], large);
  const torn = Buffer.concat([bytesOf(large), Uint8Array.of(0xf0)]);
  assert.deepEqual(comments(decode([whole(torn)]).items)[0], "entry 0: is not valid UTF-8");
});

test("messages never repeat what the file contains", () => {
  const { items } = decode([bytesOf('{"log":{"entries":[{"password":hunter2}]}}')]);
  assert.ok(!comments(items).join().includes("hunter2"));
});

test("entries beyond the size and depth limits are skipped without being kept", () => {
  const deep = `{"request":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  const document = `{"log":{"entries":[${JSON.stringify(entryWith("x".repeat(5000)))},${deep},${JSON.stringify(entryWith("ok"))}]}}`;
  for (const size of [10_000_000, 1000]) {
    const bytes = bytesOf(document);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    const { items } = decode(chunks, { maxEntryBytes: 4000 });
    assert.match(comments(items)[0] ?? "", /^entry 0: has \d+ bytes, more than the allowed 4000$/);
    assert.match(comments(items)[1] ?? "", /^entry 1: has 200012 bytes/);
    assert.equal(comments(items)[2], "ok");
    assert.equal(comments(decode(chunks).items)[1], "entry 1: is nested too deep");
  }
});

const BROKEN: readonly (readonly [string, RegExp, number])[] = [
  ["", /empty/, 0],
  ["[]", /begins with/, 0],
  ["PK\u0003\u0004", /begins with/, 0],
  ["{}", /no `log\.entries`/, 2],
  ['{"log":{}}', /no `log\.entries`/, 10],
  ['{"log":{"entries":{}}}', /no `log\.entries`/, 22],
  ['{"log":[{"entries":[]}]}', /no `log\.entries`/, 24],
  ['{"log":{"entries":[', /stops in entry 0/, 19],
  ['{"log":{"entries":[{"a":"', /stops in entry 0/, 25],
  ['{"log":{"entries":[]', /stops before its end/, 20],
  ['{"log":{"entries":[]}} x', /something after the end/, 23],
  ['{"log" {', /colon is expected/, 7],
  ["{log:1}", /member name/, 1],
  ['{"log":}', /value is expected/, 7],
  ['{"log":{"entries":[}', /entry is expected/, 19],
  ['{"a":1]', /`,` or `}`/, 6],
  ['{"a":1,}', /member name/, 7],
  ['{"log":{,"entries":[]}}', /member name/, 8],
  ['{"log":{"entries":[,]}}', /entry is expected/, 19],
  ['{"log":{"entries":[1,]}}', /entry is expected/, 21],
  ['{"log":{"entries":[1,,2]}}', /entry is expected/, 21],
  ['{"log":{"entries":[1 2]}}', /`,` or `]`/, 21],
  ['{"log":{"entries":[{}{}]}}', /`,` or `]`/, 21],
  ['{"log":{"entries":["a"', /stops before its end/, 22],
];

for (const [document, message, offset] of BROKEN) {
  test(`${JSON.stringify(document)} is refused at byte ${offset}, however it is cut`, () => {
    for (const size of [1, 1000]) {
      const bytes = bytesOf(document);
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.subarray(index * size, (index + 1) * size),
      );
      assert.throws(
        () => decode(chunks),
        (error) => error instanceof HarFormatError && message.test(error.message) && error.byteOffset === offset,
      );
    }
  });
}

test("any bytes end in entries, refusals or a format error", () => {
  const whole = bytesOf(`{"log":{"entries":[${JSON.stringify(ENTRY)},${JSON.stringify(entryWith('\\"é'))}]}}`);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 4 }),
      fc.nat(whole.length),
      (flips, length) => {
        const damaged = whole.slice(0, length);
        for (const [at, byte] of flips) if (at < damaged.length) damaged[at] = byte;
        try {
          decode([damaged]);
        } catch (error) {
          assert.ok(error instanceof HarFormatError, String(error));
          assert.ok(error.byteOffset <= damaged.length);
        }
      },
    ),
    { numRuns: 3000 },
  );
});

test("what other programs leave out or write differently is completed", () => {
  const document = `{"log":{"entries":[{"startedDateTime":"2010-01-02T03:04:05.6+02:00","time":"12","request":{"method":"POST","url":"http://a/?q","headers":[{"name":"A","value":1},{"value":"x"},7],"postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"a b","value":"1"}]}},"response":{"status":"200"},"_own":{"x":1},"__proto__":{"polluted":true},"unknown":1}]}}`;
  const { items } = decode([bytesOf(document)]);
  const [item] = items;
  assert.ok(item?.kind === "entry");
  assert.deepEqual(item.entry, {
    _own: { x: 1 },
    startedDateTime: "2010-01-02T03:04:05.6+02:00",
    time: 12,
    request: {
      method: "POST",
      url: "http://a/?q",
      httpVersion: "",
      cookies: [],
      headers: [{ name: "A", value: "1" }],
      queryString: [],
      postData: { mimeType: "application/x-www-form-urlencoded", text: "a+b=1", params: [{ name: "a b", value: "1" }] },
      headersSize: -1,
      bodySize: -1,
    },
    response: {
      status: 200,
      statusText: "",
      httpVersion: "",
      cookies: [],
      headers: [],
      content: { size: 0, mimeType: "" },
      redirectURL: "",
      headersSize: -1,
      bodySize: -1,
    },
    cache: {},
    timings: { send: 0, wait: 12, receive: 0 },
  });
  assert.deepEqual(item.leftOut, ["left out for want of a name: `request.headers[1]`, `request.headers[2]`"]);
  assert.equal(Reflect.get({}, "polluted"), undefined);
});

test("a document written in pieces is read back entry by entry", async () => {
  const header = { creator: { name: "weir", version: "1" }, comment: "héllo", _tool: { a: 1 } };
  const entries = [entryWith("one"), entryWith('two \u2028 "x"')];
  const pieces: string[] = [];
  for await (const piece of encodeHar(header, entries)) pieces.push(piece);
  assert.equal(
    pieces.join(""),
    [harPrologue(header), ...entries.flatMap((entry, index) => [...harEntryTexts(entry, index)]), harEpilogue()].join(
      "",
    ),
  );
  assert.deepEqual(JSON.parse(pieces.join("")), { log: { version: "1.2", ...header, entries } });
  const items: HarItem[] = [];
  for await (const item of decodeHar(piecesOf(pieces))) items.push(item);
  assert.deepEqual(
    items,
    entries.map((entry, index) => ({ kind: "entry", index, entry, leftOut: [] })),
  );
  assert.deepEqual(JSON.parse(`${harPrologue(header)}${harEpilogue()}`), {
    log: { version: "1.2", ...header, entries: [] },
  });
});

async function* piecesOf(pieces: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield bytesOf(piece);
}

test("memory stays flat while a large document streams through", () => {
  const decoder = new HarDecoder();
  const entry = bytesOf(`${JSON.stringify(entryWith("x".repeat(100_000)))},`);
  let found = 0;
  const feed = (count: number): void => {
    for (let index = 0; index < count; index += 1) {
      for (const item of decoder.write(entry)) found += item.kind === "entry" ? 1 : 0;
    }
  };
  for (const _ of decoder.write(bytesOf('{"log":{"entries":['))) assert.fail();
  feed(50);
  const before = process.memoryUsage().rss;
  feed(2000);
  const growth = process.memoryUsage().rss - before;
  assert.equal(found, 2050);
  assert.ok(growth < 100 * 1024 * 1024, `grew by ${growth} bytes over ${decoder.bytesSeen}`);
});
