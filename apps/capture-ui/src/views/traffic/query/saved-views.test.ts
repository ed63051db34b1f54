import assert from "node:assert/strict";
import { test } from "node:test";
import { addToHistory, expandViews, readHistory, readViews, saveView, viewNameProblem } from "./saved-views.ts";

test("invalid stored views are dropped", () => {
  const stored = [
    { name: "ok", q: "host:a" },
    { name: "bad name", q: "x" },
    { name: "empty", q: " " },
    null,
    7,
    { q: "x" },
  ];
  assert.deepEqual(readViews(stored), [{ name: "ok", q: "host:a" }]);
  assert.deepEqual(readViews("nonsense"), []);
});

test("saving under a used name replaces the view", () => {
  const views = saveView(
    [
      { name: "a", q: "1" },
      { name: "b", q: "2" },
    ],
    { name: "a", q: "3" },
  );
  assert.deepEqual(views, [
    { name: "b", q: "2" },
    { name: "a", q: "3" },
  ]);
});

test("names of views are validated", () => {
  assert.match(viewNameProblem("", []) ?? "", /name/u);
  assert.match(viewNameProblem("a b", []) ?? "", /letters/u);
  assert.match(viewNameProblem("errors", ["errors"]) ?? "", /built-in/u);
  assert.equal(viewNameProblem("slow-checkout", ["errors"]), undefined);
});

test("history has each text once, newest first, up to a limit", () => {
  assert.deepEqual(addToHistory(["b", "a"], " a "), ["a", "b"]);
  assert.deepEqual(addToHistory(["a"], "  "), ["a"]);
  assert.equal(
    addToHistory(
      Array.from({ length: 100 }, (_, i) => String(i)),
      "x",
    ).length,
    30,
  );
  assert.deepEqual(readHistory([1, "a", null]), ["a"]);
});

test("saved views are expanded, except inside quotes", () => {
  const views = [
    { name: "mine", q: "host:a OR host:b" },
    { name: "both", q: "@mine status:500" },
  ];
  assert.equal(expandViews("@mine -type:image", views), "(host:a OR host:b) -type:image");
  assert.equal(expandViews('"@mine" @errors', views), '"@mine" @errors');
  assert.equal(expandViews("@both", views), "((host:a OR host:b) status:500)");
});

test("recursive views end", () => {
  const expanded = expandViews("@a", [{ name: "a", q: "x @a" }]);
  assert.ok(expanded.length < 200, expanded);
});
