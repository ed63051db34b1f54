import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  CHUNKED,
  isIdempotent,
  lengthFraming,
  UNTIL_CLOSE,
  UpstreamState,
  type Oddity,
  type UpstreamRequest,
} from "./index.ts";

const GET: UpstreamRequest = { method: "GET", hasBody: false, keepAlive: true, isRetry: false };
const CLEAN = { keepAlive: true, framing: lengthFraming(1), oddities: [] as readonly Oddity[] };

/** A connection kept after one exchange. */
function reused(): UpstreamState {
  const state = new UpstreamState();
  state.requestStarted(GET);
  state.requestSent();
  state.bytesArrived();
  state.responseStarted(CLEAN);
  assert.equal(state.responseEnded(false, 0), "keep");
  return state;
}

test("a clean exchange leaves the connection for another", () => {
  const state = reused();
  assert.equal(state.isIdle, true);
  assert.equal(state.exchangeCount, 1);
});

const SPOILED: readonly (readonly [string, (state: UpstreamState) => "keep" | "destroy"])[] = [
  ["an answer before the request was sent", (state) => (state.responseStarted(CLEAN), state.responseEnded(false, 0))],
  [
    "an origin that closes",
    (state) => (
      state.requestSent(),
      state.responseStarted({ ...CLEAN, keepAlive: false }),
      state.responseEnded(false, 0)
    ),
  ],
  [
    "an answer until the end",
    (state) => (
      state.requestSent(),
      state.responseStarted({ ...CLEAN, framing: UNTIL_CLOSE }),
      state.responseEnded(false, 0)
    ),
  ],
  [
    "an oddity in the head",
    (state) => (
      state.requestSent(),
      state.responseStarted({ ...CLEAN, oddities: ["bare-lf"] }),
      state.responseEnded(false, 1)
    ),
  ],
  [
    "an oddity in the body",
    (state) => (state.requestSent(), state.responseStarted(CLEAN), state.responseEnded(false, 1)),
  ],
  ["surplus bytes", (state) => (state.requestSent(), state.responseStarted(CLEAN), state.responseEnded(true, 0))],
  ["an end without a head", (state) => (state.requestSent(), state.responseEnded(false, 0))],
];

for (const [name, run] of SPOILED) {
  test(`a connection is not used again after ${name}`, () => {
    const state = new UpstreamState();
    state.requestStarted(GET);
    assert.equal(run(state), "destroy");
    assert.equal(state.isIdle, false);
    assert.throws(() => state.requestStarted(GET), /Broken rule/);
  });
}

test("a connection is not used again after our own Connection: close", () => {
  const state = new UpstreamState();
  state.requestStarted({ ...GET, keepAlive: false });
  state.requestSent();
  state.responseStarted(CLEAN);
  assert.equal(state.responseEnded(false, 0), "destroy");
});

test("bytes on an idle connection destroy it", () => {
  const state = reused();
  assert.equal(state.bytesArrived(), "destroy");
  assert.equal(state.isIdle, false);
  assert.equal(new UpstreamState().bytesArrived(), "destroy");
});

test("only one request is in flight", () => {
  const state = new UpstreamState();
  state.requestStarted(GET);
  assert.throws(() => state.requestStarted(GET), /Broken rule/);
});

test("a tunnel takes every byte and is never used again", () => {
  const state = new UpstreamState();
  state.requestStarted(GET);
  state.tunnelStarted();
  assert.equal(state.bytesArrived(), "read");
  assert.equal(state.isIdle, false);
  assert.equal(state.lost(), "none");
});

const LOST: readonly (readonly [string, "retry" | "fail", boolean, Partial<UpstreamRequest>, boolean])[] = [
  ["a stale connection", "retry", true, {}, false],
  ["PUT without a body", "retry", true, { method: "PUT" }, false],
  ["a fresh connection", "fail", false, {}, false],
  ["POST", "fail", true, { method: "POST" }, false],
  ["an unknown method", "fail", true, { method: "BREW" }, false],
  ["get in small letters, which is another method", "fail", true, { method: "get" }, false],
  ["a body", "fail", true, { method: "PUT", hasBody: true }, false],
  ["the second attempt", "fail", true, { isRetry: true }, false],
  ["a first byte of the answer", "fail", true, {}, true],
];

for (const [name, expected, isReused, request, hasBytes] of LOST) {
  test(`a lost connection means ${expected}: ${name}`, () => {
    const state = isReused ? reused() : new UpstreamState();
    state.requestStarted({ ...GET, ...request });
    state.requestSent();
    if (hasBytes) state.bytesArrived();
    assert.equal(state.lost(), expected);
    assert.equal(state.lost(), "none", "it is lost once");
    assert.equal(state.isIdle, false);
  });
}

test("losing an idle connection reports nothing", () => {
  assert.equal(reused().lost(), "none");
});

test("an abandoned connection is never idle again", () => {
  const state = reused();
  state.requestStarted(GET);
  state.abandon();
  assert.equal(state.isIdle, false);
  assert.equal(state.bytesArrived(), "destroy");
});

interface Exchange {
  request: UpstreamRequest;
  isSent: boolean;
  bytes: boolean;
  head: { keepAlive: boolean; framing: typeof CHUNKED; oddities: readonly Oddity[] } | undefined;
}

/** Judges each exchange from the facts alone, without phases. */
class Reference {
  finished = 0;
  present: Exchange | undefined;
  isFinished = false;
}

interface Step extends fc.Command<Reference, UpstreamState> {}

function step(
  name: string,
  check: (model: Reference) => boolean,
  run: (model: Reference, real: UpstreamState) => void,
): Step {
  return {
    check: (model) => !model.isFinished && check(model),
    run: (model, real) => {
      run(model, real);
      assert.equal(real.isIdle, !model.isFinished && model.present === undefined);
    },
    toString: () => name,
  };
}

const requests = fc.record({
  method: fc.constantFrom("GET", "GET", "POST", "DELETE"),
  hasBody: fc.boolean(),
  keepAlive: fc.constantFrom(true, true, true, false),
  isRetry: fc.boolean(),
});
const responses = fc.record({
  keepAlive: fc.constantFrom(true, true, true, false),
  framing: fc.constantFrom(CHUNKED, lengthFraming(4), CHUNKED, UNTIL_CLOSE),
  oddities: fc.constantFrom<readonly Oddity[]>([], [], [], ["line-folding"]),
});
const isBusy = (model: Reference): boolean => model.present !== undefined;

const steps = [
  requests.map((request) =>
    step(
      `request ${JSON.stringify(request)}`,
      (model) => !isBusy(model),
      (model, real) => {
        real.requestStarted(request);
        model.present = { request, isSent: false, bytes: false, head: undefined };
      },
    ),
  ),
  fc.constant(
    step("sent", isBusy, (model, real) => {
      real.requestSent();
      if (model.present !== undefined) model.present.isSent = true;
    }),
  ),
  fc.constant(
    step(
      "bytes",
      (model) => isBusy(model) || model.finished > 2,
      (model, real) => {
        assert.equal(real.bytesArrived(), isBusy(model) ? "read" : "destroy");
        if (model.present === undefined) model.isFinished = true;
        else model.present.bytes = true;
      },
    ),
  ),
  responses.map((head) =>
    step(
      `head ${JSON.stringify(head)}`,
      (model) => isBusy(model) && model.present?.head === undefined,
      (model, real) => {
        real.responseStarted(head);
        if (model.present === undefined) return;
        model.present.head = head;
        model.present.bytes = true;
      },
    ),
  ),
  fc
    .record({ surplus: fc.constantFrom(false, false, false, true), more: fc.constantFrom(0, 0, 0, 1) })
    .map(({ surplus, more }) =>
      step(
        `end ${surplus} ${more}`,
        (model) => model.present?.head !== undefined,
        (model, real) => {
          const { present } = model;
          if (present?.head === undefined) return;
          const { request, isSent, head } = present;
          const faults = [
            !isSent,
            !request.keepAlive,
            !head.keepAlive,
            head.framing.kind === "until-close",
            head.oddities.length + more > 0,
            surplus,
          ];
          const isKept = !faults.includes(true);
          assert.equal(real.responseEnded(surplus, head.oddities.length + more), isKept ? "keep" : "destroy");
          model.present = undefined;
          model.finished++;
          model.isFinished = !isKept;
        },
      ),
    ),
  fc.constant(
    step(
      "lost",
      (model) => model.finished > 1 || model.present?.isSent === true,
      (model, real) => {
        const { present } = model;
        const mayRetry =
          present !== undefined &&
          model.finished > 0 &&
          !present.bytes &&
          !present.request.hasBody &&
          !present.request.isRetry &&
          isIdempotent(present.request.method);
        assert.equal(real.lost(), present === undefined ? "none" : mayRetry ? "retry" : "fail");
        model.isFinished = true;
      },
    ),
  ),
];

test("any order of events gives the decisions of a reference that judges each exchange from the facts", () => {
  let finished = 0;
  fc.assert(
    fc.property(fc.commands(steps, { maxCommands: 60, size: "max" }), (commands) => {
      const model = new Reference();
      fc.modelRun(() => ({ model, real: new UpstreamState() }), commands);
      finished += model.finished;
    }),
    { numRuns: 3_000 },
  );
  assert(finished > 300, `only ${finished} exchanges`);
});
