import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Condition, MockResponseConfig, NewMockResponse } from "@headworks/capture-contract";
import type { RequestMessage } from "#exchange/exchange.ts";
import {
  filledResponse,
  type MockDraft,
  type MockProgress,
  newMock,
  plainDraft,
  type StoredMock,
} from "./mock-rule.ts";
import { compileResponseChoice, createMockCompiler, RequestSubject } from "./mocks.compile.ts";

const message = (path = "/", fields: string[] = [], method = "GET"): RequestMessage => ({
  method,
  scheme: "https",
  host: "a.test",
  port: 443,
  path,
  version: "HTTP/1.1",
  fields,
  trailers: undefined,
});
const single: MockResponseConfig = { type: "single", response: filledResponse({}) };
const rule = (id: string, condition: Condition, more: Partial<MockDraft> = {}): StoredMock =>
  newMock(id, { ...plainDraft(id, condition, single), ...more }, 1000);

const progress = new Map<string, MockProgress>();
const compiler = createMockCompiler((id) => {
  const known = progress.get(id) ?? { hits: 0, nextIndex: 0 };
  progress.set(id, known);
  return known;
});

function found(
  rules: readonly StoredMock[],
  subject = new RequestSubject(message()),
  nowMs = 1000,
): string | undefined {
  const mock = compiler.compile(rules, []).find(subject, nowMs);
  return typeof mock === "object" ? mock.rule.id : mock;
}

test("the lowest priority responds, of equal ones the oldest; disabled and recorded rules never do", () => {
  const all: Condition = { type: "all" };
  assert.equal(found([rule("a", all), rule("b", all, { priority: 50 }), rule("c", all, { priority: 50 })]), "b");
  assert.equal(found([rule("a", all, { enabled: false }), { ...rule("b", all), isRecorded: true }]), undefined);
  assert.equal(found([]), undefined);
});

test("a body is requested only when a candidate rule depends on it", () => {
  const body: Condition = { type: "body_pattern", pattern: "x" };
  const post = () => new RequestSubject(message("/", ["Content-Length", "5"], "POST"));
  const elsewhere: Condition = { type: "and", conditions: [{ type: "host", pattern: "b.test" }, body] };
  assert.equal(found([rule("a", body)], post()), "needs-body");
  assert.equal(found([rule("a", elsewhere), rule("b", { type: "all" })], post()), "b");
  assert.equal(found([rule("b", { type: "all" }), rule("a", body)], post()), "b");
  assert.equal(found([rule("a", body)]), undefined, "a request without a body needs none");
});

test("rules expire by date, by hits and by duration", () => {
  const all: Condition = { type: "all" };
  const dated = rule("d", all, { expiration: { type: "date_time", expires_at: "1970-01-01T00:00:02Z" } });
  assert.deepEqual([found([dated], undefined, 1999), found([dated], undefined, 2000)], ["d", undefined]);
  const timed = rule("t", all, { expiration: { type: "duration", duration_secs: 3 } });
  assert.deepEqual([found([timed], undefined, 3999), found([timed], undefined, 4000)], ["t", undefined]);
  const counted = {
    ...rule("h", all, { expiration: { type: "hit_count", max_hits: 2 } }),
    expirationSince: { atMs: 0, hits: 5 },
  };
  for (const [hits, expected] of [
    [6, "h"],
    [7, undefined],
  ] as const) {
    progress.set("h", { hits, nextIndex: 0 });
    assert.equal(found([counted]), expected);
  }
});

test("rules of a disabled collection never respond, and rules that fail to compile are reported", () => {
  const off = {
    id: "c",
    name: "",
    description: null,
    enabled: false,
    tags: [],
    color: null,
    createdAtMs: 0,
    updatedAtMs: 0,
  };
  const set = compiler.compile(
    [rule("a", { type: "all" }, { collectionId: "c" }), rule("bad", { type: "url_pattern", pattern: "(a" })],
    [off],
  );
  assert.equal(set.size, 0);
  assert.deepEqual(
    set.issues.map(({ id }) => id),
    ["bad"],
  );
});

test("unchanged rules are not recompiled", () => {
  const same = rule("a", { type: "url_pattern", pattern: "x+" });
  assert.equal(compiler.one(same).condition, compiler.one({ ...same, enabled: false }).condition);
  assert.notEqual(compiler.one(same).condition, compiler.one({ ...same, condition: { ...same.condition } }).condition);
});

const texts = (...bodies: string[]): NewMockResponse[] => bodies.map((body) => ({ body }));

function chosen(
  config: MockResponseConfig,
  times: number,
  random: (time: number) => number = () => 0,
): (string | null)[] {
  const choice = compileResponseChoice(config);
  const place = { hits: 0, nextIndex: 0 };
  const subject = new RequestSubject(message());
  return Array.from(
    { length: times },
    (_, time) => choice.choose(subject, place, random(time), false).response.response.body,
  );
}

test("a sequence cycles, or repeats its last response", () => {
  const responses = texts("1", "2", "3").map(filledResponse);
  assert.deepEqual(chosen({ type: "sequence", responses, cycle: true }, 7), ["1", "2", "3", "1", "2", "3", "1"]);
  assert.deepEqual(chosen({ type: "sequence", responses, cycle: false }, 5), ["1", "2", "3", "3", "3"]);
  const shorter = compileResponseChoice({ type: "sequence", responses: responses.slice(0, 1) });
  const place = { hits: 0, nextIndex: 9 };
  assert.equal(shorter.choose(new RequestSubject(message()), place, 0, false).index, 0);
});

test("weights determine the frequency of responses, and weight 0 means never", () => {
  const config: MockResponseConfig = {
    type: "probabilistic",
    responses: [
      { weight: 1, response: filledResponse({ body: "a" }) },
      { weight: 0, response: filledResponse({ body: "never" }) },
      { weight: 3, response: filledResponse({ body: "b" }) },
    ],
  };
  const all = chosen(config, 1000, (time) => time / 1000);
  const count = (body: string) => all.filter((each) => each === body).length;
  assert.deepEqual([count("a"), count("never"), count("b")], [250, 0, 750]);
  assert.equal(chosen(config, 1, () => 0.999_999_999)[0], "b");
});

test("the first matching condition decides, over fields, query and decoded body", async () => {
  const config: MockResponseConfig = {
    type: "conditional",
    conditions: [
      { condition: { type: "header_equals", name: "x-a", value: "1" }, response: filledResponse({ body: "header" }) },
      {
        condition: { type: "header_matches", name: "X-A", pattern: "^2" },
        response: filledResponse({ body: "pattern" }),
      },
      {
        condition: { type: "query_param_equals", name: "q", value: "a b" },
        response: filledResponse({ body: "query" }),
      },
      {
        condition: {
          type: "and",
          conditions: [
            { type: "json_path_equals", path: "$.n", value: 5 },
            { type: "json_path_matches", path: "$.s", pattern: "^x" },
          ],
        },
        response: filledResponse({ body: "json" }),
      },
      {
        condition: { type: "or", conditions: [{ type: "body_matches", pattern: "need+le" }] },
        response: filledResponse({ body: "body" }),
      },
    ],
    default_response: filledResponse({ body: "default" }),
  };
  const choice = compileResponseChoice(config);
  assert.equal(choice.needsBody, true);
  const ask = async (path: string, fields: string[], body?: Buffer): Promise<string | null> => {
    const subject = new RequestSubject(message(path, fields, "POST"));
    await subject.readBody(body);
    return choice.choose(subject, { hits: 0, nextIndex: 0 }, 0, false).response.response.body;
  };
  assert.equal(await ask("/", ["X-A", "1"]), "header");
  assert.equal(await ask("/", ["X-A", "23"]), "pattern");
  assert.equal(await ask("/?q=a%20b", []), "query");
  const json = gzipSync('{"n":5,"s":"xy"}');
  assert.equal(await ask("/", ["Content-Encoding", "gzip", "Content-Type", "application/json"], json), "json");
  assert.equal(await ask("/", ["Content-Encoding", "gzip"], Buffer.from("needle, but no gzip")), "body");
  const damaged = Buffer.concat([gzipSync("a needle in damaged gzip"), Buffer.from("\r\n")]);
  assert.equal(await ask("/", ["Content-Encoding", "gzip"], damaged), "body");
  assert.equal(await ask("/", [], Buffer.from("a needle")), "body");
  assert.equal(await ask("/", []), "default");
});

test("the matching rule among a thousand is found", () => {
  const rules = Array.from({ length: 1000 }, (_, index) =>
    rule(`r${index}`, { type: "url_pattern", pattern: `^https://host${index}\\.test/items/\\d+$` }),
  );
  const set = compiler.compile(rules, []);
  const subject = (host: number) => new RequestSubject({ ...message("/items/7"), host: `host${host}.test` });
  const first = set.find(subject(999), 0);
  assert.equal(typeof first === "object" && first.rule.id, "r999");
  assert.equal(set.find(subject(5000), 0), undefined);
});
