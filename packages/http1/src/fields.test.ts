import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  areSameFields,
  CHUNKED,
  connectionOptions,
  countDownForwards,
  countedDown,
  fieldValue,
  fieldValues,
  type Framing,
  hasField,
  isLastRecipient,
  lengthFraming,
  NO_BODY,
  type RawFields,
  removeField,
  setField,
  setFraming,
  tracedRequest,
  UNTIL_CLOSE,
  withoutHopByHop,
} from "./index.ts";

const FIELDS: Readonly<RawFields> = ["Host", "a", "X-One", "1", "x-ONE", "2", "Other", ""];

test("fields are the same only letter by letter, in their order", () => {
  assert.ok(areSameFields(FIELDS, [...FIELDS]));
  assert.ok(areSameFields([], []));
  const others = [
    [],
    FIELDS.slice(2),
    [...FIELDS, "A", ""],
    ["host", ...FIELDS.slice(1)],
    ["Host", "b", ...FIELDS.slice(2)],
  ];
  for (const other of others) assert.ok(!areSameFields(FIELDS, other), JSON.stringify(other));
});

test("fields are found in any letter case, in order", () => {
  assert.equal(fieldValue(FIELDS, "x-one"), "1");
  assert.deepEqual(fieldValues(FIELDS, "x-one"), ["1", "2"]);
  assert.equal(fieldValue(FIELDS, "other"), "");
  assert.equal(hasField(FIELDS, "other"), true);
  assert.equal(fieldValue(FIELDS, "1"), undefined, "a value is not a name");
  assert.equal(hasField(FIELDS, "x-on"), false);
});

test("setting a field keeps its position, takes its new spelling and removes repeats", () => {
  const fields = [...FIELDS];
  setField(fields, "X-one", "new");
  assert.deepEqual(fields, ["Host", "a", "X-one", "new", "Other", ""]);
  setField(fields, "Last", "z");
  assert.deepEqual(fields, ["Host", "a", "X-one", "new", "Other", "", "Last", "z"]);
});

test("removing a field removes all of it and tells whether it was there", () => {
  const fields = [...FIELDS];
  assert.equal(removeField(fields, "x-one"), true);
  assert.deepEqual(fields, ["Host", "a", "Other", ""]);
  assert.equal(removeField(fields, "x-one"), false);
});

test("after setField there is exactly one such field, and all others are as before", () => {
  const name = fc.constantFrom("A", "a", "B", "b", "Cc", "cC");
  fc.assert(
    fc.property(fc.array(fc.tuple(name, fc.string())), name, fc.string(), (pairs, changed, value) => {
      const fields = pairs.flat();
      const isOther = ([other]: readonly [string, string]): boolean => other.toLowerCase() !== changed.toLowerCase();
      setField(fields, changed, value);
      assert.deepEqual(fieldValues(fields, changed.toLowerCase()), [value]);
      removeField(fields, changed.toLowerCase());
      assert.deepEqual(fields, pairs.filter(isOther).flat());
    }),
  );
});

test("connection options come from all Connection fields, lower-cased", () => {
  assert.deepEqual(connectionOptions(["Connection", " Close ,X-A,,", "CONNECTION", "keep-alive"]), [
    "close",
    "x-a",
    "keep-alive",
  ]);
  assert.deepEqual(connectionOptions(FIELDS), []);
});

test("what concerns one connection only is not forwarded", () => {
  const dropped =
    "Connection Keep-Alive Proxy-Connection Proxy-Authorization Proxy-Authenticate TE Trailer Upgrade X-Private";
  const fields = ["Host", "a", ...dropped.split(" ").flatMap((name) => [name, "close, X-Private, upgrade"])];
  fields.push("Transfer-Encoding", "chunked", "Accept", "*/*");
  const before = [...fields];
  assert.deepEqual(withoutHopByHop(fields), ["Host", "a", "Transfer-Encoding", "chunked", "Accept", "*/*"]);
  assert.deepEqual(fields, before, "the original stays as it was");
});

test("a client cannot have framing, routing or identity fields removed by naming them in Connection", () => {
  const names = [
    "Host",
    "Content-Length",
    "Transfer-Encoding",
    "Authorization",
    "Cookie",
    "X-Forwarded-For",
    "x-forwarded-user",
    "Forwarded",
  ];
  const fields = ["Connection", names.join(", "), ...names.flatMap((name) => [name, "v"]), "X-Consumer", "c"];
  assert.deepEqual(withoutHopByHop(fields), fields.slice(2));
  const naming = ["Connection", "X-Consumer", "X-Consumer", "c"];
  assert.deepEqual(withoutHopByHop(naming), []);
});

test("hop-by-hop fields can be kept", () => {
  const fields = ["TE", "trailers", "Trailer", "X", "A", "b"];
  assert.deepEqual(withoutHopByHop(fields, { keep: new Set(["te"]) }), ["TE", "trailers", "A", "b"]);
});

const FRAMED: readonly (readonly [string, RawFields, Framing, RawFields])[] = [
  [
    "a length that is there stays",
    ["content-length", "3", "A", "b"],
    lengthFraming(3),
    ["content-length", "3", "A", "b"],
  ],
  [
    "equal lengths become one",
    ["Content-Length", "3", "A", "b", "content-length", "3"],
    lengthFraming(3),
    ["Content-Length", "3", "A", "b"],
  ],
  ["a list becomes a number", ["Content-Length", "3, 3"], lengthFraming(3), ["Content-Length", "3"]],
  ["a length replaces a coding", ["Transfer-Encoding", "chunked"], lengthFraming(3), ["Content-Length", "3"]],
  [
    "chunked removes the length beside it",
    ["Content-Length", "9", "Transfer-Encoding", "chunked"],
    CHUNKED,
    ["Transfer-Encoding", "chunked"],
  ],
  [
    "two codings become one",
    ["Transfer-Encoding", "chunked", "transfer-encoding", "CHUNKED"],
    CHUNKED,
    ["Transfer-Encoding", "chunked"],
  ],
  ["chunked is added", ["A", "b"], CHUNKED, ["A", "b", "Transfer-Encoding", "chunked"]],
  ["until-close leaves neither", ["Transfer-Encoding", "identity", "content-length", "3"], UNTIL_CLOSE, []],
  ["no body keeps the length that HEAD reports", ["Content-Length", "3"], NO_BODY, ["Content-Length", "3"]],
  [
    "no body keeps one length of several",
    ["Content-Length", "3", "Content-Length", "3"],
    NO_BODY,
    ["Content-Length", "3"],
  ],
  ["no body drops the coding", ["Transfer-Encoding", "chunked"], NO_BODY, []],
];

for (const [name, fields, framing, expected] of FRAMED) {
  test(`framing fields say what was read: ${name}`, () => {
    const changed = [...fields];
    setFraming(changed, framing);
    assert.deepEqual(changed, expected);
  });
}

const COUNTERS: readonly (readonly [method: string, sent: string, forwarded: string, isLast: boolean])[] = [
  ["OPTIONS", "1", "0", false],
  ["OPTIONS", "10", "9", false],
  ["TRACE", "3", "2", false],
  ["TRACE", "0", "0", true],
  ["OPTIONS", "00", "0", true],
  ["OPTIONS", "99999999999999999999", "2147483647", false],
  ["OPTIONS", "-1", "-1", false],
  ["OPTIONS", "0x1", "0x1", false],
  ["OPTIONS", "", "", false],
  ["GET", "0", "0", false],
  ["GET", "7", "7", false],
  ["options", "0", "0", false],
];

for (const [method, sent, forwarded, isLast] of COUNTERS) {
  test(`Max-Forwards "${sent}" of ${method} is forwarded as "${forwarded}"${isLast ? ", if at all" : ""}`, () => {
    const fields = ["A", "1", "MAX-Forwards", sent];
    assert.equal(isLastRecipient(method, fields), isLast);
    assert.equal(countedDown(method, sent), forwarded);
    countDownForwards(method, fields);
    assert.deepEqual(fields, ["A", "1", "MAX-Forwards", forwarded]);
  });
}

test("TRACE shows the request as it came, without what may be secret", () => {
  const shown = ["Host", "a.test", "Via", "1.1 edge", "Max-Forwards", "0", "X-Mine", "\xe9", "Accept", "*/*"];
  const hidden = [
    ["Authorization", "Proxy-Authorization", "Cookie", "Cookie2", "X-Api-Key", "X-Edge-Token", "X-Client-Secret"],
    [
      "X-Forwarded-For",
      "X-Real-IP",
      "Forwarded",
      "X-Amz-Signature",
      "Session-Id",
      "X-CSRF",
      "Ocp-Apim-Subscription-Key",
    ],
    ["X-Own", "CF-Connecting-IP", "X-SSL-Client-Cert"],
  ].flat();
  const fields = [...hidden.flatMap((name) => [name, "s3cret"]), ...shown];
  const text = tracedRequest({ method: "TRACE", target: "/a?b", version: "1.1", fields }, (name) => name === "x-own");
  assert.equal(
    text.toString("latin1"),
    "TRACE /a?b HTTP/1.1\r\nHost: a.test\r\nVia: 1.1 edge\r\nMax-Forwards: 0\r\nX-Mine: \xe9\r\nAccept: */*\r\n\r\n",
  );
});
