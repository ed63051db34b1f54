import assert from "node:assert/strict";
import { test } from "node:test";
import { previewDocument } from "./preview-document.ts";

test("the policy precedes captured content, and forbids scripts, connections and forms", () => {
  const page = previewDocument(
    '<!DOCTYPE html><html><head><script>alert(1)</script><meta http-equiv="refresh" content="0;url=http://x.example/">',
  );
  const policy = page.indexOf("Content-Security-Policy");
  assert.ok(policy > 0 && policy < page.indexOf("alert(1)") && policy < page.indexOf("refresh"));
  assert.match(page, /default-src 'none'/u);
  assert.match(page, /form-action 'none'/u);
  assert.doesNotMatch(page.slice(0, page.indexOf("</head>")), /script-src|connect-src|https?:/u);
});

test("a page keeps the mode of its doctype, and no captured content precedes the policy", () => {
  assert.match(
    previewDocument("<!doctype html><p>x"),
    /^<!doctype html><html><head><meta http-equiv="Content-Security-Policy"/u,
  );
  assert.match(previewDocument("<p>x"), /^<html><head><meta/u);
  assert.match(previewDocument("<!-- <!doctype x> --><p>"), /^<html><head><meta http-equiv="Content-Security-Policy"/u);
  assert.ok(previewDocument('<!doctype html "><script>x()</script>').indexOf("Content-Security-Policy") > 0);
});
