import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ConfigDocument } from "@headworks/gateway-contract";
import { FakeClock } from "@headworks/testkit";
import { compiledRoute, documentOf, requestFor, routeWith } from "../../test/routing/requests.ts";
import { AdmissionControl } from "./admission.ts";
import { type Refusal, RequestContext } from "./context.ts";

type Settings = ConfigDocument["gateway"];

const path = { type: "prefix", value: "/" } as const;

/** Admission over a stopped clock; requests have a priority and a generation with the given settings. */
class Rig {
  readonly clock = new FakeClock();
  readonly reports: string[] = [];
  readonly admission = new AdmissionControl({
    report: (_request, status, detail) => void this.reports.push(`${status} ${detail}`),
    after: (delayMs, run) => this.clock.after(delayMs, run),
  });
  #document: ConfigDocument = documentOf([]);
  #number = 0;

  constructor(settings: Settings, highPriority = false) {
    this.publish(settings, highPriority);
  }

  publish(settings: Settings, highPriority = false): void {
    this.#number += 1;
    const consumers = highPriority ? [{ name: "vip", priority: 8 }] : [];
    this.#document = { ...documentOf([routeWith("r", { path })]), consumers, gateway: settings };
  }

  request(priority = 5): RequestContext {
    const { generation, framing, listener, peer } = requestFor();
    const request = new RequestContext({
      generation: { ...generation, number: this.#number, document: this.#document },
      framing,
      listener,
      peer,
      startedMs: 0,
      version: "1.1",
      method: "GET",
      target: "/",
      authority: undefined,
      fields: [],
    });
    request.route = { ...compiledRoute(routeWith("r", { path }), 0), priority };
    return request;
  }

  /** The state of a request: `in`, `shed`, or `waits`, which later becomes one of the others. */
  ask(request: RequestContext = this.request()): { state: string } {
    const asked = { state: "" };
    const decide = (verdict: true | Refusal): void => {
      const retryAfter = verdict === true ? undefined : verdict.fields?.[1];
      asked.state = verdict === true ? "in" : `shed${retryAfter === undefined ? "" : ` until ${retryAfter}`}`;
    };
    const admitted = this.admission.admit(request);
    if (admitted instanceof Promise) {
      asked.state = "waits";
      void admitted.then(decide);
    } else decide(admitted);
    return asked;
  }

  states(priorities: readonly number[]): string[] {
    return priorities.map((priority) => this.ask(this.request(priority)).state);
  }
}

test("admission: without a cap nothing is limited", () => {
  assert.deepEqual(new Rig({}).states([0, 5, 5, 10]), ["in", "in", "in", "in"]);
});

test("admission: over cap = 503 gateway_saturated, no Retry-After; a released permit can be used again", () => {
  const rig = new Rig({ max_concurrent_requests: 2 });
  const [one, two] = [rig.request(), rig.request()];
  assert.deepEqual([rig.ask(one).state, rig.ask(two).state, rig.ask().state], ["in", "in", "shed"]);
  rig.admission.release();
  assert.deepEqual([rig.ask().state, rig.ask().state], ["in", "shed"]);
});

for (const [cap, hasHigh, ordinary] of [
  [40, true, 36],
  [10, true, 9],
  [2, true, 1],
  // A reserve of everything would shut out ordinary requests.
  [1, true, 1],
  [10, false, 10],
] as const) {
  const reserve = cap - ordinary;
  test(`admission: reserved share 10 %, min 1, ${hasHigh ? "with" : "only with"} a priority >= 8: ${reserve} of ${cap}`, () => {
    const rig = new Rig({ max_concurrent_requests: cap }, hasHigh);
    const states = rig.states([
      ...Array.from({ length: ordinary }, () => 7),
      7,
      ...Array.from({ length: reserve }, () => 8),
      10,
    ]);
    const taken = Array.from({ length: ordinary }, () => "in");
    assert.deepEqual(states, [...taken, "shed", ...Array.from({ length: reserve }, () => "in"), "shed"]);
  });
}

test("admission: a consumer's priority overrides its route's", () => {
  const rig = new Rig({ max_concurrent_requests: 2 }, true);
  rig.ask();
  const lowered = rig.request(9);
  lowered.consumer = { name: "x", groups: [], priority: 1, credential: "api_key" };
  assert.equal(rig.ask(lowered).state, "shed");
  const raised = rig.request(1);
  raised.consumer = { name: "vip", groups: [], priority: 8, credential: "api_key" };
  assert.equal(rig.ask(raised).state, "in");
});

test("admission: dry run admits over the cap, logs and counts", () => {
  const rig = new Rig({ max_concurrent_requests: 1, load_shed_dry_run: true });
  assert.deepEqual(rig.states([5, 5]), ["in", "in"]);
  assert.deepEqual(rig.reports, ["503 1 requests are under way, at most 1 are allowed"]);
  assert.equal(rig.admission.active, 2);
});

const queue = (more: Settings["admission_queue"] = {}): Settings => ({
  max_concurrent_requests: 1,
  admission_queue: { enabled: true, max_queue_size: 4, queue_timeout_ms: 1500, ...more },
});

test("admission_queue: enabled false", () => {
  assert.deepEqual(new Rig(queue({ enabled: false })).states([5, 5]), ["in", "shed"]);
});

test("admission_queue: full = 503 at once; timeout = 503 with Retry-After", async () => {
  const rig = new Rig(queue({ per_priority: false }));
  rig.ask();
  const waiting = [1, 2, 3, 4].map(() => rig.ask());
  assert.equal(rig.ask().state, "shed");
  assert.deepEqual(rig.admission.queueCounts, { admitted: 0, timeout: 0, queueFull: 1, depth: 4 });
  await rig.clock.advance(1499);
  assert.deepEqual(
    waiting.map(({ state }) => state),
    ["waits", "waits", "waits", "waits"],
  );
  await rig.clock.advance(1);
  assert.deepEqual(
    waiting.map(({ state }) => state),
    waiting.map(() => "shed until 2"),
  );
  assert.deepEqual(rig.admission.queueCounts, { admitted: 0, timeout: 4, queueFull: 1, depth: 0 });
});

test("admission_queue: queued requests are admitted in order as permits are released", async () => {
  const rig = new Rig(queue({ per_priority: false }));
  const running = rig.request();
  rig.ask(running);
  const [one, two] = [rig.ask(), rig.ask()];
  rig.admission.release();
  await rig.clock.advance(0);
  assert.deepEqual([one.state, two.state, rig.admission.active], ["in", "waits", 1]);
  assert.equal(rig.clock.pendingTimers, 1, "an admitted request has no timer");
});

test("admission_queue: per_priority true: low priority may fill half of the queue, high priority goes first", async () => {
  const rig = new Rig(queue());
  const running = rig.request();
  rig.ask(running);
  const waiting = [5, 5, 5, 9, 9, 9].map((priority) => rig.ask(rig.request(priority)));
  const states = (): string[] => waiting.map(({ state }) => state);
  assert.deepEqual(states(), ["waits", "waits", "shed", "waits", "waits", "shed"]);
  rig.admission.release();
  await rig.clock.advance(0);
  assert.deepEqual(states(), ["waits", "waits", "shed", "in", "waits", "shed"]);
});

test("admission_queue: per_priority false: one queue for all", async () => {
  const rig = new Rig(queue({ per_priority: false }));
  const running = rig.request();
  rig.ask(running);
  const waiting = [5, 9, 5, 5].map((priority) => rig.ask(rig.request(priority)));
  rig.admission.release();
  await rig.clock.advance(0);
  assert.deepEqual(
    waiting.map(({ state }) => state),
    ["in", "waits", "waits", "waits"],
  );
});

test("admission_queue: a disconnected client leaves the queue and takes no permit", async () => {
  const rig = new Rig(queue());
  const running = rig.request();
  rig.ask(running);
  const gone = rig.request();
  rig.ask(gone);
  const next = rig.ask();
  gone.leaveAdmission?.();
  assert.equal(rig.clock.pendingTimers, 1);
  rig.admission.release();
  await rig.clock.advance(0);
  assert.deepEqual([next.state, rig.admission.active], ["in", 1]);
});

test("admission: a reload that raises the cap admits queued requests, one that sets a cap counts active requests", async () => {
  const rig = new Rig({});
  rig.ask();
  rig.publish(queue());
  const waiting = rig.ask();
  assert.equal(waiting.state, "waits");
  rig.publish({ ...queue(), max_concurrent_requests: 3 });
  assert.equal(rig.ask().state, "in");
  await rig.clock.advance(0);
  assert.equal(waiting.state, "in");
});

test("admission: permits never exceed the cap, and all are released", async () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant("ask" as const), priority: fc.nat(10) }),
      fc.record({ kind: fc.constantFrom("release" as const, "withdraw" as const, "time" as const), at: fc.nat(20) }),
    ),
    { maxLength: 60 },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 5 }),
      fc.boolean(),
      fc.boolean(),
      steps,
      async (cap, hasHigh, byPriority, list) => {
        const rig = new Rig({ ...queue({ per_priority: byPriority }), max_concurrent_requests: cap }, hasHigh);
        const known: { request: RequestContext; asked: { state: string } }[] = [];
        const inState = (state: string): typeof known => known.filter(({ asked }) => asked.state === state);
        for (const step of list) {
          if (step.kind === "ask") {
            const request = rig.request(step.priority);
            known.push({ request, asked: rig.ask(request) });
          } else if (step.kind === "time") await rig.clock.advance(step.at * 100);
          else {
            const from = inState(step.kind === "release" ? "in" : "waits");
            const chosen = from[step.at % Math.max(1, from.length)];
            if (chosen === undefined) continue;
            chosen.asked.state = "gone";
            if (step.kind === "release") rig.admission.release();
            else chosen.request.leaveAdmission?.();
          }
          await Promise.resolve();
          await Promise.resolve();
          assert.ok(rig.admission.active <= cap, `${rig.admission.active} of ${cap}`);
          assert.equal(rig.admission.active, inState("in").length);
          assert.equal(rig.admission.queueCounts.depth, inState("waits").length);
          assert.equal(rig.clock.pendingTimers, inState("waits").length);
        }
        for (let left = inState("in"); left.length > 0; left = inState("in")) {
          for (const { asked } of left) {
            asked.state = "gone";
            rig.admission.release();
          }
          await rig.clock.advance(0);
        }
        assert.deepEqual([rig.admission.active, rig.admission.queueCounts.depth], [0, 0]);
      },
    ),
    { numRuns: 200 },
  );
});
