import assert from "node:assert/strict";
import { test } from "node:test";
import { grpcFrameLine } from "@headworks/capture-contract";
import { frameKind, frameLine, isIncomplete, sinceStart } from "./frame-text.ts";

const frame = (change: Partial<Parameters<typeof frameLine>[0]>) => ({
  text: null,
  base64: null,
  size: 1,
  attributes: {},
  type: "event" as const,
  ...change,
});

test("any frame is summarized in one line", () => {
  assert.equal(frameLine(frame({ text: " a\n  b\tc " })), "a b c");
  assert.equal(frameLine(frame({ base64: Buffer.from([0, 255, 16]).toString("base64") })), "00 ff 10");
  assert.equal(frameLine(frame({ base64: Buffer.alloc(1000, 1).toString("base64") })).split(" ").length, 24);
  assert.equal(frameLine(frame({ text: "", size: 0, attributes: { comment: "keep\nalive" } })), ": keep alive");
  assert.equal(frameLine(frame({ text: "", size: 0, attributes: { retry: "300" } })), "reconnect after 300 ms");
  assert.equal(frameLine(frame({ text: "", size: 0 })), "");
  assert.equal(frameLine(frame({ type: "close", text: "no code", size: 0 })), "no code");
  assert.equal(
    frameLine(frame({ type: "close", text: "1000 Normal Closure: bye", size: 5 })),
    "1000 Normal Closure: bye",
  );
});

test("a gRPC message is shown as JSON, fields by number, trailers, or the reason why it cannot be decoded", () => {
  const field = (number: number, type: "string" | "nested", value: unknown) => ({
    number,
    wire_type: 2,
    name: null,
    value: { type, value },
  });
  const fields = [field(1, "string", "a b"), field(2, "nested", [field(3, "string", "c")])];
  const decoded = { message_type: null, fields, json: null as unknown, unknown_fields: [], issues: [] };
  const line = (change: Partial<Parameters<typeof grpcFrameLine>[0]>) =>
    grpcFrameLine({ trailers: null, decoded, issues: [], ...change });
  assert.equal(line({}), '[{"1":"a b"},{"2":[{"3":"c"}]}]');
  assert.equal(line({ decoded: { ...decoded, json: { id: "a  b" } } }), '{"id":"a  b"}');
  assert.equal(line({ decoded: { ...decoded, fields: [], json: {} } }), "{}");
  assert.equal(line({ trailers: { "grpc-status": "0" }, decoded: null }), '{"grpc-status":"0"}');
  assert.equal(line({ issues: ["cannot be decompressed"], decoded: null }), "cannot be decompressed");
  assert.equal(line({ decoded: null }), null);

  const base64 = Buffer.from([10, 1, 97]).toString("base64");
  assert.equal(frameLine(frame({ type: "message", base64, decodedLine: '{"id":"a  b"}' })), '{"id":"a  b"}');
  assert.equal(frameLine(frame({ type: "message", size: 0, decodedLine: "{}" })), "{}");
  assert.equal(frameLine(frame({ type: "message", base64, decodedLine: undefined })), "0a 01 61");
});

test("an event is labelled by its type, other frames by their kind", () => {
  assert.equal(frameKind(frame({ attributes: { event: "tick" } })), "tick");
  assert.equal(frameKind(frame({})), "message");
  assert.equal(frameKind(frame({ size: 0, attributes: { comment: "x" } })), "comment");
  assert.equal(frameKind(frame({ type: "ping" })), "ping");
  assert.equal(isIncomplete(frame({ attributes: { incomplete: "true" } })), true);
});

test("times are relative to the start of the stream", () => {
  const begin = "2026-01-01T00:00:00.000Z";
  assert.equal(sinceStart("2026-01-01T00:00:01.250Z", begin), "+1.250");
  assert.equal(sinceStart("2026-01-01T01:00:00.000Z", begin), "+3600");
  assert.equal(sinceStart("2025-12-31T23:59:59.000Z", begin), "+0.000");
  assert.equal(sinceStart("nonsense", begin), "—");
});
