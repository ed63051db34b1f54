import assert from "node:assert/strict";
import { test } from "node:test";
import { CHUNKED } from "@headworks/http1";
import { responseFields, switchFields } from "./http-connection.ts";

test("a response carries our own Connection and keeps Trailer", () => {
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

test("a 101 keeps the fields that name the new protocol", () => {
  assert.deepEqual(switchFields(["Connection", "Upgrade", "Upgrade", "websocket", "A", "1"]), [
    "Connection",
    "Upgrade",
    "Upgrade",
    "websocket",
    "A",
    "1",
  ]);
});
