import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bodyText, fieldPairs, joinedFields, shownRequest, shownResponse } from "./shown-message.ts";

test("the text of a body can be converted back to any bytes", () => {
  const back = (text: string): Buffer =>
    text.startsWith("base64:") ? Buffer.from(text.slice(7), "base64") : Buffer.from(text, "utf8");
  const bodies = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.string().map((text) => Buffer.from(text)),
  );
  fc.assert(
    fc.property(bodies, (bytes) => {
      assert.deepEqual(back(bodyText(bytes).body ?? "").compare(bytes), 0);
    }),
  );
  assert.deepEqual(bodyText(Buffer.from("base64:x")).body_encoding, "base64");
  assert.deepEqual(bodyText(undefined), { body: null, body_encoding: null });
});

test("repeated fields are joined under the first spelling, cookies by lines", () => {
  const fields = ["Accept", "a", "set-cookie", "x=1", "ACCEPT", "b", "Set-Cookie", "y=2, z"];
  assert.deepEqual(joinedFields(fields), { Accept: "a, b", "set-cookie": "x=1\ny=2, z" });
  assert.deepEqual(fieldPairs(fields)[2], ["ACCEPT", "b"]);
});

test("messages are shown with their URL, type and body", () => {
  const body = { bytes: Buffer.from("hé"), sizeBytes: 9, storedBytes: 3, state: "truncated" as const };
  const fields = ["Content-Type", "text/plain"];
  const request = shownRequest(
    {
      method: "PUT",
      scheme: "https",
      host: "::1",
      port: 8443,
      path: "/a?b",
      version: "HTTP/1.1",
      fields,
      trailers: ["T", "1"],
    },
    body,
  );
  assert.equal(request.url, "https://[::1]:8443/a?b");
  assert.deepEqual(
    [request.content_type, request.body, request.body_size, request.body_state, request.truncated],
    ["text/plain", "hé", 9, "truncated", true],
  );
  assert.deepEqual(request.trailers_list, [["T", "1"]]);
  const response = shownResponse(
    { status: 204, reason: "", version: "HTTP/1.0", fields: [], trailers: undefined },
    body,
    1.5,
  );
  assert.deepEqual([response.status_code, response.content_type, response.duration_ms], [204, null, 1.5]);
  assert.equal("trailers_list" in response, false);
});
