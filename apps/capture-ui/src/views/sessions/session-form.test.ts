import assert from "node:assert/strict";
import { test } from "node:test";
import { exportFileName, parseTags, sessionTitle } from "./session-form.ts";

const created_at = "2026-03-04T05:06:07.000Z";

test("an unnamed session is titled by its start time", () => {
  assert.equal(sessionTitle({ name: "Checkout bug", created_at }), "Checkout bug");
  assert.match(sessionTitle({ name: null, created_at }), /^Session 2026-03-0\d \d\d:\d\d$/u);
});

test("tags are separated by commas, without duplicates", () => {
  assert.deepEqual(parseTags(" a, b ,,a,"), { ok: true, tags: ["a", "b"] });
  assert.deepEqual(parseTags(""), { ok: true, tags: [] });
  assert.equal(parseTags(Array.from({ length: 65 }, (_, index) => index).join(",")).ok, false);
  assert.equal(parseTags("x".repeat(256)).ok, false);
});

test("a file name never contains a path, for any session name", () => {
  assert.equal(exportFileName({ name: "../../etc/pass wd", created_at }, "har"), "etc-pass-wd.har");
  assert.equal(exportFileName({ name: "…", created_at }, "session"), "session.session.json");
  assert.equal(exportFileName({ name: "Ünïcode", created_at }, "har").endsWith(".har"), true);
});
