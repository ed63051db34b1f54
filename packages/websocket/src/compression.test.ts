import assert from "node:assert/strict";
import { test } from "node:test";
import { constants, deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { MessageDeflater, MessageInflater, readDeflate } from "./index.ts";

const DEFAULTS = {
  serverNoContextTakeover: false,
  clientNoContextTakeover: false,
  serverMaxWindowBits: 15,
  clientMaxWindowBits: 15,
};

test("every parameter of permessage-deflate is read, RFC 7692, 7.1", () => {
  const table: readonly [string, Partial<typeof DEFAULTS>][] = [
    ["permessage-deflate", {}],
    [" permessage-deflate ; server_no_context_takeover", { serverNoContextTakeover: true }],
    ["permessage-deflate;client_no_context_takeover", { clientNoContextTakeover: true }],
    ["permessage-deflate; server_max_window_bits=8", { serverMaxWindowBits: 8 }],
    ['permessage-deflate; client_max_window_bits="10"', { clientMaxWindowBits: 10 }],
    [
      "permessage-deflate; server_max_window_bits = 15; client_max_window_bits=9; server_no_context_takeover; client_no_context_takeover",
      { serverNoContextTakeover: true, clientNoContextTakeover: true, clientMaxWindowBits: 9 },
    ],
  ];
  for (const [value, expected] of table) {
    assert.deepEqual(readDeflate([value]), { deflate: { ...DEFAULTS, ...expected }, unknown: [] }, value);
  }
});

test("anything but valid permessage-deflate is reported as unknown", () => {
  const table: readonly string[] = [
    "x-webkit-deflate-frame",
    "permessage-bzip2",
    "permessage-deflate; server_max_window_bits=16",
    "permessage-deflate; server_max_window_bits=7",
    "permessage-deflate; server_max_window_bits=08",
    "permessage-deflate; client_max_window_bits",
    "permessage-deflate; server_no_context_takeover=1",
    "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
    "permessage-deflate; foo",
    "permessage-deflate; =8",
    "per message",
  ];
  for (const value of table) assert.deepEqual(readDeflate([value]), { deflate: undefined, unknown: [value] }, value);
  assert.deepEqual(readDeflate([]), { deflate: undefined, unknown: [] });
  assert.deepEqual(readDeflate(["", " , "]), { deflate: undefined, unknown: [] });
});

test("several fields are one list, and commas in quoted values are kept", () => {
  const { deflate, unknown } = readDeflate(['mux; a="b,c;d"', "permessage-deflate, permessage-deflate"]);
  assert.deepEqual(deflate, DEFAULTS);
  assert.deepEqual(unknown, ['mux; a="b,c;d"', "permessage-deflate"]);
});

test("no value makes parsing fail", () => {
  fc.assert(fc.property(fc.array(fc.string()), (values) => void readDeflate(values)));
});

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

function texts(inflater: MessageInflater, messages: readonly Buffer[]): string[] {
  return messages.map((message) => {
    const inflated = inflater.inflate(message);
    return inflated.kind === "message" ? inflated.payload.toString() : inflated.kind;
  });
}

test("the examples of RFC 7692, 7.2.3 are decompressed", () => {
  const table: readonly [string, readonly string[], readonly string[]][] = [
    ["one block", ["f2 48 cd c9 c9 07 00"], ["Hello"]],
    ["the window of the message before", ["f2 48 cd c9 c9 07 00", "f2 00 11 00 00"], ["Hello", "Hello"]],
    ["no compression", ["00 05 00 fa ff 48 65 6c 6c 6f 00"], ["Hello"]],
    ["a final block", ["f3 48 cd c9 c9 07 00 00"], ["Hello"]],
    ["two blocks", ["f2 48 05 00 00 00 ff ff ca c9 c9 07 00"], ["Hello"]],
    ["an empty message", ["00"], [""]],
  ];
  for (const [name, messages, expected] of table) {
    assert.deepEqual(texts(new MessageInflater(true, 1000), messages.map(hex)), expected, name);
  }
});

test("a block behind a final one belongs to the message", () => {
  const first = deflateRawSync(Buffer.from("first "));
  const second = deflateRawSync(Buffer.from("second"), { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
  assert.deepEqual(texts(new MessageInflater(true, 1000), [Buffer.concat([first, second])]), ["first second"]);
});

test("with and without context takeover, in every window, messages come back as they were", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 300 }), { maxLength: 12 }),
      fc.boolean(),
      fc.integer({ min: 8, max: 15 }),
      (messages, takesOver, windowBits) => {
        const deflater = new MessageDeflater(takesOver, windowBits);
        const compressed = messages.map((message) => deflater.deflate(Buffer.from(message)));
        assert.deepEqual(
          texts(new MessageInflater(takesOver, 10_000), compressed),
          messages.map((message) => Buffer.from(message).toString()),
        );
      },
    ),
  );
});

test("long messages refer back exactly as far as the window reaches", () => {
  const deflater = new MessageDeflater(true, 15);
  const inflater = new MessageInflater(true, 1_000_000);
  const noise = Buffer.from(Array.from({ length: 40_000 }, (_, index) => (index * 7919 + (index >> 3) * 31) & 0xff));
  for (const size of [1, 32_767, 32_768, 32_769, 40_000, 5, 100]) {
    const message = noise.subarray(0, size);
    const inflated = inflater.inflate(deflater.deflate(message));
    assert.ok(inflated.kind === "message" && inflated.payload.equals(message), String(size));
  }
});

test("a bomb is stopped at the limit, and what depends on it is not read", () => {
  const bomb = new MessageDeflater(false, 15).deflate(Buffer.alloc(50_000_000));
  assert.ok(bomb.length < 60_000);
  const taking = new MessageInflater(true, 1_000_000);
  assert.equal(taking.inflate(bomb).kind, "too-large");
  assert.equal(taking.inflate(hex("f2 48 cd c9 c9 07 00")).kind, "invalid");
  const free = new MessageInflater(false, 1_000_000);
  assert.equal(free.inflate(bomb).kind, "too-large");
  assert.deepEqual(texts(free, [hex("f2 48 cd c9 c9 07 00")]), ["Hello"]);
  const exact = new MessageInflater(true, 5);
  assert.deepEqual(texts(exact, [hex("f2 48 cd c9 c9 07 00")]), ["Hello"]);
  assert.equal(new MessageInflater(true, 4).inflate(hex("f2 48 cd c9 c9 07 00")).kind, "too-large");
});

test("random bytes are decompressed or refused, never more than allowed", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), fc.boolean(), (messages, takesOver) => {
      const inflater = new MessageInflater(takesOver, 500);
      for (const message of messages) {
        const inflated = inflater.inflate(Buffer.from(message));
        if (inflated.kind === "message") assert.ok(inflated.payload.length <= 500);
      }
    }),
  );
});
