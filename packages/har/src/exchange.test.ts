import assert from "node:assert/strict";
import { brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { HarDecoder } from "./decode.ts";
import { harEntryTexts, harEpilogue, harPrologue } from "./encode.ts";
import type { HarBody, HarEntry, HarExchange } from "./har.ts";
import { fromHarEntry } from "./from-entry.ts";
import { problemsOf } from "../test/har-schema.ts";
import { toHarEntry } from "./to-entry.ts";

function decodeContent(bytes: Uint8Array, coding: string): Uint8Array | undefined {
  try {
    if (coding.toLowerCase() === "gzip") return new Uint8Array(gunzipSync(bytes));
    return coding.toLowerCase() === "br" ? new Uint8Array(brotliDecompressSync(bytes)) : undefined;
  } catch {
    return undefined;
  }
}

function bodyOf(bytes: Uint8Array | string, facts: Partial<HarBody> = {}): HarBody {
  const kept = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
  return { bytes: kept, isEncoded: false, isTruncated: false, transferredBytes: kept.length, ...facts };
}

const ORDINARY: HarExchange = {
  startedMs: Date.UTC(2026, 10, 21, 10, 0, 0, 123),
  request: {
    method: "POST",
    url: "https://api.example.com/orders?page=2&q=a+b%20c&bad=%zz&flag",
    httpVersion: "HTTP/1.1",
    fields: [
      "Host",
      "api.example.com",
      "cookie",
      "sid=abc; theme=dark",
      "Content-Type",
      "application/x-www-form-urlencoded",
    ],
    body: bodyOf("a=1&b=x+y"),
  },
  response: {
    status: 200,
    reason: "OK",
    httpVersion: "HTTP/1.1",
    fields: [
      "Content-Type",
      "application/json",
      "Content-Encoding",
      "gzip",
      "Set-Cookie",
      "sid=xyz; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=60",
      "set-cookie",
      "b=2; Expires=Sat, 21 Nov 2026 11:00:00 GMT",
    ],
    body: bodyOf(new Uint8Array(gzipSync('{"ok":true}')), { isEncoded: true }),
  },
  timings: { blocked: 0.5, dns: undefined, connect: 2, tls: 3, send: 0.25, wait: 40, receive: 1 },
  serverAddress: "203.0.113.7:443",
  clientAddress: "127.0.0.1:50000",
  connectionId: "17",
  note: "look here",
  webSocketMessages: undefined,
  weir: { id: "e1", session: "s1", isPassthrough: false, failure: undefined, more: undefined },
};

/** Serializes and parses the entry. */
function throughFile(entry: HarEntry): HarEntry {
  const document =
    harPrologue({ creator: { name: "weir", version: "1" } }) + [...harEntryTexts(entry, 0)].join("") + harEpilogue();
  const decoder = new HarDecoder();
  const [item] = [...decoder.write(new TextEncoder().encode(document))];
  decoder.end();
  assert.ok(item?.kind === "entry", JSON.stringify(item));
  return item.entry;
}

test("an ordinary exchange is a complete HAR entry", () => {
  const entry = toHarEntry(ORDINARY, decodeContent);
  const raw = Buffer.from(ORDINARY.response?.body?.bytes ?? []);
  assert.deepEqual(entry, {
    startedDateTime: "2026-11-21T10:00:00.123Z",
    time: 46.75,
    request: {
      method: "POST",
      url: ORDINARY.request.url,
      httpVersion: "HTTP/1.1",
      cookies: [
        { name: "sid", value: "abc" },
        { name: "theme", value: "dark" },
      ],
      headers: [
        { name: "Host", value: "api.example.com" },
        { name: "cookie", value: "sid=abc; theme=dark" },
        { name: "Content-Type", value: "application/x-www-form-urlencoded" },
      ],
      queryString: [
        { name: "page", value: "2" },
        { name: "q", value: "a b c" },
        { name: "bad", value: "%zz" },
        { name: "flag", value: "" },
      ],
      postData: {
        mimeType: "application/x-www-form-urlencoded",
        text: "a=1&b=x+y",
        params: [
          { name: "a", value: "1" },
          { name: "b", value: "x y" },
        ],
      },
      headersSize:
        "POST /orders?page=2&q=a+b%20c&bad=%zz&flag HTTP/1.1\r\nHost: api.example.com\r\ncookie: sid=abc; theme=dark\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n"
          .length,
      bodySize: 9,
    },
    response: {
      status: 200,
      statusText: "OK",
      httpVersion: "HTTP/1.1",
      cookies: [
        {
          name: "sid",
          value: "xyz",
          path: "/",
          expires: "2026-11-21T10:01:00.123Z",
          httpOnly: true,
          secure: true,
          sameSite: "Lax",
        },
        { name: "b", value: "2", expires: "2026-11-21T11:00:00.000Z", httpOnly: false, secure: false },
      ],
      headers: [
        { name: "Content-Type", value: "application/json" },
        { name: "Content-Encoding", value: "gzip" },
        { name: "Set-Cookie", value: "sid=xyz; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=60" },
        { name: "set-cookie", value: "b=2; Expires=Sat, 21 Nov 2026 11:00:00 GMT" },
      ],
      content: { size: 11, compression: 11 - raw.length, mimeType: "application/json", text: '{"ok":true}' },
      redirectURL: "",
      headersSize:
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nSet-Cookie: sid=xyz; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=60\r\nset-cookie: b=2; Expires=Sat, 21 Nov 2026 11:00:00 GMT\r\n\r\n"
          .length,
      bodySize: raw.length,
    },
    cache: {},
    timings: { blocked: 0.5, dns: -1, connect: 5, send: 0.25, wait: 40, receive: 1, ssl: 3 },
    serverIPAddress: "203.0.113.7",
    connection: "17",
    comment: "look here",
    _weir: {
      version: 1,
      id: "e1",
      session: "s1",
      clientAddress: "127.0.0.1:50000",
      serverAddress: "203.0.113.7:443",
      response: { encoded: true, raw: raw.toString("base64") },
    },
  });
  assert.deepEqual(problemsOf(entry), []);
  assert.deepEqual(fromHarEntry(throughFile(entry)), ORDINARY);
});

test("the schema of the tests notices what is missing, of the wrong type or not in HAR", () => {
  const entry = toHarEntry(ORDINARY, decodeContent);
  const { cache: _cache, ...withoutCache } = entry;
  assert.deepEqual(problemsOf(withoutCache), ["entry.cache is missing"]);
  assert.deepEqual(problemsOf({ ...entry, time: "1" }), ["entry.time is not a number"]);
  assert.deepEqual(problemsOf({ ...entry, extra: 1 }), ["entry.extra is not in HAR 1.2"]);
  assert.deepEqual(problemsOf({ ...entry, timings: { ...entry.timings, send: -1 } }), [
    "entry.timings.send is negative",
  ]);
  assert.deepEqual(problemsOf({ ...entry, time: 1 }), ["entry.time is not the sum of the timings"]);
  assert.deepEqual(problemsOf({ ...entry, startedDateTime: "today" }), [
    "entry.startedDateTime is not an ISO 8601 time",
  ]);
});

test("bodies that are not text are base64, others are text, and neither is kept twice", () => {
  const cases: readonly (readonly [Uint8Array | string, string, string, "base64" | undefined])[] = [
    [Uint8Array.of(0x89, 0x50), "image/png", "iVA=", "base64"],
    ["<p>é</p>", "text/html; charset=UTF-8", "<p>é</p>", undefined],
    [Uint8Array.of(0xe9), "text/plain; charset=iso-8859-1", "6Q==", "base64"],
    ["plain", "text/plain; charset=iso-8859-1", "cGxhaW4=", "base64"],
    ["\ufeffmark", "text/plain", "\ufeffmark", undefined],
    ["", "text/plain", "", undefined],
  ];
  for (const [bytes, type, text, encoding] of cases) {
    const exchange: HarExchange = {
      ...ORDINARY,
      request: { ...ORDINARY.request, fields: ["content-type", type], body: bodyOf(bytes) },
      response: { status: 200, reason: "", httpVersion: "HTTP/2", fields: ["content-type", type], body: bodyOf(bytes) },
    };
    const entry = toHarEntry(exchange, decodeContent);
    assert.equal(entry.response.content.text, text);
    assert.equal(entry.response.content.encoding, encoding);
    assert.equal(entry.request.postData?.text, text);
    assert.equal(entry.request.postData?._encoding, encoding);
    assert.ok(!JSON.stringify(entry).includes('"raw"'));
    assert.deepEqual(fromHarEntry(throughFile(entry)), exchange);
  }
});

test("the type of a body is what its field says, and else what the exchange or the document does", () => {
  const named = "text/x; charset=latin1";
  const cases: readonly (readonly [fields: string[], mediaType: string | undefined, mimeType: string])[] = [
    [[], "image/png", "image/png"],
    [[], named, named],
    [[], undefined, ""],
    [["content-type", "text/html"], undefined, "text/html"],
    [["Content-Type", ""], undefined, ""],
  ];
  for (const [fields, type, mimeType] of cases) {
    const message = { httpVersion: "HTTP/1.1", fields, ...(type !== undefined && { mediaType: type }) };
    for (const body of [undefined, bodyOf("plain"), bodyOf(Uint8Array.of(0x89))]) {
      const exchange: HarExchange = {
        ...ORDINARY,
        request: { method: "POST", url: ORDINARY.request.url, ...message, body },
        response: { status: 200, reason: "OK", ...message, body },
      };
      const entry = toHarEntry(exchange, decodeContent);
      assert.equal(entry.response.content.mimeType, mimeType);
      assert.equal(entry.request.postData?.mimeType, body && mimeType);
      assert.deepEqual(fromHarEntry(throughFile(entry)), exchange);
    }
    const entry = toHarEntry({ ...ORDINARY, request: { ...ORDINARY.request, fields } }, decodeContent);
    const postData = { mimeType: type ?? "a/b", text: "x" };
    const { request } = fromHarEntry({ ...entry, _weir: undefined, request: { ...entry.request, postData } });
    assert.equal(request.mediaType, fields.length > 0 ? undefined : (type ?? "a/b"));
  }
});

test("truncated and undecodable bodies say so in a comment", () => {
  const bytes = new Uint8Array(gzipSync("hello")).subarray(0, 12);
  const message = {
    httpVersion: "HTTP/1.1",
    fields: ["Content-Encoding", "gzip"],
    body: bodyOf(bytes, { isEncoded: true, isTruncated: true, transferredBytes: 900 }),
  };
  const exchange: HarExchange = {
    ...ORDINARY,
    request: { method: "POST", url: ORDINARY.request.url, ...message },
    response: { status: 200, reason: "OK", ...message },
  };
  const entry = toHarEntry(exchange, decodeContent);
  const comment = "only the first 12 of 900 bytes were captured; the content coding gzip could not be removed";
  assert.deepEqual([entry.request.postData?.comment, entry.response.content.comment], [comment, comment]);
  assert.deepEqual([entry.request.bodySize, entry.response.bodySize], [900, 900]);
  assert.deepEqual(fromHarEntry(throughFile(entry)), exchange);
});

test("parts of a multipart form are listed by name, files without their content", () => {
  const text =
    '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1é\r\n--B\r\nContent-Disposition: form-data; name="f"; filename="x \\"y\\".bin"\r\nContent-Type: application/octet-stream\r\n\r\n\0\r\n--B--\r\n';
  const exchange: HarExchange = {
    ...ORDINARY,
    request: { ...ORDINARY.request, fields: ["Content-Type", "multipart/form-data; boundary=B"], body: bodyOf(text) },
  };
  const entry = toHarEntry(exchange, decodeContent);
  assert.deepEqual(entry.request.postData?.params, [
    { name: "a", value: "1é" },
    { name: "f", fileName: 'x "y".bin', contentType: "application/octet-stream" },
  ]);
  assert.deepEqual(problemsOf(entry), []);
});

test("a form made to be slow is written in time", () => {
  const spaces = " ".repeat(1_000_000);
  const parts = [
    `content-disposition: form-data; name="a"${";".repeat(100_000)}`,
    `content-disposition: form-data; name=b\r\nContent-Type: x${spaces}y`,
    `content-disposition: form-data;${spaces}x`,
  ];
  const text = `${parts.map((part) => `--B\r\n${part}\r\n\r\nv\r\n`).join("")}--B--`;
  const request = {
    ...ORDINARY.request,
    fields: ["Content-Type", "multipart/form-data; boundary=B"],
    body: bodyOf(text),
  };
  const began = performance.now();
  const entry = toHarEntry({ ...ORDINARY, request }, decodeContent);
  assert.ok(performance.now() - began < 2000, `${performance.now() - began} ms`);
  assert.deepEqual(
    entry.request.postData?.params?.map(({ name }) => name),
    ["a", "b"],
  );
});

test("an exchange without response has status 0 and the reason", () => {
  const exchange: HarExchange = {
    ...ORDINARY,
    response: undefined,
    weir: { ...ORDINARY.weir, failure: "connection refused" },
  };
  const entry = toHarEntry(exchange, decodeContent);
  assert.equal(entry.response.status, 0);
  assert.equal(entry.response["_error"], "connection refused");
  assert.deepEqual(problemsOf(entry), []);
  assert.deepEqual(fromHarEntry(throughFile(entry)), exchange);
});

test("entries of other programs lose pseudo fields, have decoded bodies and readable versions", () => {
  const { _weir: _dropped, ...entry } = toHarEntry(ORDINARY, decodeContent);
  const foreign = fromHarEntry(
    throughFile({
      ...entry,
      serverIPAddress: "[::1]",
      request: {
        ...entry.request,
        httpVersion: "http/2.0",
        headers: [{ name: ":method", value: "POST" }, ...entry.request.headers],
      },
    }),
  );
  assert.equal(foreign.request.httpVersion, "HTTP/2");
  assert.deepEqual(foreign.request.fields, ORDINARY.request.fields);
  assert.equal(foreign.serverAddress, "::1");
  assert.equal(foreign.response?.body?.isEncoded, false);
  assert.equal(new TextDecoder().decode(foreign.response?.body?.bytes), '{"ok":true}');
  assert.deepEqual(foreign.timings, ORDINARY.timings);
  assert.equal(fromHarEntry(throughFile({ ...entry, response: { ...entry.response, status: 0 } })).response, undefined);
});

test("what programs write in other ways is read in one", () => {
  const { _weir: _dropped, ...entry } = toHarEntry(ORDINARY, decodeContent);
  const read = fromHarEntry(
    throughFile({
      ...entry,
      request: {
        ...entry.request,
        headers: [{ name: "X-Folded", value: "a\n\tb\r\nc" }],
        postData: {
          mimeType: "application/x-www-form-urlencoded",
          text: "",
          params: [{ name: "a", value: "1 2" }, { name: "b" }],
        },
      },
      response: {
        ...entry.response,
        headers: [
          { name: "Set-Cookie", value: "a=1\nb=2" },
          { name: "Link", value: "<a>\n<b>\n" },
          { name: "Empty", value: "" },
        ],
        content: { size: 2, mimeType: "image/png", text: "AP8=", encoding: "Base64" as "base64" },
      },
    }),
  );
  assert.deepEqual(read.request.fields, ["X-Folded", "a\n\tb\r\nc"]);
  assert.equal(new TextDecoder().decode(read.request.body?.bytes), "a=1+2&b=");
  const fields = ["Set-Cookie", "a=1", "Set-Cookie", "b=2", "Link", "<a>", "Link", "<b>", "Empty", ""];
  assert.deepEqual(read.response?.fields, fields);
  assert.deepEqual([...(read.response?.body?.bytes ?? [])], [0, 255]);
});

test("a message that should be base64 and is not is left out", () => {
  const message = { type: "receive", time: 1, opcode: 2 };
  const data = ["AP8=", "\u0000\u00ff", "AP8"];
  const entry = toHarEntry(ORDINARY, decodeContent);
  const read = fromHarEntry({ ...entry, _webSocketMessages: data.map((each) => ({ ...message, data: each })) });
  assert.deepEqual(
    read.webSocketMessages?.map(({ data: bytes }) => [...bytes]),
    [
      [0, 255],
      [0, 255],
    ],
  );
});

test("a body whose text another program left out is as large as the program says, and none where none can be", () => {
  const { _weir: _dropped, ...entry } = toHarEntry(ORDINARY, decodeContent);
  const { postData: _postData, ...request } = entry.request;
  const { text: _text, ...content } = entry.response.content;
  const read = (response: Partial<HarEntry["response"]>, method = "POST") =>
    fromHarEntry(
      throughFile({ ...entry, request: { ...request, method }, response: { ...entry.response, ...response } }),
    );
  const cases: readonly (readonly [number, number, number, string | undefined, string, number | undefined])[] = [
    [300, 500, 200, undefined, "GET", 300],
    [-1, 500, 200, undefined, "GET", 500],
    [0, 500, 200, "", "GET", 500],
    [-1, 0, 200, undefined, "GET", undefined],
    [300, 500, 304, undefined, "GET", undefined],
    [300, 500, 200, undefined, "HEAD", undefined],
    [300, 500, 200, "abc", "GET", undefined],
  ];
  for (const [bodySize, size, status, text, method, missing] of cases) {
    const shown = { ...content, size, ...(text !== undefined && { text }) };
    const { response } = read({ status, bodySize, content: shown }, method);
    assert.equal(response?.missingBodyBytes, missing);
    assert.equal(response?.body === undefined, text !== "abc");
  }
  assert.equal(read({}).request.missingBodyBytes, 9);
  assert.deepEqual([read({}).request.body, fromHarEntry(entry).request.missingBodyBytes], [undefined, undefined]);
});

test("a body that was not captured is as large as it was, and says so in a comment", () => {
  assert.ok(ORDINARY.response !== undefined);
  const exchange: HarExchange = {
    ...ORDINARY,
    request: { ...ORDINARY.request, body: undefined, missingBodyBytes: 77 },
    response: { ...ORDINARY.response, body: undefined, missingBodyBytes: 300 },
  };
  const entry = toHarEntry(exchange, decodeContent);
  const { content, bodySize } = entry.response;
  assert.deepEqual([entry.request.bodySize, entry.request.postData, bodySize], [77, undefined, 300]);
  assert.equal(entry.request.comment, "the body was not captured");
  assert.deepEqual(content, { size: 300, mimeType: "application/json", comment: "the body was not captured" });
  assert.deepEqual(problemsOf(entry), []);
  assert.deepEqual(fromHarEntry(throughFile(entry)), exchange);
});

test("the whole is the time to wait where another program measured no phase", () => {
  const { _weir: _dropped, ...entry } = toHarEntry(ORDINARY, decodeContent);
  for (const [timings, time, wait] of [
    [{ send: 0, wait: 0, receive: 0 }, 350, 350],
    [{ blocked: -1, dns: -1, connect: -1, send: -1, wait: -1, receive: -1, ssl: -1 }, 350, 350],
    [{ send: 0, wait: 0, receive: 5 }, 350, 0],
    [{ send: 0, wait: 0, receive: 0 }, -1, 0],
  ] as const) {
    assert.equal(fromHarEntry(throughFile({ ...entry, time, timings })).timings.wait, wait);
  }
});

test("a forged record of ours is read with suspicion", () => {
  const entry = toHarEntry(ORDINARY, decodeContent);
  const forged = {
    version: 1,
    id: 7,
    session: ["x"],
    passthrough: "yes",
    more: [],
    timings: { wait: -5, dns: "1", connect: 1e300 },
    response: { transferred: -1, raw: 3, truncated: 1 },
    request: "no",
  };
  const exchange = fromHarEntry(throughFile({ ...entry, _weir: forged }));
  assert.deepEqual(exchange.weir, {
    id: undefined,
    session: undefined,
    isPassthrough: false,
    failure: undefined,
    more: undefined,
  });
  assert.deepEqual([exchange.timings.wait, exchange.timings.connect], [undefined, undefined]);
  assert.equal(new TextDecoder().decode(exchange.response?.body?.bytes), '{"ok":true}');
  assert.equal(fromHarEntry(throughFile({ ...entry, _weir: { version: 2, id: "x" } })).weir.id, undefined);
});

const anyText = fc.string({ unit: anyCharacter, maxLength: 12 });
/** Built here: `fc.webUrl` creates a table of all characters. */
const encodedText = anyText.map(encodeURIComponent);
const anyUrl = fc
  .tuple(
    fc.constantFrom("http", "https"),
    fc.webAuthority({ withPort: true, withIPv4: true, withIPv6: true }),
    fc.array(encodedText, { maxLength: 4 }),
    fc.option(encodedText),
    fc.option(encodedText),
  )
  .map(([scheme, authority, path, query, fragment]) => {
    const ends = [query === null ? "" : `?${query}`, fragment === null ? "" : `#${fragment}`];
    return `${scheme}://${authority}${path.map((segment) => `/${segment}`).join("")}${ends.join("")}`;
  });
const flatFields = fc
  .array(
    fc.oneof(
      fc.tuple(fc.constantFrom("Cookie", "set-cookie", "X-A", "x-a", "Location", ""), anyText),
      fc.tuple(
        fc.constantFrom("Content-Type", "content-type"),
        fc.constantFrom(
          "text/plain",
          "application/json; charset=utf-8",
          "text/x; charset=latin1",
          "application/x-www-form-urlencoded",
          "multipart/form-data; boundary=B",
        ),
      ),
      fc.tuple(fc.constant("Content-Encoding"), fc.constantFrom("gzip", "br", "identity", "zstd", "")),
    ),
    { maxLength: 6 },
  )
  .map((pairs) => pairs.flat());
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  anyText.map((text) => new TextEncoder().encode(text)),
  anyText.map((text) => new Uint8Array(gzipSync(text))),
  fc
    .constantFrom("a=1&b=%zz&&c", "--B\r\ncontent-disposition: form-data; name=x\r\n\r\ny\r\n--B--")
    .map((text) => new TextEncoder().encode(text)),
);
const body = fc.option(
  fc
    .tuple(bytes, fc.boolean(), fc.boolean(), fc.option(fc.nat(100), { nil: undefined }), fc.boolean())
    .map(([kept, isEncoded, isTruncated, count, isExact]) =>
      bodyOf(kept, { isEncoded, isTruncated, transferredBytes: isExact ? kept.length : count }),
    ),
  { nil: undefined },
);
const optionalText = fc.option(
  anyText.filter((text) => text !== ""),
  { nil: undefined },
);
const duration = fc.option(
  fc.oneof(
    fc.nat(5000),
    fc.double({ min: 0, max: 1e6, noNaN: true }).map((ms) => ms + 0),
  ),
  { nil: undefined },
);
const version = fc.constantFrom("HTTP/1.0", "HTTP/1.1", "HTTP/2", "SOCKS5", "");

const exchanges: fc.Arbitrary<HarExchange> = fc.record(
  {
    startedMs: fc.integer({ min: 0, max: 4_102_444_800_000 }),
    request: fc.record(
      {
        method: fc.constantFrom("GET", "POST", "CONNECT", "m-search", "X!"),
        url: fc.oneof(
          anyUrl,
          anyText.filter((text) => text !== ""),
        ),
        httpVersion: version,
        fields: flatFields,
        body,
      },
      { noNullPrototype: true },
    ),
    response: fc.option(
      fc.record(
        { status: fc.integer({ min: 100, max: 999 }), reason: anyText, httpVersion: version, fields: flatFields, body },
        { noNullPrototype: true },
      ),
      { nil: undefined },
    ),
    timings: fc.record(
      {
        blocked: duration,
        dns: duration,
        connect: duration,
        tls: duration,
        send: duration,
        wait: duration,
        receive: duration,
      },
      { noNullPrototype: true },
    ),
    serverAddress: fc.oneof(fc.constantFrom("1.2.3.4:80", "[::1]:443", "::1", "1.2.3.4", undefined), optionalText),
    clientAddress: optionalText,
    connectionId: optionalText,
    note: fc.option(anyText, { nil: undefined }),
    webSocketMessages: fc.option(
      fc.array(
        fc.record(
          {
            from: fc.constantFrom("client" as const, "server" as const),
            atMs: fc.integer({ min: 0, max: 4_102_444_800_000 }),
            opcode: fc.constantFrom(1, 2, 8, 9),
            data: bytes,
          },
          { noNullPrototype: true },
        ),
        { maxLength: 3 },
      ),
      { nil: undefined },
    ),
    weir: fc.record(
      {
        id: fc.option(anyText, { nil: undefined }),
        session: fc.option(anyText, { nil: undefined }),
        isPassthrough: fc.boolean(),
        failure: optionalText,
        more: fc.constantFrom(undefined, { a: [1, { b: null }] }),
      },
      { noNullPrototype: true },
    ),
  },
  { noNullPrototype: true },
);

test("any exchange becomes a valid HAR entry and comes back identical", () => {
  fc.assert(
    fc.property(exchanges, (exchange) => {
      const entry = toHarEntry(exchange, decodeContent);
      assert.deepEqual(problemsOf(entry), []);
      assert.deepEqual(fromHarEntry(throughFile(entry)), exchange);
    }),
    { numRuns: 3000 },
  );
});
