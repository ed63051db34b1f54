import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrafficEntry } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import type { RequestMessage, ResponseMessage, TraceStep } from "#exchange/exchange.ts";
import { NEVER, openRig, type StoreRig } from "../store-rig.ts";
import { flagsOfKinds, RULE_KINDS, kindsOfFlags } from "../write/entry-record.ts";
import type { SampleOptions } from "./sample-exchange.ts";
import { storedFields } from "./stored-entry.ts";

test("fields are read from lines and from JSON", () => {
  const fields = ["Host", "a.test", "A", "", "B", "c: d"];
  assert.deepEqual(storedFields("Host: a.test\r\nA: \r\nB: c: d\r\n"), fields);
  assert.deepEqual(storedFields(JSON.stringify(fields)), fields);
  assert.deepEqual([storedFields("[]"), storedFields(null)], [[], null]);
});

for (const damaged of ["Host", "Host: a.test", "Host: a.test\r\nA", "Host\r\nA: b\r\n", "\r\n", ": ", "[", "\0"]) {
  test(`damaged fields are an error: ${JSON.stringify(damaged)}`, () => {
    assert.throws(() => storedFields(damaged), SyntaxError);
  });
}

const TRACE: readonly TraceStep[] = [
  { kind: "rewrite", ruleId: "r1", ruleName: "to staging", phase: "request", changes: ["host a.test to b.test"] },
  { kind: "throttle", ruleId: "t", ruleName: "3G", phase: "request", changes: [] },
  { kind: "rewrite", ruleId: "r2", ruleName: "teapot", phase: "response", changes: ["status 200 to 418"] },
];

const REQUEST: RequestMessage = {
  method: "POST",
  scheme: "https",
  host: "a.test",
  port: 8443,
  path: "/before?x=1",
  version: "HTTP/1.1",
  fields: ["Host", "a.test:8443", "X-Twice", "1", "x-twice", "2"],
  trailers: ["X-End", "1"],
};

const RESPONSE: ResponseMessage = {
  status: 200,
  reason: "Fine",
  version: "HTTP/1.0",
  fields: ["Content-Type", "text/plain"],
  trailers: undefined,
};

const TOUCHED: SampleOptions = {
  trace: TRACE,
  originalRequest: { message: REQUEST, body: Buffer.from("sent by the client") },
  originalResponse: { message: RESPONSE, body: Buffer.from([0, 255, 1]) },
  requestBody: ["sent on"],
  responseBody: ["delivered"],
};

async function onlyEntry(rig: StoreRig): Promise<TrafficEntry> {
  const { rows } = await rig.rows();
  const entry = await rig.entry(rows[0]?.id ?? "");
  assert.ok(entry !== undefined && rows.length === 1);
  return entry;
}

function checkTouched(entry: TrafficEntry): void {
  assert.equal(entry.modified, true);
  assert.deepEqual(
    entry.trace,
    TRACE.map(({ kind, ruleId, ruleName, phase, changes }) => {
      return { kind, rule_id: ruleId, rule_name: ruleName, phase, changes };
    }),
  );
  assert.equal(entry.request.body, "sent on");
  assert.equal(entry.response?.body, "delivered");
  const { original_request: request, original_response: response } = entry;
  assert.equal(request?.url, "https://a.test:8443/before?x=1");
  assert.deepEqual(request.headers_list, [
    ["Host", "a.test:8443"],
    ["X-Twice", "1"],
    ["x-twice", "2"],
  ]);
  assert.deepEqual(request.trailers_list, [["X-End", "1"]]);
  assert.deepEqual([request.method, request.body, request.body_size], ["POST", "sent by the client", 18]);
  assert.deepEqual(
    [response?.status_code, response?.status_message, response?.http_version],
    [200, "Fine", "HTTP/1.0"],
  );
  assert.deepEqual([response?.body, response?.body_state], ["base64:AP8B", "complete"]);
}

test("an entry keeps the trace of all rules and both original messages", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  rig.add(TOUCHED);
  await rig.store.flush();
  checkTouched(await onlyEntry(rig));
  const { rows } = await rig.rows();
  assert.deepEqual([rows[0]?.applied, rows[0]?.modified], [["rewrite", "throttle"], true]);
});

test("an original without a replaced body has the sent body, and a replaced empty body stays empty", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  rig.add({
    ...TOUCHED,
    originalRequest: { message: REQUEST, body: undefined },
    originalResponse: { message: RESPONSE, body: Buffer.alloc(0) },
  });
  await rig.store.flush();
  const { original_request: request, original_response: response } = await onlyEntry(rig);
  assert.deepEqual([request?.body, request?.body_size], ["sent on", 7]);
  assert.deepEqual([response?.body, response?.body_size, response?.body_state], [null, 0, "none"]);
});

test("an entry without rule effects has an empty trace", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  rig.add();
  await rig.store.flush();
  const { trace, original_request, original_response, modified } = await onlyEntry(rig);
  assert.deepEqual([trace, original_request, original_response, modified], [[], null, null, false]);
});

test("rule effects survive a restart, a session document and a HAR", async () => {
  await using directory = await temporaryDirectory();
  await using other = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  rig.add({ ...TOUCHED, scheme: "https", port: 443 });
  await rig.store.flush();
  const documents = [
    await rig.store.exportSession(rig.store.activeSessionId, NEVER),
    { chunks: (await rig.store.exportHar({}, undefined, NEVER)).chunks },
  ];
  const [session = Buffer.alloc(0), har = Buffer.alloc(0)] = await Promise.all(
    documents.map(async (document) => Buffer.concat(await Array.fromAsync(document?.chunks ?? []))),
  );
  await using target = await openRig(other.path);
  const options = { sessionName: undefined, switchSession: true, signal: NEVER, onProgress: () => undefined };
  await target.store.importSession(pieces(session), options);
  checkTouched(await onlyEntry(target));
  assert.deepEqual((await target.rows()).rows[0]?.applied, ["rewrite", "throttle"]);
  await target.store.importHar(pieces(har), options);
  checkTouched(await onlyEntry(target));
});

async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

test("deleting an entry removes its effects, and replaced bodies count towards the limits", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { id } = rig.add(TOUCHED);
  await rig.store.flush();
  const sizeOf = (): number => rig.store.status().totalSizeBytes;
  assert.equal(sizeOf(), "sent on".length + "delivered".length + 18 + 3);
  await rig.store.deleteEntries([id]);
  assert.equal(sizeOf(), 0);
});

test("each kind of rule has its own bit, and flags of older stores have none", () => {
  for (const kind of RULE_KINDS) assert.deepEqual(kindsOfFlags(flagsOfKinds([{ kind }, { kind }]) | 7), [kind]);
  assert.deepEqual(kindsOfFlags(7), []);
  assert.deepEqual(kindsOfFlags(flagsOfKinds(RULE_KINDS.map((kind) => ({ kind })))), RULE_KINDS);
});
