import assert from "node:assert/strict";
import { test } from "node:test";
import { headerDraft } from "../../rules/message-draft.ts";
import { newTrial, testedLines, trialOf } from "./script-trial.ts";

const SOURCE = "function onRequest() {}";

test("a request hook is tested with the request only", () => {
  const draft = {
    ...newTrial(),
    url: " https://a.example/x ",
    requestHeaders: [headerDraft("A", "1"), headerDraft("a", "2")],
  };
  assert.deepEqual(trialOf(draft, SOURCE, "on_request"), {
    ok: true,
    test: {
      source: SOURCE,
      hook: "on_request",
      request: { method: "GET", url: "https://a.example/x", headers: { A: ["1", "2"] }, body: null },
    },
  });
});

test("a response hook is tested with request and response", () => {
  const built = trialOf({ ...newTrial(), status: "404", responseHeaders: [] }, SOURCE, "on_response");
  assert.ok(built.ok);
  assert.deepEqual(built.test.response, { status_code: 404, headers: {}, body: '{"id":1,"status":"open"}' });
});

test("a captured entry replaces request and response", () => {
  const draft = { ...newTrial(), input: "entry" as const, entryId: "e1" };
  assert.deepEqual(trialOf(draft, SOURCE, "on_response"), {
    ok: true,
    test: { source: SOURCE, hook: "on_response", entry_id: "e1" },
  });
  assert.deepEqual(trialOf({ ...draft, entryId: null }, SOURCE, "on_response"), {
    ok: false,
    message: "Choose a captured request",
  });
});

test("binary messages are sent as base64 with their type", () => {
  const draft = { ...newTrial(), payload: { encoding: "base64" as const, text: "AAEC" } };
  const built = trialOf(draft, SOURCE, "on_websocket_message");
  assert.deepEqual(built.ok && built.test.message, {
    direction: "send",
    payload: "base64:AAEC",
    message_type: "binary",
  });
  const call = trialOf({ ...draft, service: "shop.Orders", rpc: "Get" }, SOURCE, "on_grpc_message");
  assert.deepEqual(call.ok && call.test.message, {
    direction: "send",
    payload: "base64:AAEC",
    service: "shop.Orders",
    method: "Get",
  });
});

test("the hooks of sessions need no input", () => {
  assert.deepEqual(trialOf({ ...newTrial(), url: "" }, SOURCE, "on_session_start"), {
    ok: true,
    test: { source: SOURCE, hook: "on_session_start" },
  });
});

for (const [change, hook, message] of [
  [{ url: "orders" }, "on_request", "Enter an absolute URL"],
  [{ status: "20x" }, "on_response", "The status must be a number from 100 to 599"],
  [{ requestBody: { encoding: "base64", text: "?" } }, "on_request", "The request body is not valid base64"],
  [{ payload: { encoding: "base64", text: "?" } }, "on_grpc_message", "The message is not valid base64"],
] as const) {
  test(`a test is refused: ${message}`, () => {
    assert.deepEqual(trialOf({ ...newTrial(), ...change }, SOURCE, hook), { ok: false, message });
  });
}

test("messages are compared line by line, JSON indented", () => {
  const lines = testedLines({
    status_code: 200,
    status_message: "OK",
    headers: {},
    headers_list: [["X-A", "1"]],
    body: '{"a":1}',
  });
  assert.deepEqual(lines, ["200 OK", "X-A: 1", "", "{", '  "a": 1', "}"]);
  assert.deepEqual(testedLines(null), []);
  const binary = { method: "PUT", url: "https://a.example/", headers: {}, headers_list: [], body: "base64:AAEC" };
  assert.deepEqual(testedLines(binary), ["PUT https://a.example/", "", "AAEC"]);
});
