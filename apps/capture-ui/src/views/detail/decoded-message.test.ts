import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import type { TrafficEntry } from "@headworks/capture-contract";
import { contentCodings, messageLines } from "./decoded-message.ts";

function response(body: Buffer | null, coding: string | null): NonNullable<TrafficEntry["response"]> {
  return {
    status_code: 200,
    status_message: "OK",
    headers: {},
    headers_list: coding === null ? [] : [["Content-Encoding", coding]],
    body: body === null ? null : `base64:${body.toString("base64")}`,
    body_encoding: body === null ? null : "base64",
    body_size: body?.length ?? 0,
    body_stored_size: body?.length ?? 0,
    body_state: body === null ? "none" : "complete",
    truncated: false,
    content_type: null,
    duration_ms: 1,
    http_version: null,
  };
}

test("content codings are decoded, also several in sequence", async () => {
  const text = Buffer.from("one\ntwo");
  assert.deepEqual((await messageLines(response(gzipSync(text), "gzip"))).body, ["one", "two"]);
  assert.deepEqual((await messageLines(response(gzipSync(deflateSync(text)), "deflate, gzip"))).body, ["one", "two"]);
  assert.deepEqual((await messageLines(response(text, null))).body, ["one", "two"]);
});

test("an undecodable body is reported, and damaged bytes do not throw", async () => {
  for (const coding of ["gzip", "strange"]) {
    const shown = await messageLines(response(Buffer.from("no such coding"), coding));
    assert.deepEqual(shown.body, []);
    assert.match(shown.note ?? "", new RegExp(coding, "u"));
  }
  assert.equal((await messageLines(response(null, null))).note, null);
});

test("decoding stops at the size limit", async () => {
  // Expands to 32 MB, above the limit.
  const shown = await messageLines(response(gzipSync(Buffer.alloc(32_000_000)), "gzip, gzip"));
  assert.deepEqual([shown.body, shown.note], [[], "The body is too large to compare."]);
});

test("content codings are read from all fields", () => {
  assert.deepEqual(
    contentCodings({
      headers_list: [
        ["content-encoding", "GZIP, identity"],
        ["Content-Encoding", "br"],
      ],
    }),
    ["gzip", "br"],
  );
});
