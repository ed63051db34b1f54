import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigDocument, Consumer } from "@headworks/gateway-contract";
import { FakeClock, temporaryDirectory } from "@headworks/testkit";
import { pino } from "pino";
import { type Gate, RequestContext, type Verdict } from "#request/context.ts";
import { TrustedProxies } from "#request/forwarding-rules.ts";
import type { CompileScope, IssueReport } from "#slice.ts";
import { openStateStore } from "#storage/open-state-store.ts";
import type { ChargeResult, StateStore } from "#storage/state-store.ts";
import { quotas, type QuotasSlice, usageJson, type UsageRecord } from "./quotas.slice.ts";

const MARCH = Date.UTC(2026, 2, 10, 12);
const S = 1000;

function documentOf(...consumers: Consumer[]): ConfigDocument {
  return {
    gateway: {},
    listeners: [],
    upstreams: [],
    services: [],
    routes: [],
    consumers,
    policies: [],
    webhooks: [],
    admin: undefined,
    analytics: undefined,
  };
}

function requestOf(consumer: string | undefined, document: ConfigDocument): RequestContext {
  const request = new RequestContext({
    generation: {
      number: 1,
      contentHash: 1,
      document,
      routes: { resolve: () => false },
      routeList: [],
      trustedProxies: new TrustedProxies([]),
      unroutedGates: new Map(),
    },
    listener: { name: "main", port: 80, isSecure: false },
    peer: { address: "127.0.0.1", port: 1 },
    startedMs: 0,
    version: "1.1",
    method: "GET",
    target: "/",
    authority: "gateway.test",
    fields: [],
    framing: { kind: "none" },
  });
  request.requestId = "req-1";
  if (consumer !== undefined) {
    request.consumer = { name: consumer, groups: [], priority: undefined, credential: "api_key" };
  }
  return request;
}

interface Rig {
  readonly slice: QuotasSlice;
  readonly clock: FakeClock;
  readonly lines: Record<string, unknown>[];
  readonly counted: string[];
  /** Compiles and publishes; gives the gate of a route. */
  readonly publish: (document: ConfigDocument) => Gate | undefined;
}

function rigOf(store: StateStore | undefined, clock = new FakeClock(MARCH)): Rig {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level: "info" },
    { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const counted: string[] = [];
  const metrics = {
    dryRun: (route: string) => void counted.push(`dry ${route}`),
    denied: (consumer: string, budget: string) => void counted.push(`denied ${consumer} ${budget}`),
  };
  const slice = quotas({ store, log, clock, metrics });
  const scope = { generation: 1, clock, log } as unknown as CompileScope;
  return {
    slice,
    clock,
    lines,
    counted,
    publish: (document) => {
      const compiled = slice.compile?.(document, scope);
      compiled?.published?.();
      return compiled?.gateFor?.({ name: "any" } as never);
    },
  };
}

async function opened(): Promise<{ store: StateStore; clock: FakeClock } & AsyncDisposable> {
  const directory = await temporaryDirectory();
  const clock = new FakeClock(MARCH);
  const store = await openStateStore({ path: directory.file("state.db"), log: pino({ level: "silent" }), clock });
  return {
    store,
    clock,
    [Symbol.asyncDispose]: async () => {
      await store.close();
      await directory.remove();
    },
  };
}

/** The fields of a refusal by name. */
function headersOf(verdict: Verdict): Record<string, string> {
  const fields = verdict?.fields ?? [];
  return Object.fromEntries(
    Array.from({ length: fields.length / 2 }, (_, index) => [fields[index * 2] ?? "", fields[index * 2 + 1] ?? ""]),
  );
}

test("quota rule 1: quotas need a budget, and a budget is greater than zero; all are reported with their places", () => {
  const issues: string[] = [];
  const report: IssueReport = {
    error: (code, fieldPath, message) => void issues.push(`${code} ${fieldPath.join("/")} ${message.split(" ")[1]}`),
    warning: () => assert.fail("nothing here is a warning"),
  };
  const document = documentOf(
    { name: "none" },
    { name: "empty", quotas: {} },
    { name: "dry", quotas: { dry_run: true } },
    { name: "zero", quotas: { daily_requests: 0n, monthly_requests: 0n } },
    { name: "good", quotas: { daily_requests: 1n, monthly_requests: 2n ** 64n - 1n } },
  );
  rigOf(undefined).slice.check?.(document, report, {} as never);
  assert.deepEqual(issues, [
    "quota_empty consumers/1/quotas 'empty'",
    "quota_empty consumers/2/quotas 'dry'",
    "quota_zero consumers/3/quotas/daily_requests 'zero'",
    "quota_zero consumers/3/quotas/monthly_requests 'zero'",
  ]);
});

test("a document without quotas has no gate; consumers without quotas and anonymous clients pass synchronously", async () => {
  await using rig = await opened();
  const { publish } = rigOf(rig.store, rig.clock);
  assert.equal(publish(documentOf({ name: "plain" })), undefined);
  const document = documentOf({ name: "plain" }, { name: "paid", quotas: { daily_requests: 5n } });
  const gate = publish(document);
  assert.equal(gate?.check(requestOf(undefined, document)), undefined);
  assert.equal(gate?.check(requestOf("plain", document)), undefined);
  assert.ok(gate?.check(requestOf("paid", document)) instanceof Promise);
});

test("the request that would exceed a budget is refused with the four headers of that budget", async () => {
  await using rig = await opened();
  const { publish, clock, counted } = rigOf(rig.store, rig.clock);
  const document = documentOf({ name: "paid", quotas: { daily_requests: 2n, monthly_requests: 3n } });
  const gate = publish(document);
  const ask = async (): Promise<Verdict> => await gate?.check(requestOf("paid", document));
  assert.equal(await ask(), undefined);
  assert.equal(await ask(), undefined);
  clock.jumpWallClock(1);
  const refused = requestOf("paid", document);
  const verdict = await gate?.check(refused);
  assert.deepEqual(verdict, {
    code: "quota_exceeded",
    fields: [
      "Retry-After",
      "43200",
      "X-RateLimit-Limit",
      "2",
      "X-RateLimit-Remaining",
      "0",
      "X-RateLimit-Reset",
      String(Date.UTC(2026, 2, 11) / S),
    ],
  });
  assert.equal(refused.wasRateLimited, true);
  assert.deepEqual(counted, ["denied paid daily"]);
  // The next day the month has one unit left; then both are used up only in part.
  clock.jumpWallClock(86_400_000);
  assert.equal(await ask(), undefined);
  assert.equal(headersOf(await ask())["X-RateLimit-Limit"], "3");
  assert.equal(headersOf(await ask())["X-RateLimit-Reset"], String(Date.UTC(2026, 3, 1) / S));
});

test("when both budgets are exhausted, all four headers come from the one that resets later", async () => {
  await using rig = await opened();
  const { publish } = rigOf(rig.store, rig.clock);
  const document = documentOf({ name: "paid", quotas: { daily_requests: 1n, monthly_requests: 1n } });
  const gate = publish(document);
  await gate?.check(requestOf("paid", document));
  const april = Date.UTC(2026, 3, 1);
  assert.deepEqual(headersOf(await gate?.check(requestOf("paid", document))), {
    "Retry-After": String((april - MARCH) / S),
    "X-RateLimit-Limit": "1",
    "X-RateLimit-Remaining": "0",
    "X-RateLimit-Reset": String(april / S),
  });
});

test("limits are those of the running generation: a raised budget admits at once against the same counter", async () => {
  await using rig = await opened();
  const { publish } = rigOf(rig.store, rig.clock);
  const small = documentOf({ name: "paid", quotas: { daily_requests: 1n } });
  const first = publish(small);
  await first?.check(requestOf("paid", small));
  assert.ok(await first?.check(requestOf("paid", small)));
  const large = documentOf({ name: "paid", quotas: { daily_requests: 2n } });
  const second = publish(large);
  assert.equal(await second?.check(requestOf("paid", large)), undefined);
  assert.ok(await second?.check(requestOf("paid", large)));
});

test("quota dry run: the request passes, counting goes on, and each would-be refusal is logged and counted once, as the budget's that resets later", async () => {
  await using rig = await opened();
  const { publish, slice, lines, counted } = rigOf(rig.store, rig.clock);
  const document = documentOf({ name: "paid", quotas: { daily_requests: 1n, monthly_requests: 2n, dry_run: true } });
  const gate = publish(document);
  for (let index = 0; index < 3; index += 1) {
    const request = requestOf("paid", document);
    assert.equal(await gate?.check(request), undefined);
    assert.equal(request.wasRateLimited, false);
  }
  const told = lines.filter((line) => line["code"] === "policy_dry_run");
  assert.deepEqual(
    told.map((line) => [line["consumer"], line["budget"], line["phase"], line["would_be_status"]]),
    [
      ["paid", "daily", "quota", 429],
      ["paid", "monthly", "quota", 429],
    ],
  );
  assert.deepEqual(counted, ["dry unrouted", "dry unrouted"]);
  const record = (await slice.usageRecord("paid")) as UsageRecord;
  assert.deepEqual(
    record.consumers[0]?.budgets.map(({ used, remaining }) => [used, remaining]),
    [
      [3n, 0n],
      [3n, 0n],
    ],
  );
});

test("quota rule 4: without a store nothing is enforced, and the log says so once", async () => {
  const { publish, lines, slice } = rigOf(undefined);
  const document = documentOf({ name: "paid", quotas: { daily_requests: 1n } });
  const gate = publish(document);
  assert.equal(lines.length, 0);
  for (let index = 0; index < 3; index += 1) assert.equal(gate?.check(requestOf("paid", document)), undefined);
  assert.deepEqual(
    lines.map((line) => line["code"]),
    ["quota_store_missing"],
  );
  const response = await slice.usageRecord();
  assert.equal("refused" in response && response.refused, "state_store_not_configured");
});

function storeAnswering(result: ChargeResult | Promise<ChargeResult>): StateStore {
  return {
    quotas: {
      charge: () => result,
      usage: () => Promise.reject(new Error("unused")),
      syncConsumers: () => Promise.resolve(),
    },
  } as unknown as StateStore;
}

test("a store that fails is 500 quota_store_unavailable, never a free pass; the log says it at most once a second", async () => {
  for (const result of [{ outcome: "failed", error: "no disk" }] as const) {
    for (const given of [result, Promise.resolve(result)]) {
      const { publish, lines, clock } = rigOf(storeAnswering(given));
      const document = documentOf({ name: "paid", quotas: { daily_requests: 1n } });
      const gate = publish(document);
      const ask = async (): Promise<Verdict> => await gate?.check(requestOf("paid", document));
      for (let index = 0; index < 3; index += 1) assert.deepEqual(await ask(), { code: "quota_store_unavailable" });
      await clock.advance(1000);
      await ask();
      assert.deepEqual(
        lines.map((line) => [line["code"], line["requests"], line["msg"]]),
        [
          ["quota_store_unavailable", 1, "no disk"],
          ["quota_store_unavailable", 3, "no disk"],
        ],
      );
    }
  }
});

test("a consumer without a row passes with the warning quota_consumer_unsynced, once for each", async () => {
  const { publish, lines } = rigOf(storeAnswering({ outcome: "unsynced" }));
  const document = documentOf(
    { name: "paid", quotas: { daily_requests: 1n } },
    { name: "new", quotas: { daily_requests: 1n } },
  );
  const gate = publish(document);
  for (const name of ["paid", "paid", "new"]) assert.equal(await gate?.check(requestOf(name, document)), undefined);
  assert.deepEqual(
    lines.map((line) => [line["code"], line["consumer"]]),
    [
      ["quota_consumer_unsynced", "paid"],
      ["quota_consumer_unsynced", "new"],
    ],
  );
});

test("the usage record is the specification's: fields, order, daily first, exact integers", async () => {
  await using rig = await opened();
  const { publish, slice } = rigOf(rig.store, rig.clock);
  const max = 18_446_744_073_709_551_615n;
  const document = documentOf(
    { name: 'b "quoted"', quotas: { monthly_requests: max, daily_requests: 9_007_199_254_740_993n } },
    { name: "without" },
    { name: "a", quotas: { monthly_requests: 7n } },
  );
  const gate = publish(document);
  await gate?.check(requestOf('b "quoted"', document));
  const april = Date.UTC(2026, 3, 1) / S;
  const march = Date.UTC(2026, 2, 1) / S;
  const day = Date.UTC(2026, 2, 10) / S;
  const record = (await slice.usageRecord()) as UsageRecord;
  assert.equal(
    usageJson(record),
    `{"now_epoch_s":${MARCH / S},"consumers":[` +
      `{"consumer":"b \\"quoted\\"","synced":true,"budgets":[` +
      `{"budget":"daily","limit":9007199254740993,"used":1,"remaining":9007199254740992,"window_start_epoch_s":${day},"reset_epoch_s":${day + 86_400}},` +
      `{"budget":"monthly","limit":18446744073709551615,"used":1,"remaining":18446744073709551614,"window_start_epoch_s":${march},"reset_epoch_s":${april}}]},` +
      `{"consumer":"a","synced":true,"budgets":[` +
      `{"budget":"monthly","limit":7,"used":0,"remaining":7,"window_start_epoch_s":${march},"reset_epoch_s":${april}}]}]}`,
  );
  const one = (await slice.usageRecord("a")) as UsageRecord;
  assert.deepEqual(
    one.consumers.map((entry) => entry.consumer),
    ["a"],
  );
  for (const bad of ["without", "nobody", ""]) {
    const response = await slice.usageRecord(bad);
    assert.equal("refused" in response && response.refused, "quota_bad_consumer");
  }
});

test("a consumer whose row is missing is listed unsynced, without budgets", async () => {
  await using rig = await opened();
  const { slice, publish } = rigOf({
    ...rig.store,
    quotas: { ...rig.store.quotas, syncConsumers: () => Promise.resolve() },
  });
  publish(documentOf({ name: "paid", quotas: { daily_requests: 1n } }));
  const record = (await slice.usageRecord()) as UsageRecord;
  assert.equal(
    usageJson(record).slice(-52),
    '"consumers":[{"consumer":"paid","synced":false,"budgets":[]}]}'.slice(-52),
  );
});

test("clock: a budget is fresh at midnight and at the month's first instant, and an old window counts on when the clock is set back", async () => {
  await using rig = await opened();
  const { publish, clock } = rigOf(rig.store, rig.clock);
  const document = documentOf({ name: "paid", quotas: { daily_requests: 1n, monthly_requests: 3n } });
  const gate = publish(document);
  const askAt = async (text: string): Promise<string> => {
    clock.jumpWallClock(Date.parse(text) - clock.now());
    const verdict = await gate?.check(requestOf("paid", document));
    return verdict === undefined ? "passes" : (headersOf(verdict)["Retry-After"] ?? "");
  };
  const steps: readonly (readonly [string, string])[] = [
    ["2028-02-28T23:59:58.000Z", "passes"],
    ["2028-02-28T23:59:58.500Z", "2"],
    ["2028-02-28T23:59:59.999Z", "1"],
    ["2028-02-29T00:00:00.000Z", "passes"],
    ["2028-02-29T23:59:59.000Z", "1"],
    // Back on the day before: its unit is spent.
    ["2028-02-28T12:00:00.000Z", "43200"],
    ["2028-02-27T12:00:00.000Z", "passes"],
    // The month is spent, whatever the day.
    ["2028-02-26T00:00:00.000Z", String(4 * 86_400)],
    ["2028-03-01T00:00:00.000Z", "passes"],
    ["2028-02-29T23:59:59.999Z", "1"],
    ["2028-12-31T23:59:59.999Z", "passes"],
    ["2029-01-01T00:00:00.000Z", "passes"],
    ["2028-12-31T23:59:59.999Z", "1"],
  ];
  for (const [time, expected] of steps) assert.equal(await askAt(time), expected, time);
});
