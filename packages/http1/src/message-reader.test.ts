import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bytes, everyCut, readRequests, readResponse, singleBytes } from "../test/recording.ts";
import type { Http1ErrorCode, Oddity } from "./index.ts";
import { cleanHeadEnd } from "./message-reader.ts";

const REQUEST = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

const RESPONSE = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

interface Verdicts {
  /** Body, or the error's code. */
  readonly request: string | { readonly refused: Http1ErrorCode };
  readonly strict: string | { readonly refused: Http1ErrorCode };
  readonly lenient: string | { readonly refused: Http1ErrorCode };
  readonly oddities?: readonly Oddity[];
  readonly trailers?: readonly string[];
}

const refused = (code: Http1ErrorCode): { refused: Http1ErrorCode } => ({ refused: code });

function everywhere(verdict: string | { readonly refused: Http1ErrorCode }): Verdicts {
  return { request: verdict, strict: verdict, lenient: verdict };
}

const bad = (code: Http1ErrorCode): Verdicts => everywhere(refused(code));

/** name, chunked body, what each reader makes of it */
const FRAMINGS: readonly (readonly [string, string, Verdicts])[] = [
  ["one chunk", "5\r\nhello\r\n0\r\n\r\n", everywhere("hello")],
  ["no chunk", "0\r\n\r\n", everywhere("")],
  ["three chunks", "1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\n\r\n", everywhere("abcdef")],
  [
    "a size in small and capital letters",
    `a\r\n${"x".repeat(10)}\r\nB\r\n${"y".repeat(11)}\r\n0\r\n\r\n`,
    everywhere(`${"x".repeat(10)}${"y".repeat(11)}`),
  ],
  ["leading zeros within eight digits", "00000001\r\na\r\n00000000\r\n\r\n", everywhere("a")],
  ["data that looks like framing", "7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n", everywhere("0\r\n\r\n\r\n")],
  [
    "trailers",
    "1\r\na\r\n0\r\nX: y\r\nChecksum: \t1 \r\n\r\n",
    { ...everywhere("a"), trailers: ["X", "y", "Checksum", "1"] },
  ],
  ["nine digits", "000000001\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["a size that wraps 32 bits", "100000001\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["a size that wraps 64 bits", "10000000000000001\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["no size", "\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["a sign", "+1\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["a minus", "-1\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["0x", "0x1\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["a letter beyond f", "1g\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["an underscore", "1_0\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["a leading blank", " 1\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["a fullwidth-looking byte", "\xb1\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["NUL behind the size", "1\0\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  ["CR alone behind the size", "1\ra\r\n0\r\n\r\n", bad("bad-line-end")],
  ["CR CR LF behind the size", "1\r\r\na\r\n0\r\n\r\n", bad("bad-line-end")],
  ["more data than the size", "1\r\nab\r\n0\r\n\r\n", bad("bad-chunk-end")],
  ["less data than the size", "3\r\na\r\n0\r\n\r\n", bad("bad-chunk-end")],
  ["CR alone behind the data", "1\r\na\rb0\r\n\r\n", bad("bad-chunk-end")],
  ["no line end behind the data", "1\r\na0\r\n\r\n", bad("bad-chunk-end")],
  ["text instead of a next size", "1\r\na\r\nGET / HTTP/1.1\r\n\r\n", bad("bad-chunk-size")],
  [
    "LF behind the size",
    "1\na\r\n0\r\n\r\n",
    { request: refused("bad-line-end"), strict: refused("bad-line-end"), lenient: "a", oddities: ["bare-lf"] },
  ],
  [
    "LF behind the data",
    "1\r\na\n0\r\n\r\n",
    { request: refused("bad-chunk-end"), strict: refused("bad-chunk-end"), lenient: "a", oddities: ["bare-lf"] },
  ],
  [
    "LF as last line",
    "1\r\na\r\n0\r\n\n",
    { request: refused("bad-line-end"), strict: refused("bad-line-end"), lenient: "a", oddities: ["bare-lf"] },
  ],
  [
    "blanks behind the size",
    "1  \r\na\r\n0 \r\n\r\n",
    {
      request: refused("bad-chunk-size"),
      strict: refused("bad-chunk-size"),
      lenient: "a",
      oddities: ["chunk-size-padding"],
    },
  ],
  ["an extension", "1;x\r\na\r\n0\r\n\r\n", { request: refused("chunk-extension"), strict: "a", lenient: "a" }],
  [
    "quoted extensions",
    '1;a="0\\";";b=c;d\r\na\r\n0;y=z\r\n\r\n',
    { request: refused("chunk-extension"), strict: "a", lenient: "a" },
  ],
  [
    "blanks in an extension",
    "1;\tx= y \r\na\r\n0\r\n\r\n",
    {
      request: refused("chunk-extension"),
      strict: refused("bad-chunk-extension"),
      lenient: "a",
      oddities: ["odd-chunk-extension"],
    },
  ],
  [
    "an extension without a name",
    "1;\r\na\r\n0\r\n\r\n",
    {
      request: refused("chunk-extension"),
      strict: refused("bad-chunk-extension"),
      lenient: "a",
      oddities: ["odd-chunk-extension"],
    },
  ],
  [
    "an extension without a value",
    "1;x=\r\na\r\n0\r\n\r\n",
    {
      request: refused("chunk-extension"),
      strict: refused("bad-chunk-extension"),
      lenient: "a",
      oddities: ["odd-chunk-extension"],
    },
  ],
  [
    "an extension that is no token",
    "1;x(y)\r\na\r\n0\r\n\r\n",
    {
      request: refused("chunk-extension"),
      strict: refused("bad-chunk-extension"),
      lenient: "a",
      oddities: ["odd-chunk-extension"],
    },
  ],
  [
    "text behind a quoted extension",
    '1;x="y"z\r\na\r\n0\r\n\r\n',
    {
      request: refused("chunk-extension"),
      strict: refused("bad-chunk-extension"),
      lenient: "a",
      oddities: ["odd-chunk-extension"],
    },
  ],
  [
    "an open quote in an extension",
    '1;x="y\r\na\r\n0\r\n\r\n',
    {
      request: refused("chunk-extension"),
      strict: refused("bad-chunk-extension"),
      lenient: "a",
      oddities: ["odd-chunk-extension"],
    },
  ],
  [
    "a blank before an extension",
    "1 ;x\r\na\r\n0\r\n\r\n",
    {
      request: refused("bad-chunk-size"),
      strict: refused("bad-chunk-size"),
      lenient: "a",
      oddities: ["chunk-size-padding"],
    },
  ],
  [
    "an extension on the last chunk",
    "1\r\na\r\n0;x\r\n\r\n",
    { request: refused("chunk-extension"), strict: "a", lenient: "a" },
  ],
  ["LF inside an extension", "1;x\na\r\n0\r\n\r\n", { ...bad("bad-line-end"), request: refused("chunk-extension") }],
  [
    "CR inside an extension",
    "1;x\ry\r\na\r\n0\r\n\r\n",
    { ...bad("bad-line-end"), request: refused("chunk-extension") },
  ],
  [
    "NUL inside an extension",
    "1;x\0\r\na\r\n0\r\n\r\n",
    { ...bad("control-character"), request: refused("chunk-extension") },
  ],
  ["text behind blanks", "1 x\r\na\r\n0\r\n\r\n", bad("bad-chunk-size")],
  [
    "a folded trailer",
    "0\r\nX: a\r\n b\r\n\r\n",
    {
      request: refused("line-folding"),
      strict: refused("line-folding"),
      lenient: "",
      oddities: ["line-folding"],
      trailers: ["X", "a b"],
    },
  ],
  [
    "a trailer without a colon",
    "0\r\nX\r\n\r\n",
    { request: refused("bad-field-name"), strict: refused("bad-field-name"), lenient: "", oddities: ["dropped-line"] },
  ],
  ["a blank line of trailers", "0\r\n \r\n\r\n", bad("space-before-field")],
  [
    "a blank before a trailer's colon",
    "0\r\nX : y\r\n\r\n",
    {
      request: refused("space-before-colon"),
      strict: "",
      lenient: "",
      trailers: ["X", "y"],
    },
  ],
  [
    "LF behind a trailer",
    "0\r\nX: y\n\r\n",
    {
      request: refused("bad-line-end"),
      strict: refused("bad-line-end"),
      lenient: "",
      oddities: ["bare-lf"],
      trailers: ["X", "y"],
    },
  ],
  ["NUL in a trailer", "0\r\nX: y\0\r\n\r\n", bad("control-character")],
  ["CR in a trailer", "0\r\nX: y\rz\r\n\r\n", bad("bad-line-end")],
  ...[
    "Content-Length: 5",
    "transfer-encoding: chunked",
    "Host: b",
    "Authorization: x",
    "Connection: close",
    "Set-Cookie: a=b",
  ].map((line): readonly [string, string, Verdicts] => [
    `the trailer '${line}'`,
    `0\r\nX: y\r\n${line}\r\nZ: 1\r\n\r\n`,
    {
      request: refused("forbidden-trailer"),
      strict: refused("forbidden-trailer"),
      lenient: "",
      oddities: ["dropped-trailer"],
      trailers: ["X", "y", "Z", "1"],
    },
  ]),
];

const READERS = [
  ["request", (pieces: Buffer[]) => readRequests(pieces), REQUEST, 400],
  ["strict", (pieces: Buffer[]) => readResponse(pieces), RESPONSE, 502],
  ["lenient", (pieces: Buffer[]) => readResponse(pieces, { lenient: true }), RESPONSE, 502],
] as const;

for (const [name, body, verdicts] of FRAMINGS) {
  test(`a chunked body gets the same verdict however it is cut: ${name}`, () => {
    for (const [reader, read, head, status] of READERS) {
      const verdict = verdicts[reader];
      for (const pieces of everyCut(bytes(head + body))) {
        const { messages, error, status: given, oddities } = read(pieces);
        const [message] = messages;
        if (typeof verdict === "object") {
          assert.deepEqual([error, message?.ended], [verdict.refused, false], reader);
          assert.equal(given, status);
          continue;
        }
        assert.deepEqual([error, message?.ended, message?.body], [undefined, true, verdict], reader);
        assert.deepEqual(message?.trailers ?? [], verdicts.trailers ?? []);
        if (reader === "lenient") assert.deepEqual(oddities, verdicts.oddities ?? []);
      }
    }
  });
}

test("chunk lines, all extensions together, and trailers are bounded, however they are cut", () => {
  const limits = { chunkLineBytes: 64, chunkExtensionBytes: 100, trailerBytes: 50 };
  const cases: readonly (readonly [string, Http1ErrorCode | undefined])[] = [
    [`1;${"x".repeat(40)}\r\na\r\n0\r\n\r\n`, undefined],
    [`1;${"x".repeat(70)}\r\na\r\n0\r\n\r\n`, "chunk-line-too-long"],
    [`1;x="${" ".repeat(70)}"\r\na\r\n0\r\n\r\n`, "chunk-line-too-long"],
    [`${`1;${"x".repeat(40)}\r\na\r\n`.repeat(3)}0\r\n\r\n`, "chunk-line-too-long"],
    [`0\r\nX: ${"y".repeat(40)}\r\n\r\n`, undefined],
    [`0\r\nX: ${"y".repeat(50)}\r\n\r\n`, "trailers-too-large"],
  ];
  for (const [body, expected] of cases) {
    for (const cut of [(input: Buffer) => [input], singleBytes]) {
      assert.equal(readResponse(cut(bytes(RESPONSE + body)), { limits }).error, expected, body);
    }
  }
});

test("a cut chunked body is truncated, except that a lenient reader does without the last line", () => {
  const input = bytes(`${RESPONSE}1\r\na\r\n0\r\n\r\n`);
  for (let size = RESPONSE.length; size < input.length; size++) {
    const pieces = [input.subarray(0, size)];
    assert.equal(readResponse(pieces, { end: true }).error, "truncated");
    const lenient = readResponse(pieces, { end: true, lenient: true });
    const lacksLastLineOnly = size === input.length - 2;
    assert.equal(lenient.error, lacksLastLineOnly ? undefined : "truncated", `${size}`);
    if (lacksLastLineOnly) assert.deepEqual(lenient.oddities, ["missing-last-line"]);
  }
});

test("a chunk of the largest size is counted, not collected", () => {
  const { messages, error } = readResponse([bytes(`${RESPONSE}ffffffff\r\n`), Buffer.alloc(100_000, "x")]);
  assert.equal(error, undefined);
  assert.equal(messages[0]?.body.length, 100_000);
});

/** A direct implementation of the description. */
function naiveEnd(text: string, start: number, maxBytes: number): number {
  const match = /^(?:[\t\x20-\x7e\x80-\xff]+\r\n)*\r\n/.exec(text.slice(start));
  return match === null || match[0].length > maxBytes ? -1 : start + match[0].length;
}

const near = fc
  .array(
    fc.constantFrom(
      "a",
      "bcd",
      "\r\n",
      "\r\n",
      "\r\n\r\n",
      "\r",
      "\n",
      "\t",
      " ",
      "\x80",
      "\xff",
      "\x7f",
      "\x1f",
      "\0",
      "\x81\xa0",
    ),
    {
      maxLength: 40,
    },
  )
  .map((parts) => parts.join(""));

test("the end of a clean head is found exactly where a plain search finds it", () => {
  let found = 0;
  fc.assert(
    fc.property(near, fc.nat({ max: 9 }), fc.integer({ min: 1, max: 80 }), (text, skip, maxBytes) => {
      const start = Math.min(skip, text.length);
      const expected = naiveEnd(text, start, maxBytes);
      assert.equal(cleanHeadEnd(bytes(text), start, maxBytes), expected);
      if (expected > start + 2) found++;
    }),
    { numRuns: 20_000 },
  );
  assert(found > 300, `only ${found} clean heads`);
});

test("every byte value is judged alike at every place of a word", () => {
  for (let code = 0; code < 256; code++) {
    for (let at = 0; at < 8; at++) {
      const text = `${"x".repeat(at)}${String.fromCharCode(code)}y\r\n\r\n`;
      assert.equal(cleanHeadEnd(bytes(text), 0, 1_000), naiveEnd(text, 0, 1_000), `${code} at ${at}`);
    }
  }
});

test("heads longer than a block are found, up to 64 KiB", () => {
  for (const size of [2_043, 2_044, 2_045, 2_046, 2_047, 2_048, 2_049, 4_096, 65_532, 65_533]) {
    const text = `${"x".repeat(size)}\r\n\r\ntail`;
    assert.equal(cleanHeadEnd(bytes(text), 0, 100_000), size + 4 <= 65_536 ? size + 4 : -1, `${size}`);
  }
});

test("what an earlier head left in memory is never read as part of a later one", () => {
  assert.equal(cleanHeadEnd(bytes(`${"x".repeat(20)}\r\n\r\n`), 0, 100), 24);
  for (let size = 0; size < 24; size++) assert.equal(cleanHeadEnd(bytes("x".repeat(size)), 0, 100), -1);
});
