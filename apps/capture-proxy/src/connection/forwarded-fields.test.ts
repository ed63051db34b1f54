import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNKED } from "@headworks/http1";
import { responseFields, informationalFields, switchFields } from "./forwarded-fields.ts";

test("an answer carries our own Connection and keeps Trailer", () => {
  const fields = [
    "Connection",
    "close",
    "Keep-Alive",
    "timeout=5",
    "Trailer",
    "X",
    "Set-Cookie",
    "a",
    "set-cookie",
    "b",
  ];
  const start = { framing: CHUNKED, connection: "close" as const, closeAfterResponse: true };
  assert.deepEqual(responseFields(fields, start), [
    "Trailer",
    "X",
    "Set-Cookie",
    "a",
    "set-cookie",
    "b",
    "Transfer-Encoding",
    "chunked",
    "Connection",
    "close",
  ]);
});

test("a 101 keeps what names the new protocol; a 103 keeps its links", () => {
  assert.deepEqual(switchFields(["Connection", "Upgrade", "Upgrade", "websocket", "A", "1"]), [
    "Connection",
    "Upgrade",
    "Upgrade",
    "websocket",
    "A",
    "1",
  ]);
  assert.deepEqual(informationalFields(["Connection", "close", "Link", "</a.css>"]), ["Link", "</a.css>"]);
});
