import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeRow } from "../../../../test/fake-rows.ts";
import { barTone, rowSentence, statusTone, typeLabel } from "./cell-text.ts";

test("types are short, and pictures say their format", () => {
  assert.equal(typeLabel(fakeRow(1, { resource_type: "document" })), "html");
  assert.equal(typeLabel(fakeRow(1, { resource_type: "image", response_content_type: "image/webp" })), "webp");
  assert.equal(typeLabel(fakeRow(1, { resource_type: "image", response_content_type: "image/svg+xml" })), "svg");
  assert.equal(typeLabel(fakeRow(1, { resource_type: "image", response_content_type: null })), "image");
  assert.equal(typeLabel(fakeRow(1, { resource_type: "grpc" })), "grpc");
});

test("failures come before everything else", () => {
  assert.equal(statusTone({ state: "failed", status_code: 200 }), "failed");
  assert.equal(statusTone({ state: "pending", status_code: null }), "waiting");
  assert.equal(statusTone({ state: "complete", status_code: 101 }), "ok");
  assert.equal(statusTone({ state: "complete", status_code: 304 }), "redirect");
  assert.equal(statusTone({ state: "complete", status_code: 599 }), "server");
  assert.equal(barTone(fakeRow(1, { method: "POST", status_code: 503 })), "server");
  assert.equal(barTone(fakeRow(1, { method: "POST" })), "change");
  assert.equal(barTone(fakeRow(1, { method: "POST", resource_type: "grpc" })), "stream");
  assert.equal(barTone(fakeRow(1)), "data");
});

test("a row is said in one sentence", () => {
  assert.equal(rowSentence(fakeRow(7)), "GET a.example/7, 200");
  assert.equal(
    rowSentence(fakeRow(7, { state: "failed", status_code: null, failure_code: "UPSTREAM_REFUSED" })),
    "GET a.example/7, failed, UPSTREAM_REFUSED",
  );
  assert.equal(rowSentence(fakeRow(7, { state: "pending", status_code: null })), "GET a.example/7, waiting");
});
