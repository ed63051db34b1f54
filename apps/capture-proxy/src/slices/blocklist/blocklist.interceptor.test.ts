import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exchange, TraceStep } from "#exchange/exchange.ts";
import type { SyntheticResponse, Target, Verdict } from "#exchange/phases.ts";
import { newBlockEntry } from "./block-entry.ts";
import { compileBlockRules } from "./blocklist.compile.ts";
import { createBlocklistInterceptor } from "./blocklist.interceptor.ts";

const entry = (id: string, body: Parameters<typeof newBlockEntry>[1]) => newBlockEntry(id, body, 0);

function setUp(...bodies: readonly Parameters<typeof newBlockEntry>[1][]) {
  const hits: string[] = [];
  const rules = compileBlockRules(bodies.map((body, index) => entry(`e${index}`, body)));
  const interceptor = createBlocklistInterceptor({ rules: () => rules, onHit: (id) => hits.push(id) });
  const target = (host: string): Verdict | Promise<Verdict> | undefined =>
    interceptor.onTarget?.({ host, port: 443 } as Target);
  const head = (exchange: Partial<Exchange>): Verdict | Promise<Verdict> | undefined =>
    interceptor.onRequestHead?.(exchange as Exchange);
  return { hits, rules, target, head };
}

test("a bare domain blocks itself and its subdomains, a starred one only those, a glob the whole name", () => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ["ads.test", "ads.test", true],
    ["ads.test", "ADS.test.", true],
    ["ads.test", "x.y.ads.test", true],
    ["ads.test", "badads.test", false],
    ["ads.test", "ads.test.evil", false],
    ["*.ads.test", "x.ads.test", true],
    ["*.ads.test", "ads.test", false],
    ["ads*.test", "ads7.test", true],
    ["ads*.test", "x.ads7.test", false],
    ["*tracker*", "my.tracker.test", true],
    ["10.0.0.0/8", "10.9.8.7", true],
    ["10.0.0.0/8", "11.9.8.7", false],
    ["127.0.0.1", "127.0.0.1", true],
    ["::1", "::1", true],
    ["bücher.test", "xn--bcher-kva.test", true],
  ];
  for (const [pattern, host, expected] of table) {
    assert.equal(setUp({ pattern }).rules.find(host) !== undefined, expected, `${pattern} ${host}`);
  }
});

test("a blocked request gets the entry's response and a trace, and one hit is counted", () => {
  const { head, hits } = setUp({
    pattern: "ads.test",
    status_code: 451,
    response_body: "nö",
    content_type: "text/html; charset=utf-8",
  });
  const steps: TraceStep[] = [];
  const exchange: Partial<Exchange> = {
    request: { host: "x.ads.test" } as Exchange["request"],
    addTrace: (step) => void steps.push(step),
  };
  assert.deepEqual(head(exchange), {
    kind: "respond",
    response: {
      status: 451,
      fields: ["Content-Type", "text/html; charset=utf-8", "Content-Length", "3", "Cache-Control", "no-store"],
      body: Buffer.from("nö"),
    },
  });
  assert.deepEqual(steps, [
    { kind: "block", ruleId: "e0", ruleName: "ads.test", phase: "request", changes: ["answered with 451"] },
  ]);
  assert.deepEqual(hits, ["e0"]);
});

test("a request to another host continues untouched", () => {
  const { head, target, hits } = setUp({ pattern: "ads.test" }, { pattern: "off.test", enabled: false });
  for (const host of ["good.test", "off.test"]) {
    const exchange: Partial<Exchange> = { request: { host } as Exchange["request"] };
    assert.deepEqual(head(exchange), { kind: "continue" });
    assert.deepEqual(target(host), { kind: "continue" });
  }
  assert.deepEqual(hits, []);
});

test("a tunnel to a blocked host is refused at CONNECT", () => {
  const { target, hits } = setUp({ pattern: "ads.test" });
  const verdict = target("ads.test") as { kind: "respond"; response: SyntheticResponse };
  assert.equal(verdict.kind, "respond");
  assert.equal(verdict.response.status, 403);
  assert.equal(verdict.response.body.toString(), "Blocked by Weir");
  assert.deepEqual(hits, ["e0"]);
});

test("the oldest of several matching entries wins, and hits of equal patterns count for the oldest", () => {
  const { head, hits } = setUp(
    { pattern: "*.a.test", status_code: 410 },
    { pattern: "x.a.test", status_code: 411 },
    { pattern: "*.a.test" },
  );
  const verdict = head({ request: { host: "x.a.test" } as Exchange["request"], addTrace: () => undefined }) as {
    response: SyntheticResponse;
  };
  assert.equal(verdict.response.status, 410);
  assert.deepEqual(hits, ["e0"]);
});

test("responses with a status that forbids content have none", () => {
  for (const status_code of [204, 205, 304]) {
    const block = setUp({ pattern: "a.test", status_code, response_body: "text" }).rules.find("a.test");
    assert.equal(block?.response.body.length, 0);
    assert.equal(block?.response.fields.includes("Content-Type"), false);
  }
});

test("thousands of entries cost a look-up about what one costs, and stored nonsense is reported", () => {
  const bodies = Array.from({ length: 5000 }, (_, index) => ({ pattern: `h${index}.test` }));
  const { rules } = setUp(...bodies);
  const started = performance.now();
  for (let count = 0; count < 20_000; count += 1) rules.find(`x.h${count % 5000}.test`);
  assert.ok(performance.now() - started < 2000);
  assert.deepEqual(
    setUp({ pattern: "a//b" }).rules.issues.map(({ pattern }) => pattern),
    ["a//b"],
  );
});
