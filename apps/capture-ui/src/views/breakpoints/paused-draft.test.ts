import assert from "node:assert/strict";
import { test } from "node:test";
import type { PausedItem } from "@headworks/capture-contract";
import { headerDraft } from "../../rules/message-draft.ts";
import {
  responseDraft,
  bodyObstacle,
  draftOfPaused,
  draftProblem,
  isSameDraft,
  modifyDecision,
  respondDecision,
  secondsLeft,
} from "./paused-draft.ts";

const item: PausedItem = {
  id: "1",
  entry_id: "2",
  direction: "request",
  request: {
    method: "POST",
    url: "https://a.example/x",
    host: "a.example",
    path: "/x",
    headers: { a: "1, 2" },
    headers_list: [
      ["a", "1"],
      ["a", "2"],
    ],
    content_type: null,
    http_version: "HTTP/1.1",
    body: "base64:AAE=",
    body_encoding: "base64",
    body_size: 2,
    body_state: "complete",
    charset: null,
  },
  response: null,
  paused_at: "2026-01-01T00:00:00.000Z",
  deadline: null,
  position: 1,
  rule_id: "r",
  breakpoint_id: "r",
  rule_name: "Rule",
  client_addr: "127.0.0.1:1",
  modifications: [],
};

test("unchanged parts are not sent", () => {
  const before = draftOfPaused(item);
  assert.ok(isSameDraft(before, draftOfPaused(item)));
  assert.deepEqual(modifyDecision(item, before, before), { action: "modify", modifications: {} });
  const moved = { ...before, method: "PUT", headers: [...before.headers, headerDraft("b", "3")] };
  assert.ok(!isSameDraft(before, moved));
  assert.deepEqual(modifyDecision(item, before, moved), {
    action: "modify",
    modifications: {
      method: "PUT",
      headers_list: [
        ["a", "1"],
        ["a", "2"],
        ["b", "3"],
      ],
    },
  });
});

test("text that begins with the base64 mark stays text, and bytes have the mark", () => {
  const before = draftOfPaused(item);
  assert.deepEqual(before.body, { encoding: "base64", text: "AAE=" });
  const text = modifyDecision(item, before, { ...before, body: { encoding: "utf8", text: "base64:AA==" } });
  assert.deepEqual(text.modifications, { body: "base64:AA==", body_encoding: "utf8" });
  const bytes = modifyDecision(item, before, { ...before, body: { encoding: "base64", text: "AA=\n=" } });
  assert.deepEqual(bytes.modifications, { body: "base64:AA==" });
});

test("a body that is not available is not changed", () => {
  const large: PausedItem = { ...item, request: { ...item.request, body: null, body_state: "too_large" } };
  const before = draftOfPaused(large);
  assert.notEqual(bodyObstacle(large), null);
  assert.equal(bodyObstacle(item), null);
  const decision = modifyDecision(large, before, { ...before, body: { encoding: "utf8", text: "x" } });
  assert.deepEqual(decision.modifications, {});
});

test("a custom response is sent completely", () => {
  const decision = respondDecision({ ...responseDraft(item), status: "418", reason: "Teapot" });
  assert.equal(decision.status_code, 418);
  assert.equal(decision.status_message, "Teapot");
  assert.equal(decision.body, "{}");
});

test("drafts that cannot be sent have a reason", () => {
  const before = draftOfPaused(item);
  assert.equal(draftProblem(before), null);
  assert.notEqual(draftProblem({ ...before, url: "/x" }), null);
  assert.notEqual(draftProblem({ ...before, body: { encoding: "base64", text: "A" } }), null);
  for (const status of ["", "99", "1000", "20x", "101"]) {
    assert.notEqual(draftProblem({ ...responseDraft(item), status }), null, status);
  }
});

test("the countdown stops at zero", () => {
  const at = Date.parse("2026-01-01T00:00:10.000Z");
  assert.equal(secondsLeft(null, at), null);
  assert.equal(secondsLeft("2026-01-01T00:00:12.500Z", at), 3);
  assert.equal(secondsLeft("2026-01-01T00:00:02.000Z", at), 0);
});
