import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import type { Exchange } from "#exchange/exchange.ts";
import { CONTINUE } from "#exchange/phases.ts";
import type { Verdict } from "#exchange/phases.ts";
import { filledResponse, newMock, plainDraft } from "./mock-rule.ts";
import type { MockDraft } from "./mock-rule.ts";
import { createMockCompiler } from "./mocks.compile.ts";
import type { MockSet } from "./mocks.compile.ts";
import { createMocksInterceptor } from "./mocks.interceptor.ts";
import type { ServedSession } from "./served-session.ts";

interface Trial {
  readonly verdict: Verdict | Promise<Verdict>;
  readonly asked: number;
}

const clock = new FakeClock();
const compiler = createMockCompiler(() => ({ hits: 0, nextIndex: 0 }));

function set(...drafts: MockDraft[]): MockSet {
  return compiler.compile(
    drafts.map((draft, index) => newMock(String(index), draft, 0)),
    [],
  );
}

/** Runs the interceptor on a request with a body of five bytes. */
function run(rules: MockSet, serving?: ServedSession, host = "a.test"): Trial {
  let asked = 0;
  const interceptor = createMocksInterceptor({
    active: { rules },
    serving: () => serving,
    hits: { touched: () => undefined, answered: () => undefined },
    clock,
    readFile: () => assert.fail("no file was expected"),
    random: () => 0.5,
  });
  const exchange = {
    request: {
      method: "POST",
      scheme: "https",
      host,
      port: 443,
      path: "/",
      version: "HTTP/1.1",
      fields: ["Content-Length", "5"],
      trailers: undefined,
    },
    addTrace: () => undefined,
    requestContent: async () => {
      asked += 1;
      return { kind: "complete", bytes: Buffer.from("hello") };
    },
  } as unknown as Exchange;
  const verdict = interceptor.onRequestHead?.(exchange) ?? assert.fail();
  return { verdict, asked };
}

const statusOf = async ({ verdict }: Trial): Promise<number | undefined> => {
  const settled = await verdict;
  return settled.kind === "respond" ? settled.response.status : undefined;
};

const single = (response: Parameters<typeof filledResponse>[0]) =>
  ({ type: "single", response: filledResponse(response) }) as const;
const onHost = plainDraft("h", { type: "host", pattern: "a.test" }, single({ status_code: 201 }));
const onBody = plainDraft(
  "b",
  {
    type: "and",
    conditions: [
      { type: "host", pattern: "a.test" },
      { type: "body_pattern", pattern: "^hello$" },
    ],
  },
  single({ status_code: 202 }),
);

test("without rules and without a session nothing is inspected", () => {
  assert.equal(run(set()).verdict, CONTINUE);
});

test("a response that needs no body is sent at once", async () => {
  const trial = run(set(onHost, onBody));
  assert.equal(trial.verdict instanceof Promise, false);
  assert.deepEqual([await statusOf(trial), trial.asked], [201, 0]);
});

test("the body is awaited only when a candidate rule depends on it", async () => {
  const trial = run(set(onBody));
  assert.deepEqual([await statusOf(trial), trial.asked], [202, 1]);
  const other = run(set(onBody), undefined, "b.test");
  assert.deepEqual([other.verdict, other.asked], [CONTINUE, 0]);
});

test("a delay uses the service's clock", async () => {
  const { verdict } = run(set(plainDraft("d", { type: "all" }, single({ delay_ms: 1000, status_code: 203 }))));
  let isDone = false;
  const done = Promise.resolve(verdict).then(() => (isDone = true));
  await clock.advance(999);
  assert.equal(isDone, false);
  await clock.advance(1);
  assert.equal(await done, true);
});

test("errors while a session is served do not let requests through to an origin", async () => {
  const failing: MockSet = {
    size: 1,
    issues: [],
    find: () => {
      throw new Error("broken");
    },
  };
  const refusal: Verdict = { kind: "respond", response: { status: 502, fields: [], body: Buffer.alloc(0) } };
  const session = { response: async () => CONTINUE, broken: () => refusal } as unknown as ServedSession;
  assert.equal(await statusOf(run(failing, session)), 502);
  assert.throws(() => run(failing), /broken/);
  let calls = 0;
  const later: MockSet = {
    ...failing,
    find: () => {
      calls += 1;
      if (calls > 1) throw new Error("broken later");
      return "needs-body";
    },
  };
  assert.equal(await statusOf(run(later, session)), 502);
});
