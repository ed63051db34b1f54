import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { HarDecoder, type HarItem } from "./decode.ts";
import { harEntryTexts } from "./encode.ts";
import type { HarBody, HarExchange } from "./har.ts";
import { fromHarEntry, fromLargeHarEntry } from "./from-entry.ts";
import { toHarEntry } from "./to-entry.ts";
import { type KeptText, LARGE_TEXT_BYTES, LargeText, LongStrings, TextInMemory } from "./large-text.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Cuts at the given distances, cyclically. */
function cut(bytes: Uint8Array, distances: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (let turn = 0; at < bytes.length; turn += 1) {
    const end = at + (distances[turn % distances.length] ?? 1);
    pieces.push(bytes.slice(at, end));
    at = end;
  }
  return pieces;
}

function largeText(pieces: readonly Uint8Array[]): LargeText {
  const kept = new TextInMemory();
  for (const piece of pieces) kept.add(piece);
  return new LargeText(
    kept,
    pieces.reduce((sum, piece) => sum + piece.length, 0),
  );
}

/** Reads the text at once and in pieces, which must agree. */
function readTwice(pieces: readonly Uint8Array[], isBase64: boolean): Uint8Array {
  const bytes = largeText(pieces).toBytes(isBase64);
  assert.deepEqual(Buffer.concat([...largeText(pieces).bytePieces(isBase64)]), Buffer.from(bytes));
  return bytes;
}

const distances = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
const tricky = fc.string({
  unit: fc.constantFrom('"', "\\", "/", "é", "😀", "\ud83d", "\ude00", "a", "\n", "\u0000", "u", "d83d"),
  maxLength: 40,
});
/** A JSON string without quotation marks, with or without escapes. */
const written = (text: string, allEscaped: boolean): string =>
  allEscaped
    ? Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")
    : JSON.stringify(text).slice(1, -1);

test("a text says the same as a string of JSON, however it is written and cut", () => {
  fc.assert(
    fc.property(tricky, fc.boolean(), distances, (text, allEscaped, places) => {
      const pieces = cut(bytesOf(written(text, allEscaped)), places);
      assert.deepEqual(readTwice(pieces, false), bytesOf(text));
    }),
    { numRuns: 2000 },
  );
});

test("a text says the same bytes in base64, with line ends and escapes in it or not", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 60 }),
      fc.boolean(),
      fc.boolean(),
      distances,
      (bytes, lines, all, places) => {
        const base64 = Buffer.from(bytes).toString("base64");
        const text = lines ? base64.replaceAll(/.{1,5}/gu, "$&\r\n") : base64;
        const inner = written(text, all).replaceAll("/", "\\/");
        assert.deepEqual(readTwice(cut(bytesOf(inner), places), true), bytes);
      },
    ),
    { numRuns: 2000 },
  );
});

test("a text that is none is refused without quoting it", () => {
  const cases: readonly (readonly [inner: Uint8Array, message: string])[] = [
    [bytesOf("hunter2\n"), "holds a text that is not JSON"],
    [bytesOf("hunter2\\q"), "holds a text that is not JSON"],
    [bytesOf("hunter2\\u00"), "holds a text that is not JSON"],
    [Uint8Array.of(0x61, 0xff), "is not valid UTF-8"],
    [Uint8Array.of(0x61, 0xc3), "is not valid UTF-8"],
  ];
  for (const [inner, message] of cases) {
    for (const size of [1, 100]) {
      assert.throws(() => largeText(cut(inner, [size])).toBytes(false), { message });
      assert.throws(() => [...largeText(cut(inner, [size])).bytePieces(true)], { message });
    }
  }
});

const BASE64: readonly (readonly [text: string, isBase64: boolean])[] = [
  ["", true],
  ["AP/+", true],
  ["AP_-", true],
  ["AP8=", true],
  ["AP8", true],
  ["AA==", true],
  ["AA", true],
  [" AP/\r\n+AA\t=\n=", true],
  ["@@not base64@@", false],
  ["AP/+A", false],
  ["AP8==", false],
  ["AA=", false],
  ["AP/+=", false],
  ["AA==AA==", false],
  ["AA=A", false],
  ["=", false],
  ["AP.+", false],
  ["\u0141P/+", false],
];

test("a body whose text is not base64 is refused, however long it is and wherever it is cut", () => {
  for (const [text, isBase64] of BASE64) {
    const expected = Buffer.from(text, "base64");
    const entry = entryText({ response: { status: 200, content: { text, encoding: "base64" } } });
    const item = onlyItem(entry);
    assert.ok(item.kind === "entry");
    const readings = [
      () => fromHarEntry(item.entry).response?.body?.bytes ?? assert.fail("no body"),
      ...[1, 3, 100].map((size) => () => readTwice(cut(bytesOf(written(text, false)), [size]), true)),
    ];
    for (const reading of readings) {
      if (isBase64) assert.deepEqual(Buffer.from(reading()), expected, JSON.stringify(text));
      else assert.throws(reading, { message: "holds a body that is not base64" }, JSON.stringify(text));
    }
  }
});

test("long strings are taken out of any JSON, and nothing else is touched", () => {
  const value = fc.oneof(
    tricky,
    fc.double(),
    fc.constantFrom(null, true, ""),
    fc.array(tricky),
    fc.constant({ a: {} }),
  );
  fc.assert(
    fc.property(fc.array(value), tricky, distances, (values, text, places) => {
      const document = JSON.stringify({ values, text, "": { '\\"': text } });
      const strings = new LongStrings("mark-", () => new TextInMemory(), 12);
      for (const piece of cut(bytesOf(document), places)) strings.write(piece);
      const { json, texts } = strings;
      assert.ok(Buffer.concat(json).length <= bytesOf(document).length);
      const revived: unknown = JSON.parse(Buffer.concat(json).toString(), (_key, found: unknown) => {
        const large = typeof found === "string" ? texts.get(found) : undefined;
        return large === undefined ? found : new TextDecoder().decode(large.toBytes(false));
      });
      const wellFormed = (_key: string, found: unknown): unknown =>
        typeof found === "string" ? found.toWellFormed() : found;
      assert.deepEqual(JSON.parse(JSON.stringify(revived, wellFormed)), JSON.parse(document, wellFormed));
    }),
    { numRuns: 2000 },
  );
});

/** The entry of a document fed in chunks from one reused buffer. */
function onlyItem(entry: string): HarItem {
  const document = bytesOf(`{"log":{"entries":[${entry}]}}`);
  const decoder = new HarDecoder();
  const buffer = new Uint8Array(65_536);
  const items: HarItem[] = [];
  for (let at = 0; at < document.length; at += buffer.length) {
    const piece = document.subarray(at, at + buffer.length);
    buffer.set(piece);
    items.push(...decoder.write(buffer.subarray(0, piece.length)));
  }
  decoder.end();
  buffer.fill(0);
  const [item] = items;
  assert.equal(items.length, 1);
  return item ?? assert.fail("nothing was found");
}

const entryText = (members: object): string =>
  JSON.stringify({ startedDateTime: "2026-01-01T00:00:00Z", request: { method: "PUT", url: "http://a/" }, ...members });

const LONG = "\\é😀\n".repeat(LARGE_TEXT_BYTES / 8);
const BINARY = Buffer.alloc(LARGE_TEXT_BYTES, "\u0000\u00ff\u0081abcde", "latin1");

test("large bodies of an entry are what small ones would be, wherever they stand", () => {
  const base64 = BINARY.toString("base64");
  const item = onlyItem(
    entryText({
      request: { method: "PUT", url: "http://a/", postData: { mimeType: "text/plain", text: LONG } },
      response: { status: 200, content: { text: base64, mimeType: "x/y", encoding: "base64" } },
      comment: LONG,
      _other: [LONG],
    }),
  );
  assert.ok(item.kind === "entry");
  const { request, response, note } = fromHarEntry(item.entry);
  assert.ok(Buffer.from(request.body?.bytes ?? []).equals(bytesOf(LONG)));
  assert.ok(Buffer.from(response?.body?.bytes ?? []).equals(BINARY));
  assert.equal(note, undefined, "a note cannot be that long");
  const own = { version: 1, response: { raw: base64, encoded: true } };
  const ours = onlyItem(entryText({ response: { status: 200, content: { text: "decoded" } }, _weir: own }));
  assert.ok(ours.kind === "entry");
  const { response: received } = fromHarEntry(ours.entry);
  assert.ok(received?.body?.isEncoded === true && Buffer.from(received.body.bytes).equals(BINARY));
});

test("what is wrong with an entry that has a large text is said as of any other", () => {
  const refused = (entry: string): string => {
    const item = onlyItem(entry);
    return item.kind === "refused" ? item.message : "fine";
  };
  assert.equal(refused(entryText({ request: { method: "PUT", url: LONG } })), "entry 0: has no request URL");
  assert.equal(refused(`{"a":${JSON.stringify(LONG)},}`), "entry 0: is not JSON");
  const item = onlyItem(
    entryText({ request: { method: "PUT", url: "http://a/", postData: { text: LONG } } }).replace("\\n", "\\q"),
  );
  assert.ok(item.kind === "entry");
  assert.throws(() => fromHarEntry(item.entry), { message: "holds a text that is not JSON" });
});

test("large bodies are written in pieces, and read back the same", () => {
  const packed = new Uint8Array(gzipSync(BINARY, { level: 0 }));
  const text = bytesOf(LONG);
  const body = (bytes: Uint8Array, isEncoded = false): HarBody => ({
    bytes,
    isEncoded,
    isTruncated: false,
    transferredBytes: bytes.length,
  });
  const exchange: HarExchange = {
    startedMs: 0,
    request: { method: "PUT", url: "http://a/", httpVersion: "HTTP/1.1", fields: [], body: body(text) },
    response: {
      status: 200,
      reason: "",
      httpVersion: "HTTP/1.1",
      fields: ["Content-Encoding", "gzip"],
      body: body(packed, true),
    },
    timings: {
      blocked: undefined,
      dns: undefined,
      connect: undefined,
      tls: undefined,
      send: 0,
      wait: 0,
      receive: 0,
    },
    serverAddress: undefined,
    clientAddress: undefined,
    connectionId: undefined,
    note: undefined,
    webSocketMessages: undefined,
    weir: { id: "e", session: undefined, isPassthrough: false, failure: undefined, more: undefined },
  };
  const entry = toHarEntry(exchange, (bytes) => new Uint8Array(gunzipSync(bytes)));
  const pieces = [...harEntryTexts(entry, 0)];
  assert.ok(Math.max(...pieces.map((piece) => piece.length)) < LARGE_TEXT_BYTES / 4, "no piece is large");
  const written = JSON.parse(pieces.join("")) as {
    request: { postData: { text: string } };
    response: { content: { text: string; encoding: string; size: number } };
    _weir: { response: { raw: string } };
  };
  assert.ok(written.request.postData.text === LONG);
  assert.deepEqual([written.response.content.encoding, written.response.content.size], ["base64", BINARY.length]);
  assert.ok(written.response.content.text === BINARY.toString("base64"));
  assert.ok(written._weir.response.raw === Buffer.from(packed).toString("base64"));
  const item = onlyItem(pieces.join("").trim());
  assert.ok(item.kind === "entry");
  for (const back of [fromHarEntry(item.entry), fromHarEntry(entry)]) {
    assert.ok(Buffer.from(back.request.body?.bytes ?? []).equals(text));
    assert.ok(Buffer.from(back.response?.body?.bytes ?? []).equals(packed));
  }
});

test("long strings go to what keeps them while they come, and can be read as often as that allows", () => {
  const kept: Uint8Array[][] = [];
  const keepText = (): KeptText => {
    const pieces: Uint8Array[] = [];
    kept.push(pieces);
    return { add: (piece) => void pieces.push(piece.slice()), pieces: () => pieces };
  };
  const decoder = new HarDecoder({ keepText });
  const text = entryText({ response: { status: 200, content: { text: LONG } }, comment: "short" });
  const document = bytesOf(`{"log":{"entries":[${text}]}}`);
  const items: HarItem[] = [];
  let keptBeforeEnd = 0;
  for (let at = 0; at < document.length; at += 65_536) {
    keptBeforeEnd = kept.flat().reduce((sum, piece) => sum + piece.length, 0);
    items.push(...decoder.write(document.subarray(at, at + 65_536)));
  }
  assert.ok(keptBeforeEnd > LARGE_TEXT_BYTES, `${keptBeforeEnd} bytes had gone there before the last chunk`);
  assert.equal(kept.length, 1);
  const [item] = items;
  assert.ok(item?.kind === "entry");
  const exchange = fromLargeHarEntry(item.entry, (large, isBase64) => ({ large, isBase64 }));
  assert.equal(exchange.note, "short");
  const body = exchange.response?.body?.bytes;
  assert.ok(body !== undefined && "large" in body && !body.isBase64);
  for (let round = 0; round < 2; round += 1) {
    assert.ok(Buffer.concat([...body.large.bytePieces(false)]).equals(bytesOf(LONG)), `round ${round}`);
  }
});

test("an entry that is too large is given up while it comes", () => {
  let keptBytes = 0;
  const keepText = (): KeptText => ({ add: (piece) => void (keptBytes += piece.length), pieces: () => [] });
  const maxEntryBytes = LARGE_TEXT_BYTES + 1_000_000;
  const decoder = new HarDecoder({ keepText, maxEntryBytes });
  const document = bytesOf(`{"log":{"entries":[${entryText({ comment: "x".repeat(2 * maxEntryBytes) })},{"a":1}]}}`);
  const items: HarItem[] = [];
  for (let at = 0; at < document.length; at += 65_536) items.push(...decoder.write(document.subarray(at, at + 65_536)));
  assert.deepEqual(
    items.map((item) => (item.kind === "refused" ? item.message.replaceAll(/\d{7,}/gu, "N") : "fine")),
    ["entry 0: has N bytes, more than the allowed N", "entry 1: has no request"],
  );
  assert.ok(keptBytes <= maxEntryBytes);
});
