import assert from "node:assert/strict";
import { test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { EventJournal } from "#events/event-bus.ts";
import { EventStreams } from "#admin/event-operations.ts";
import { ADMIN, call, DEV, listeners } from "./admin-rig.ts";
import { startGateway, type TestGateway } from "./gateway-rig.ts";
import { response, ok, startReceiver } from "./webhooks/receiver.ts";

const document = (webhookPort: number, body = "one") => ({
  listeners,
  admin: ADMIN,
  routes: [
    {
      name: "fixed",
      match: { path: { type: "exact" as const, value: "/" } },
      action: { type: "respond" as const, status: 200, body },
    },
  ],
  webhooks: [
    {
      url: `http://127.0.0.1:${webhookPort}/hook?token=s3cret`,
      events: ["config_rejected" as const],
      max_attempts: 1,
    },
  ],
});

const always = (): boolean => true;

interface Stream {
  /** Waits until the text that came so far matches. */
  until(pattern: RegExp): Promise<string>;
  /** Resolves when the server has ended it. */
  readonly ended: Promise<void>;
  readonly status: number;
  readonly type: string | null;
}

async function openStream(gateway: TestGateway, path: string, init: RequestInit = {}): Promise<Stream> {
  const response = await fetch(`${gateway.gateway.adminUrl}${path}`, init);
  let text = "";
  const ended = (async () => {
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += piece;
  })();
  ended.catch(() => undefined);
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    ended,
    until: async (pattern) => {
      await waitUntil(() => pattern.test(text), { what: String(pattern) });
      return text;
    },
  };
}

test("GET /events/stream tells what happens, goes on behind a known id, and ends when the gateway stops", async () => {
  await using hook = await startReceiver(ok);
  const gateway = await startGateway(document(hook.port), DEV);
  try {
    const stream = await openStream(gateway, "/events/stream");
    assert.deepEqual([stream.status, stream.type], [200, "text/event-stream; charset=utf-8"]);
    await stream.until(/^retry: 2000\n\n/);
    await gateway.reload(document(hook.port, "two"));
    const text = await stream.until(/event: config_published\ndata: .*\n\n/);
    const id = /id: (\S+)/.exec(text)?.[1] ?? "";
    const first = (await call(gateway, "/events")).json()["events"] as unknown as { id: string }[];
    assert.ok(first.some((event) => event.id === id));
    const later = await openStream(gateway, "/events/stream", {
      headers: { "last-event-id": first.at(-1)?.id ?? "" },
    });
    await later.until(new RegExp(`id: ${id}\\nevent: config_published\\n`));
    await gateway.gateway.stop(1000);
    await Promise.all([stream.ended, later.ended]);
  } finally {
    await gateway[Symbol.asyncDispose]();
  }
});

test("streams: 32 at a time, HEAD opens none, and a client that goes makes room", async () => {
  await using hook = await startReceiver(ok);
  await using gateway = await startGateway(document(hook.port), DEV);
  assert.equal((await call(gateway, "/events/stream", { method: "HEAD" })).status, 405);
  const leave = new AbortController();
  const init = { signal: leave.signal };
  await Promise.all(Array.from({ length: 32 }, async () => await openStream(gateway, "/events/stream", init)));
  const tooMany = await call(gateway, "/events/stream");
  assert.deepEqual([tooMany.status, /"too_many_streams"/.test(tooMany.text)], [503, true]);
  leave.abort();
  await waitUntil(
    async () => {
      const again = new AbortController();
      const { status } = await openStream(gateway, "/events/stream", { signal: again.signal });
      again.abort();
      return status === 200;
    },
    { what: "room for another stream" },
  );
});

test("an unread stream is closed when too much is queued for it, and a quiet one has heartbeats", async () => {
  const journal = new EventJournal();
  const streams = new EventStreams(journal, { heartbeatMs: 5, max: 2, maxWaiting: 2000 });
  const quiet = streams.open(undefined, always);
  await waitUntil(() => String(quiet?.read() ?? "").includes(": here\n\n"), { what: "a heartbeat" });
  quiet?.destroy();
  const stuck = streams.open(undefined, always);
  const payload = { generation: 1, content_hash: 1, route_count: 1 };
  for (let at = 0; at < 20; at += 1) {
    journal.add({ id: `evt-1-${at}`, kind: "config_published", timestamp: "t", gateway: "g", payload });
  }
  assert.equal(stuck?.destroyed, true);
  await waitUntil(() => streams.size === 0, { what: "both streams gone" });
  streams.close();
  assert.equal(streams.open(undefined, always), undefined);
});

test("nothing comes behind the end of a stream whose client reads slowly, however long it takes", async () => {
  const journal = new EventJournal();
  const streams = new EventStreams(journal, { heartbeatMs: 1, max: 2, maxWaiting: 2000 });
  const stream = streams.open(undefined, always);
  const errors: Error[] = [];
  stream?.on("error", (error) => errors.push(error));
  streams.close();
  const payload = { generation: 1, content_hash: 1, route_count: 1 };
  journal.add({ id: "evt-1-1", kind: "config_published", timestamp: "t", gateway: "g", payload });
  // Several heartbeats long.
  await new Promise((resolve) => setTimeout(resolve, 20));
  let text = "";
  for await (const piece of stream ?? []) text += String(piece);
  assert.deepEqual([text, errors], ["retry: 2000\n\n", []]);
});

test("POST /webhooks/test sends an example to a target, whatever kinds it asks for, and says how that ended", async () => {
  await using hook = await startReceiver(ok, response(400));
  await using gateway = await startGateway(document(hook.port), DEV);
  const url = `http://127.0.0.1:${hook.port}/hook`;
  const send = async (body: object) =>
    await call(gateway, "/webhooks/test", { method: "POST", body: JSON.stringify(body) });
  const sent = (await send({ url, kind: "breaker_opened" })).json() as unknown as Record<string, unknown>;
  assert.deepEqual(
    [sent["outcome"], sent["kind"], sent["status"], sent["attempts"]],
    ["delivered", "breaker_opened", 204, 1],
  );
  const got = JSON.parse(hook.requests[0]?.body ?? "{}") as { id: string; kind: string };
  assert.deepEqual([got.id, got.kind], [sent["id"], "breaker_opened"]);
  assert.equal((await send({ url })).json()["outcome"], "failed");
  assert.equal((await send({ url: "http://127.0.0.1:1/other" })).status, 404);
  assert.equal((await send({ url, kind: "nonsense" })).status, 400);
  assert.doesNotMatch((await call(gateway, "/audit")).text, /s3cret/);
});

test("POST /events/replay sends kept events once more in order, and stops at the first that is not taken", async () => {
  await using hook = await startReceiver(ok, ok, ok, ok, response(400));
  await using gateway = await startGateway(document(hook.port), DEV);
  for (const text of ["two", "three"]) {
    await call(gateway, "/config", { method: "PUT", body: JSON.stringify(document(hook.port, text)) });
  }
  const ids = ((await call(gateway, "/events")).json()["events"] as unknown as { id: string }[])
    .map(({ id }) => id)
    .toReversed();
  assert.equal(ids.length, 3);
  const target = `http://127.0.0.1:${hook.port}/hook`;
  const replay = async (body: object) =>
    await call(gateway, "/events/replay", { method: "POST", body: JSON.stringify({ target, ...body }) });
  const received = (): string[] => hook.requests.map(({ body }) => (JSON.parse(body) as { id: string }).id);
  const all = (await replay({ from: ids[0] })).json();
  assert.equal(all["complete"], true);
  assert.deepEqual(received(), ids);
  await replay({ from: ids[1], to: ids[1] });
  assert.deepEqual(received(), [...ids, ids[1]]);
  const stopped = (await replay({ from: ids[0] })).json() as unknown as { complete: boolean; deliveries: object[] };
  assert.deepEqual([stopped.complete, stopped.deliveries.length], [false, 1]);
  assert.equal((await replay({ from: "evt-z" })).status, 404);
});
