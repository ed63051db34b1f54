// Also tests body-diff.ts and header-diff.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { BodyDiff, EntryDiff } from "@headworks/capture-contract";
import fc from "fast-check";
import {
  compareBodies,
  compareEntries,
  compareHeaders,
  compileHeaderNames,
  type DiffSide,
  sideBody,
  type SideBody,
} from "./entry-diff.ts";
import { compileIgnoredPaths } from "./json-diff.ts";

const ignoring = (...patterns: string[]) => {
  const compiled = compileIgnoredPaths(patterns);
  assert.ok(compiled.ok);
  return compiled.paths;
};
const plain = { ignored: ignoring(), shape: false };

const body = (text: string | null, type: string | null = null, more: object = {}): SideBody =>
  sideBody(
    {
      body: text,
      content_type: type,
      body_size: text?.length ?? 0,
      body_state: text === null ? "none" : "complete",
      ...more,
    },
    null,
  );

const NONE = { left_size: null, right_size: null };
const BODIES: readonly [string, SideBody, SideBody, Partial<BodyDiff>][] = [
  ["two absent bodies", body(null), body(null), { kind: "none", ...NONE }],
  ["the same text", body("a"), body("a"), { kind: "same" }],
  [
    "JSON that means the same",
    body('{"a":1}', "application/json"),
    body(' {"a": 1.0}', "application/json"),
    { kind: "same" },
  ],
  ["JSON", body("[1]", "application/problem+json"), body("[2]"), { kind: "json", ignored_changes: 0 }],
  [
    "JSON and what is said to be JSON",
    body("[1]", "application/json"),
    body("[2", "application/json"),
    { kind: "text" },
  ],
  ["text and JSON", body("x"), body("{}"), { kind: "text" }],
  ["text and nothing", body("x"), body(null), { kind: "text", left_size: 1, right_size: null }],
  ["bytes", body("base64:AAE="), body("base64:AAI="), { kind: "binary" }],
  ["the same bytes", body("base64:AAE="), body("base64:AAE="), { kind: "same" }],
  ["bytes and nothing", body("base64:AAE="), body(null), { kind: "binary" }],
  ["bytes and text", body("base64:AAE="), body("x", "text/plain"), { kind: "binary" }],
  [
    "a body that was cut",
    body("x", null, { body_state: "truncated" }),
    body("x"),
    { kind: "incomparable", reason: "The left body was stored in part" },
  ],
  [
    "a body that was not stored",
    body("x"),
    body(null, null, { body_state: "not_stored", body_size: 5 }),
    { kind: "incomparable" },
  ],
  ["nothing and an empty list", body(null), body("[]", "application/json"), { kind: "text" }],
  [
    "text without end",
    body("x".repeat(4_194_305)),
    body("y"),
    { kind: "binary", reason: "Too long to be compared as text" },
  ],
  ["nesting without end", body("[".repeat(100_000)), body("[]"), { kind: "text" }],
  ["deep nesting", body("[".repeat(600) + "]".repeat(600)), body("[]"), { kind: "text" }],
];
for (const [what, left, right, expected] of BODIES) {
  test(`${what} compared: ${expected.kind}`, () => {
    const diff = compareBodies(left, right, plain) as Record<string, unknown>;
    for (const [name, value] of Object.entries(expected)) assert.deepEqual(diff[name], value, name);
  });
}

test("hashes decide about bytes where they are known", () => {
  const bytes = (sha256: string, sizeBytes = 3): SideBody => ({ kind: "binary", sizeBytes, sha256 });
  assert.equal(compareBodies(bytes("a"), bytes("a"), plain).kind, "same");
  assert.deepEqual(compareBodies(bytes("a"), bytes("b"), plain), {
    kind: "binary",
    left_size: 3,
    right_size: 3,
    left_sha256: "a",
    right_sha256: "b",
  });
});

test("with shape, values may differ and types may not", () => {
  const shape = { ...plain, shape: true };
  const left = body('{"rows":[{"id":1,"name":"a"},{"id":2,"name":"b"}]}');
  assert.equal(compareBodies(left, body('{"rows":[{"id":7,"name":"z"}]}'), shape).kind, "same");
  assert.deepEqual(compareBodies(left, body('{"rows":[{"id":"7","name":"z"}]}'), shape).changes, [
    { path: "/rows/0/id", op: "replace", left: "number", right: "string" },
  ]);
});

test("header fields are compared by name, values in order, and some may differ", () => {
  const ignored = compileHeaderNames();
  const diff = compareHeaders(
    [
      ["Date", "1"],
      ["A", "1"],
      ["a", "2"],
      ["X-Gone", "x"],
      ["Same", "s"],
    ],
    [
      ["same", "s"],
      ["a", "2"],
      ["A", "1"],
      ["date", "2"],
      ["X-My-Request-Id", "r"],
    ],
    ignored,
  );
  assert.deepEqual(diff, {
    changed: [
      { name: "A", left: ["1", "2"], right: ["2", "1"] },
      { name: "X-Gone", left: ["x"], right: null },
    ],
    ignored: [
      { name: "Date", left: ["1"], right: ["2"] },
      { name: "X-My-Request-Id", left: null, right: ["r"] },
    ],
  });
});

test("a star in the name of a field stands for any characters", () => {
  const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 6 });
  const name = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 8 });
  fc.assert(
    fc.property(pattern, name, (given, field) => {
      const expected = new RegExp(`^${given.replaceAll("*", ".*")}$`, "u").test(field);
      assert.equal(compileHeaderNames([given])(field), expected);
    }),
    { numRuns: 1000 },
  );
});

const TIMINGS = { blocked: null, dns: null, connect: 1, tls: null, send: 0.1, wait: 5, receive: 1 };

function side(more: Partial<DiffSide> = {}): DiffSide {
  return {
    id: "x",
    request: { method: "GET", url: "http://a/", headers_list: [["Host", "a"]] },
    response: { status_code: 200, headers_list: [["Date", "1"]] },
    requestBody: { kind: "none" },
    responseBody: body("[1]"),
    failureCode: null,
    durationMs: 10,
    timings: TIMINGS,
    ...more,
  };
}

const compared = (left: DiffSide, right: DiffSide, paths: string[] = []): EntryDiff =>
  compareEntries(left, right, { ignored: ignoring(...paths), shape: false, ignoredHeaders: compileHeaderNames() });

test("entries that differ where they may, and in time, are the same", () => {
  const right = side({
    response: { status_code: 200, headers_list: [["Date", "2"]] },
    durationMs: 12.5,
    responseBody: body("[2]"),
  });
  const diff = compared(side(), right, ["$[*]"]);
  assert.deepEqual(
    [diff.same, diff.response_body.ignored_changes, diff.timings["duration"]],
    [true, 1, { left: 10, right: 12.5, delta: 2.5 }],
  );
  assert.deepEqual(diff.timings["dns"], { left: null, right: null, delta: null });
});

const DIFFERENT: readonly [string, Partial<DiffSide>, "request" | "response"][] = [
  ["method", { request: { method: "PUT", url: "http://a/", headers_list: [["Host", "a"]] } }, "request"],
  ["URL", { request: { method: "GET", url: "http://a/b", headers_list: [["Host", "a"]] } }, "request"],
  ["request field", { request: { method: "GET", url: "http://a/", headers_list: [["Host", "b"]] } }, "request"],
  ["request body", { requestBody: body("x") }, "request"],
  ["status", { response: { status_code: 201, headers_list: [["Date", "1"]] } }, "response"],
  ["missing answer", { response: null, responseBody: { kind: "none" }, failureCode: "UPSTREAM_RESET" }, "response"],
  ["field", { response: { status_code: 200, headers_list: [["Etag", "1"]] } }, "response"],
  ["body", { responseBody: body("[2]") }, "response"],
  ["unknown body", { responseBody: { kind: "unknown", sizeBytes: 3, reason: "was not stored" } }, "response"],
];
for (const [what, more, where] of DIFFERENT) {
  test(`another ${what} is a difference of the ${where} alone`, () => {
    const diff = compared(side(), side(more));
    assert.deepEqual(
      [diff.same, diff.request_same, diff.response_same],
      [false, where !== "request", where !== "response"],
    );
  });
}
