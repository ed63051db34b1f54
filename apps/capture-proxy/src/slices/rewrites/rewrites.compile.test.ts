import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition, RewriteAction } from "@headworks/capture-contract";
import { NOT_READ, type MatchSubject } from "@headworks/match-condition";
import type { MappedFiles } from "./mapped-files.ts";
import type { Direction, StoredRewrite } from "./rewrite-rule.ts";
import { compileOnce, createRewriteCompiler } from "./rewrites.compile.ts";
import type { TextThread } from "./text-thread.ts";

const files: MappedFiles = {
  problem: () => undefined,
  read: () => Promise.resolve({ kind: "missing", reason: "" }),
};
const thread: TextThread = { edit: () => Promise.resolve({ problem: "" }), close: () => undefined };

function rule(id: string, more: Partial<StoredRewrite> = {}): StoredRewrite {
  return {
    id,
    name: id,
    condition: { type: "all" },
    direction: "both",
    actions: [{ type: "set_header", name: "A", value: id }],
    enabled: true,
    priority: 100,
    hitCount: 0,
    createdAtMs: 0,
    updatedAtMs: 0,
    ...more,
  };
}

const subject = (phase: "request" | "response", url = "http://a.test/"): MatchSubject => ({
  phase,
  method: "GET",
  scheme: "http",
  host: "a.test",
  port: 80,
  path: "/",
  query: "",
  url,
  status: phase === "request" ? undefined : 200,
  requestFields: () => [],
  responseFields: () => [],
  requestText: () => NOT_READ,
  responseText: () => NOT_READ,
});

const ids = (found: readonly { readonly id: string }[]): string[] => found.map(({ id }) => id);

test("rules run by priority, then by creation, and disabled ones do not run", () => {
  const { request } = createRewriteCompiler(files, thread).compile([
    rule("d", { priority: 200 }),
    rule("b"),
    rule("off", { enabled: false }),
    rule("a", { priority: -1 }),
    rule("c"),
  ]);
  const found = request.candidates(subject("request"));
  assert.deepEqual(ids(found), ["a", "b", "c", "d"]);
  assert.deepEqual(
    found.map(({ order }) => order),
    [0, 1, 2, 3],
  );
  assert.deepEqual(
    ids(compileOnce([rule("off", { enabled: false })], files, thread).request.candidates(subject("request"))),
    ["off"],
  );
});

test("a rule takes part in the phases of its actions", () => {
  const table: readonly (readonly [Direction, RewriteAction, Condition, number, number])[] = [
    ["both", { type: "set_header", name: "A", value: "" }, { type: "all" }, 1, 1],
    ["request", { type: "set_header", name: "A", value: "" }, { type: "all" }, 1, 0],
    ["response", { type: "set_header", name: "A", value: "" }, { type: "all" }, 0, 1],
    ["both", { type: "set_status", code: 200 }, { type: "all" }, 0, 1],
    ["both", { type: "url_rewrite", pattern: "a", replacement: "b" }, { type: "all" }, 1, 0],
    ["both", { type: "set_header", name: "A", value: "" }, { type: "status_code", range: "2xx" }, 0, 1],
  ];
  for (const [direction, action, condition, onRequests, onResponses] of table) {
    const { request, response } = compileOnce([rule("r", { direction, actions: [action], condition })], files, thread);
    assert.deepEqual([request.size, response.size], [onRequests, onResponses], JSON.stringify([direction, action]));
  }
});

test("only changed rules are recompiled", () => {
  const compiler = createRewriteCompiler(files, thread);
  const conditions = (rules: StoredRewrite[]): Map<string, unknown> =>
    new Map(
      compiler
        .compile(rules)
        .request.candidates(subject("request"))
        .map(({ id, condition }) => [id, condition]),
    );
  const a = rule("a");
  const before = conditions([a, rule("b")]);
  const renamed = { ...a, name: "renamed", priority: 1, hitCount: 7 };
  const after = conditions([renamed, rule("b", { actions: [] }), rule("c")]);
  assert.equal(after.get("a"), before.get("a"));
  assert.deepEqual([...after.keys()], ["a", "c"]);
  assert.notEqual(
    conditions([rule("a", { condition: { type: "not", condition: { type: "method", method: "PUT" } } })]).get("a"),
    before.get("a"),
  );
});

test("an unreadable stored rule is reported, and others still work", () => {
  const broken = rule("broken", { actions: [{ type: "body_rewrite", pattern: "(", replacement: "" }] });
  const { request, issues } = compileOnce([broken, rule("good")], files, thread);
  assert.deepEqual(ids(request.candidates(subject("request"))), ["good"]);
  assert.deepEqual(
    issues.map(({ rule: id }) => id),
    ["broken"],
  );
});

test("the request body is kept only when a response rule needs it", () => {
  const graphql = { type: "graphql_operation", operation_name: "X" } as const;
  const keeps = (direction: Direction): boolean =>
    compileOnce([rule("r", { direction, condition: graphql })], files, thread).keepsRequestBody;
  assert.deepEqual([keeps("request"), keeps("response"), keeps("both")], [false, true, true]);
});
