import assert from "node:assert/strict";
import { test } from "node:test";
import { headerDrafts } from "../../rules/message-draft.ts";
import { isSameRequest, modificationsOf, newRequest, requestOf, requestProblem, variablesIn } from "./request-draft.ts";
import type { RequestDraft } from "./request-draft.ts";

const saved: RequestDraft = {
  ...newRequest(),
  url: "https://a.example/x",
  headers: headerDrafts([
    ["A", "1"],
    ["Cookie", "x=1"],
    ["cookie", "y=2"],
  ]),
  body: { encoding: "utf8", text: "hello" },
};

test("sending modifies only what differs from the saved request", () => {
  assert.deepEqual(modificationsOf(saved, saved), {});
  const changed: RequestDraft = {
    ...saved,
    method: "PUT",
    headers: headerDrafts([
      ["a", "2"],
      ["B", "3"],
    ]),
    body: { encoding: "utf8", text: "" },
  };
  assert.deepEqual(modificationsOf(saved, changed), {
    method: "PUT",
    headers: { a: "2", b: "3" },
    remove_headers: ["cookie"],
    body: "",
  });
  assert.ok(!isSameRequest(saved, changed));
});

test("changes that modifications cannot express are saved first", () => {
  const twice = {
    ...saved,
    headers: headerDrafts([
      ["a", "1"],
      ["a", "2"],
    ]),
  };
  assert.equal(modificationsOf(saved, twice), null);
  assert.equal(modificationsOf(saved, { ...saved, body: { encoding: "utf8", text: "base64:AA==" } }), null);
});

test("a request is stored with its encoding, so that text stays text", () => {
  assert.deepEqual(requestOf({ ...saved, headers: [], body: { encoding: "utf8", text: "base64:AA==" } }), {
    method: "GET",
    url: "https://a.example/x",
    headers_list: [],
    body: "base64:AA==",
    body_encoding: "utf8",
  });
  assert.equal(requestOf({ ...saved, body: { encoding: "base64", text: "AA==" } }).body, "base64:AA==");
  assert.equal(requestOf(newRequest()).body, null);
});

test("an invalid request has a reason; variables may form its URL", () => {
  assert.notEqual(requestProblem(newRequest()), null);
  assert.equal(requestProblem(saved), null);
  assert.equal(requestProblem({ ...saved, url: "{{base}}/x" }), null);
  assert.notEqual(requestProblem({ ...saved, method: "G T" }), null);
});

test("each variable is found once; generated ones are not listed", () => {
  const draft = {
    ...saved,
    url: "https://{{host}}/{{ id }}",
    body: { encoding: "utf8" as const, text: "{{id}} {{$uuid}}" },
  };
  assert.deepEqual(variablesIn(draft), ["host", "id"]);
});
