import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readDeflate } from "./index.ts";

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
