import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { startGateway } from "../gateway-rig.ts";
import { ok, startReceiver, type Receiver } from "./receiver.ts";

const documentFor = (url: string, more: Partial<DocumentInput> = {}): DocumentInput => ({
  gateway: { name: "edge" },
  routes: [
    { name: "hello", match: { path: { type: "prefix", value: "/" } }, action: { type: "respond", status: 200 } },
  ],
  webhooks: [{ url, events: ["config_published", "config_rejected"], headers: { "X-Key": "${HOOK_KEY}" } }],
  ...more,
});

const environment = { HOOK_KEY: "s3cret" };

interface Envelope {
  readonly id: string;
  readonly kind: string;
  readonly gateway: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

const envelopes = (receiver: Receiver): Envelope[] =>
  receiver.requests.map(({ body }) => JSON.parse(body) as Envelope).toSorted((a, b) => (a.id < b.id ? -1 : 1));

test("the events of starting, reloading and refusing a document reach a target of the document", async () => {
  await using receiver = await startReceiver(ok);
  await using gateway = await startGateway(documentFor(receiver.url), { environment });
  await waitUntil(() => receiver.requests.length === 1);
  await gateway.reload(documentFor(receiver.url, { routes: [] }));
  await waitUntil(() => receiver.requests.length === 2);
  await gateway.reload("routes: 7");
  await waitUntil(() => receiver.requests.length === 3);
  const told = envelopes(receiver);
  assert.deepEqual(
    told.map(({ kind }) => kind),
    ["config_published", "config_published", "config_rejected"],
  );
  assert.deepEqual(
    told.map(({ payload }) => payload["generation"]),
    [1, 2, 2],
  );
  assert.deepEqual(
    told.map(({ payload }) => payload["route_count"]),
    [1, 0, undefined],
  );
  assert.equal(receiver.requests[0]?.header("x-key"), "s3cret");
});

test("egress rule 4: the document's filter stands before deliveries, of the very first event too, without a retry", async () => {
  await using receiver = await startReceiver(ok);
  await using gateway = await startGateway(documentFor(receiver.url, { ssrf_filter: { deny: ["127.0.0.0/8"] } }), {
    environment,
  });
  const coded = (code: string): Record<string, unknown>[] => gateway.log.filter((line) => line["code"] === code);
  await waitUntil(() => coded("webhook_delivery_failed").length === 1);
  assert.equal(coded("ssrf_denied").length, 1);
  assert.equal(coded("webhook_delivery_failed")[0]?.["attempts"], 1);
  assert.equal(receiver.connections.length, 0);
  await gateway.reload(documentFor(receiver.url));
  await waitUntil(() => receiver.requests.length === 1);
  assert.deepEqual(
    envelopes(receiver).map(({ payload }) => payload["generation"]),
    [2],
  );
});

test("delivery rule 7: an event without an outcome at the stop is sent at the next start, then the start's own", async () => {
  await using directory = await temporaryDirectory();
  const state = { ...environment, GATEWAY_STATE_DB: directory.file("state.db") };
  await using receiver = await startReceiver(async (connection) => void (await connection.closed), ok);
  const target = { url: receiver.url, events: ["config_published"], timeout_ms: 60_000 };
  {
    await using _gateway = await startGateway(documentFor(receiver.url, { webhooks: [target] }), {
      environment: state,
    });
    await waitUntil(() => receiver.requests.length === 1);
  }
  await using _gateway = await startGateway(documentFor(receiver.url, { webhooks: [target] }), { environment: state });
  await waitUntil(() => receiver.requests.length === 3);
  const [first, again, own] = envelopes(receiver);
  assert.equal(first?.id, again?.id);
  assert.notEqual(first?.id, own?.id);
});
