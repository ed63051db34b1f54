import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CHUNKED, DownstreamState, lengthFraming, NO_BODY, UNTIL_CLOSE, type Framing } from "./index.ts";

const MODERN = { version: "1.1", keepAlive: true, expectContinue: false } as const;
const EXPECTING = { ...MODERN, expectContinue: true } as const;
const OLD = { version: "1.0", keepAlive: true, expectContinue: false } as const;

/** A state after a complete request. */
function asked(
  head: { version: "1.0" | "1.1"; keepAlive: boolean; expectContinue: boolean } = MODERN,
): DownstreamState {
  const state = new DownstreamState();
  state.requestStarted(head);
  state.requestEnded();
  return state;
}

test("a plain exchange reads on", () => {
  const state = asked();
  assert.equal(state.mayRead, false, "a pipelined request waits");
  assert.deepEqual(state.responseStarted(lengthFraming(3)), {
    framing: lengthFraming(3),
    connection: undefined,
    closeAfterResponse: false,
  });
  assert.equal(state.mayRead, false);
  assert.equal(state.responseEnded(), "read");
  assert.equal(state.mayRead, true);
});

test("a response before the end of the request closes, even if the request ends meanwhile", () => {
  const state = new DownstreamState();
  state.requestStarted(MODERN);
  assert.equal(state.mayRead, true, "the body is still read");
  assert.equal(state.responseStarted(NO_BODY).connection, "close");
  state.requestEnded();
  assert.equal(state.responseEnded(), "linger");
  assert.equal(state.mayRead, false);
});

test("a response read until the end of the origin's connection closes the client's", () => {
  const state = asked();
  assert.deepEqual(state.responseStarted(UNTIL_CLOSE), {
    framing: UNTIL_CLOSE,
    connection: "close",
    closeAfterResponse: true,
  });
  assert.equal(state.responseEnded(), "linger");
});

test("HTTP/1.0 gets keep-alive spelled out, and chunks only as a response until the end", () => {
  assert.equal(asked(OLD).responseStarted(lengthFraming(1)).connection, "keep-alive");
  assert.equal(asked({ ...OLD, keepAlive: false }).responseStarted(lengthFraming(1)).connection, "close");
  assert.equal(asked(OLD).responseStarted(CHUNKED).framing, UNTIL_CLOSE);
});

test("100 (Continue) is sent once, to a client that waits, by whichever comes first", () => {
  const state = new DownstreamState();
  state.requestStarted(EXPECTING);
  assert.equal(state.informational(103), true);
  assert.equal(state.informational(100), true, "the origin's is passed on");
  assert.equal(state.informational(100), false, "and not doubled");
  assert.equal(state.bodyWanted(), false, "nor is our own added");
});

test("100 (Continue) is not sent to a client that did not wait, did not ask, or has its response", () => {
  const impatient = new DownstreamState();
  impatient.requestStarted(EXPECTING);
  impatient.requestData();
  assert.equal(impatient.bodyWanted(), false);
  const silent = new DownstreamState();
  silent.requestStarted(MODERN);
  assert.equal(silent.bodyWanted(), false);
  assert.equal(silent.informational(100), false);
  const answered = new DownstreamState();
  answered.requestStarted(EXPECTING);
  answered.responseStarted(lengthFraming(0));
  assert.equal(answered.bodyWanted(), false);
  assert.equal(answered.informational(103), false, "nothing informational behind the final head");
  assert.equal(answered.responseEnded(), "linger");
  assert.equal(asked(OLD).informational(103), false, "HTTP/1.0 knows none");
  assert.equal(asked().informational(101), false, "101 is never merely passed on");
});

test("a client that ends its side gets its response, if it asked completely", () => {
  const whole = asked();
  assert.equal(whole.clientEnded(), "finish");
  assert.equal(whole.responseStarted(lengthFraming(0)).connection, "close");
  assert.equal(whole.responseEnded(), "close");
  assert.equal(new DownstreamState().clientEnded(), "close");
  const cut = new DownstreamState();
  cut.requestStarted(MODERN);
  assert.equal(cut.clientEnded(), "destroy");
  assert.equal(cut.mayRespond, false);
});

test("refused input is answered unless a response is already on its way", () => {
  const idle = new DownstreamState();
  assert.equal(idle.requestRefused(), "response");
  assert.equal(idle.mayRead, false);
  assert.equal(idle.responseStarted(lengthFraming(0)).connection, "close");
  assert.equal(idle.responseEnded(), "linger");
  const answering = new DownstreamState();
  answering.requestStarted(MODERN);
  answering.responseStarted(lengthFraming(5));
  assert.equal(answering.requestRefused(), "destroy");
  assert.equal(answering.closed(), false);
});

test("a draining service ends idle connections and finishes busy ones", () => {
  assert.equal(new DownstreamState().drain(), "close");
  const busy = asked();
  assert.equal(busy.drain(), "finish");
  assert.equal(busy.responseStarted(lengthFraming(0)).connection, "close");
  assert.equal(busy.responseEnded(), "linger");
});

test("behind a switch of protocols every byte is the tunnel's, and nothing is answered any more", () => {
  const state = asked();
  state.tunnelStarted();
  assert.deepEqual([state.isTunnel, state.mayRead, state.mayRespond, state.isIdle], [true, false, false, false]);
  assert.equal(state.requestRefused(), "destroy");
  assert.throws(() => asked(MODERN).responseEnded(), /Broken rule/);
  const arriving = new DownstreamState();
  arriving.requestStarted(MODERN);
  assert.throws(() => arriving.tunnelStarted(), /Broken rule/);
});

test("an owner that breaks the order is stopped", () => {
  assert.throws(() => asked().requestStarted(MODERN), /Broken rule/);
  assert.throws(() => new DownstreamState().responseStarted(NO_BODY), /Broken rule/);
  const state = asked();
  state.responseStarted(NO_BODY);
  assert.throws(() => state.responseStarted(NO_BODY), /Broken rule/);
});

/** The recorded events; the reference re-evaluates the whole history at every step. */
type Event =
  | { kind: "head"; keepAlive: boolean; expectContinue: boolean; version: "1.0" | "1.1" }
  | {
      kind: "data" | "request-end" | "answer-end" | "continue" | "client-end" | "refused" | "drain" | "tunnel" | "over";
    }
  | { kind: "response"; framing: Framing };

class History {
  readonly events: Event[] = [];
  /** Events since the last response that ended with "read". */
  get present(): Event[] {
    return this.events.slice(this.events.findLastIndex(({ kind }) => kind === "answer-end") + 1);
  }
  has(kind: Event["kind"]): boolean {
    return this.present.some((event) => event.kind === kind);
  }
  ever(kind: Event["kind"]): boolean {
    return this.events.some((event) => event.kind === kind);
  }
  get head(): Extract<Event, { kind: "head" }> | undefined {
    return this.present.find((event) => event.kind === "head");
  }
  get isFinished(): boolean {
    return this.ever("over") || this.ever("tunnel");
  }
  /** Conditions that forbid another request on this connection. */
  get mustClose(): boolean {
    const responseAt = this.present.findIndex(({ kind }) => kind === "response");
    const requestEndAt = this.present.findIndex(({ kind }) => kind === "request-end");
    const response = this.present[responseAt];
    const isEarly = responseAt >= 0 && (requestEndAt < 0 || requestEndAt > responseAt);
    const framing = response?.kind === "response" ? response.framing.kind : "none";
    const isUnbounded = framing === "until-close" || (framing === "chunked" && this.head?.version === "1.0");
    const isAskedTo = this.head?.keepAlive === false || this.ever("drain") || this.ever("client-end");
    return isEarly || isUnbounded || isAskedTo || this.ever("refused");
  }
}

interface Step extends fc.Command<History, DownstreamState> {}

function step(
  name: string,
  check: (model: History) => boolean,
  run: (model: History, real: DownstreamState) => void,
): Step {
  return {
    check: (model) => !model.isFinished && check(model),
    run: (model, real) => {
      run(model, real);
      const isAnswering = model.has("response");
      const isAsked = model.has("head") || model.has("refused");
      assert.equal(real.mayRespond, !model.isFinished && isAsked && !isAnswering, "mayAnswer");
      const isArriving = !model.has("request-end") && !model.has("refused");
      assert.equal(real.mayRead, !model.isFinished && (isArriving || !isAsked), "mayRead");
    },
    toString: () => name,
  };
}

const framings = fc.constantFrom(NO_BODY, CHUNKED, UNTIL_CLOSE, lengthFraming(0), lengthFraming(7));
const heads = fc.record({
  kind: fc.constant("head" as const),
  keepAlive: fc.constantFrom(true, true, true, false),
  expectContinue: fc.boolean(),
  version: fc.constantFrom("1.0" as const, "1.1" as const, "1.1" as const),
});
const hasOpenRequest = (model: History): boolean =>
  model.has("head") && !model.has("request-end") && !model.has("refused");
const mayContinue = (model: History): boolean =>
  model.head?.expectContinue === true &&
  hasOpenRequest(model) &&
  !["data", "continue", "response"].some((kind) => model.has(kind as Event["kind"]));

function responseStep(framing: Framing, mayStart: (model: History) => boolean): Step {
  return step(
    `answer ${framing.kind}`,
    (model) => mayStart(model) && !model.has("response"),
    (model, real) => {
      const start = real.responseStarted(framing);
      model.events.push({ kind: "response", framing });
      assert.equal(start.closeAfterResponse, model.mustClose);
      assert.equal(start.connection === "close", model.mustClose);
      assert.equal(start.connection === "keep-alive", !model.mustClose && model.head?.version === "1.0");
    },
  );
}

/** Events that advance a connection. */
const progress = [
  heads.map((head) =>
    step(
      `head ${JSON.stringify(head)}`,
      (model) => !model.has("head") && !model.has("refused"),
      (model, real) => {
        real.requestStarted(head);
        model.events.push(head);
      },
    ),
  ),
  fc.constant(
    step("request-end", hasOpenRequest, (model, real) => {
      real.requestEnded();
      model.events.push({ kind: "request-end" });
    }),
  ),
  framings
    .filter(({ kind }) => kind !== "until-close")
    .map((framing) => responseStep(framing, (model) => model.has("request-end"))),
  fc.constant(
    step(
      "answer-end",
      (model) => model.has("response"),
      (model, real) => {
        const isLast = model.mustClose;
        const next = real.responseEnded();
        assert.equal(next, !isLast ? "read" : model.ever("client-end") ? "close" : "linger");
        model.events.push({ kind: isLast ? "over" : "answer-end" });
      },
    ),
  ),
];

const others = [
  fc.constant(
    step("data", hasOpenRequest, (model, real) => {
      real.requestData();
      model.events.push({ kind: "data" });
    }),
  ),
  fc.constantFrom("own", "origin").map((source) =>
    step(
      `100 ${source}`,
      (model) => model.has("head"),
      (model, real) => {
        const isSent = source === "own" ? real.bodyWanted() : real.informational(100);
        const isKnown = source === "own" || model.head?.version === "1.1";
        assert.equal(isSent, mayContinue(model) && isKnown);
        if (isSent) model.events.push({ kind: "continue" });
      },
    ),
  ),
  framings.map((framing) => responseStep(framing, (model) => model.has("head") || model.has("refused"))),
  fc.constant(
    step(
      "client-end",
      (model) => !model.ever("client-end"),
      (model, real) => {
        const isAsked = model.has("request-end") || model.has("refused");
        const expected = isAsked ? "finish" : model.has("head") ? "destroy" : "close";
        assert.equal(real.clientEnded(), expected);
        model.events.push({ kind: expected === "finish" ? "client-end" : "over" });
      },
    ),
  ),
  fc.constant(
    step(
      "refused",
      (model) => !model.has("request-end") && !model.has("refused"),
      (model, real) => {
        const expected = model.has("response") ? "destroy" : "response";
        assert.equal(real.requestRefused(), expected);
        model.events.push({ kind: expected === "response" ? "refused" : "over" });
      },
    ),
  ),
  fc.constant(
    step(
      "drain",
      () => true,
      (model, real) => {
        const isBusy = model.has("head") || model.has("refused");
        assert.equal(real.drain(), isBusy ? "finish" : "close");
        model.events.push({ kind: isBusy ? "drain" : "over" });
      },
    ),
  ),
  fc.constant(
    step(
      "tunnel",
      (model) => model.has("request-end") && !model.has("response") && !model.has("refused"),
      (model, real) => {
        real.tunnelStarted();
        model.events.push({ kind: "tunnel" });
      },
    ),
  ),
];

/** Without weighted progress nearly all sequences would end within the first exchange. */
const steps = [...Array.from({ length: 8 }, () => progress).flat(), ...others];

test("any order of events gives the decisions of a reference that judges the whole history", () => {
  let exchanges = 0;
  fc.assert(
    fc.property(fc.commands(steps, { maxCommands: 60, size: "max" }), (commands) => {
      const model = new History();
      fc.modelRun(() => ({ model, real: new DownstreamState() }), commands);
      exchanges += model.events.filter(({ kind }) => kind === "answer-end").length;
    }),
    { numRuns: 3_000 },
  );
  assert(exchanges > 300, `only ${exchanges} connections read on`);
});
