import assert from "node:assert/strict";
import { test } from "node:test";
import type { WebhookTarget } from "@headworks/gateway-contract";
import { startRawServer, waitUntil, type RawConnection } from "@headworks/testkit";
import type { DeliveryOutcome } from "#events/event-bus.ts";
import { response, ok, startReceiver, type Reply } from "./receiver.ts";
import { SAMPLE, target, webhookRig } from "./webhook-rig.ts";

interface Case {
  readonly name: string;
  readonly replies: readonly Reply[];
  readonly knobs?: Partial<WebhookTarget>;
  readonly outcome: DeliveryOutcome;
  readonly attempts: number;
  /** Bounds on the time of the whole delivery. */
  readonly minMs?: number;
  readonly maxMs?: number;
}

const drop = (connection: RawConnection): void => connection.destroy();
const reset = (connection: RawConnection): void => connection.reset();
const forever = async (connection: RawConnection): Promise<void> => void (await connection.closed);

const CASES: readonly Case[] = [
  {
    name: "delivery rule 1: a target that takes the POST but drops the connection gets the event again",
    replies: [drop, ok],
    outcome: "delivered",
    attempts: 2,
  },
  {
    name: "delivery rule 1: a target that resets the connection gets the event again",
    replies: [reset, ok],
    outcome: "delivered",
    attempts: 2,
  },
  {
    name: "delivery rule 1: a target that hangs up inside its answer's head gets the event again",
    replies: ["HTTP/1.1 200 OK\r\nContent-", ok],
    outcome: "delivered",
    attempts: 2,
  },
  {
    name: "delivery rule 2: transport failures are retried up to max_attempts in total",
    replies: [drop],
    knobs: { max_attempts: 4 },
    outcome: "failed",
    attempts: 4,
  },
  {
    name: "delivery rule 2: max_attempts 1 means no retry",
    replies: [drop, ok],
    knobs: { max_attempts: 1 },
    outcome: "failed",
    attempts: 1,
  },
  ...[429, 502, 503, 504].map((status): Case => ({
    name: `delivery rule 2: the status ${status} is retried`,
    replies: [response(status), ok],
    outcome: "delivered",
    attempts: 2,
  })),
  {
    name: "delivery rule 2: the waits double from backoff_base_ms and are capped at backoff_cap_ms",
    replies: [response(503)],
    knobs: { max_attempts: 4, backoff_base_ms: 40, backoff_cap_ms: 60 },
    outcome: "failed",
    attempts: 4,
    minMs: 40 + 60 + 60,
  },
  {
    name: "delivery rule 3: Retry-After in seconds replaces the computed wait",
    replies: [response(503, "Retry-After: 1"), ok],
    knobs: { backoff_base_ms: 0, backoff_cap_ms: 0 },
    outcome: "delivered",
    attempts: 2,
    minMs: 995,
  },
  {
    name: "delivery rule 3: Retry-After 0 retries at once, and still is one of max_attempts",
    replies: [response(429, "Retry-After: 0")],
    knobs: { max_attempts: 3, backoff_base_ms: 60_000, backoff_cap_ms: 60_000 },
    outcome: "failed",
    attempts: 3,
    maxMs: 1500,
  },
  {
    name: "delivery rule 3: Retry-After as a date is ignored",
    replies: [response(503, "Retry-After: Fri, 31 Dec 2999 23:59:59 GMT"), ok],
    outcome: "delivered",
    attempts: 2,
  },
  ...["-1", "+1", "1.5", "1e3", "soon", "1 2", ""].map((value): Case => ({
    name: `delivery rule 3: Retry-After "${value}" is no number of seconds and is ignored`,
    replies: [response(503, `Retry-After: ${value}`), ok],
    outcome: "delivered",
    attempts: 2,
    maxMs: 1500,
  })),
  ...[400, 401, 404, 408, 410, 413, 500, 501, 505].map((status): Case => ({
    name: `delivery rule 4: the status ${status} fails the delivery at once`,
    replies: [response(status, "Retry-After: 0"), ok],
    outcome: "failed",
    attempts: 1,
  })),
  ...[301, 302, 303, 307, 308].map((status): Case => ({
    name: `delivery rule 4: the redirect ${status} is not followed and fails the delivery at once`,
    replies: [response(status, "Location: /elsewhere"), ok],
    outcome: "failed",
    attempts: 1,
  })),
  ...[200, 201, 202, 204, 299].map((status): Case => ({
    name: `any 2xx is success: ${status}`,
    replies: [response(status)],
    outcome: "delivered",
    attempts: 1,
  })),
  {
    name: "delivery rule 5: a target that never answers is given up at timeout_ms, without another attempt",
    replies: [forever],
    knobs: { timeout_ms: 1000 },
    outcome: "failed",
    attempts: 1,
    minMs: 995,
    maxMs: 2300,
  },
  {
    name: "delivery rule 5: Retry-After that does not fit into the rest of timeout_ms ends the delivery without waiting",
    replies: [response(503, "Retry-After: 2"), ok],
    knobs: { timeout_ms: 1900 },
    outcome: "failed",
    attempts: 1,
    maxMs: 1500,
  },
  {
    name: "delivery rule 5: Retry-After bait with a gigantic number ends the delivery without waiting",
    replies: [response(503, `Retry-After: ${"9".repeat(400)}`), ok],
    outcome: "failed",
    attempts: 1,
    maxMs: 1500,
  },
  {
    name: "delivery rule 5: a computed wait that does not fit ends the delivery without waiting",
    replies: [response(503), ok],
    knobs: { timeout_ms: 1900, backoff_base_ms: 2000, backoff_cap_ms: 2000 },
    outcome: "failed",
    attempts: 1,
    maxMs: 1500,
  },
  {
    name: "delivery rule 5: the attempts share one timeout_ms",
    replies: [response(503, "Retry-After: 0"), response(503, "Retry-After: 0"), forever],
    knobs: { timeout_ms: 1000, max_attempts: 10 },
    outcome: "failed",
    attempts: 3,
    minMs: 995,
    maxMs: 2300,
  },
  {
    name: "hostile target: a head that drips is bounded by timeout_ms",
    replies: [
      async (connection) => {
        const head = "HTTP/1.1 200 OK\r\nX-Slow: " + "a".repeat(4000);
        for (let at = 0; at < head.length && !connection.socket.destroyed; at += 1) {
          connection.socket.write(head.charAt(at));
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      },
    ],
    knobs: { timeout_ms: 1000 },
    outcome: "failed",
    attempts: 1,
    maxMs: 2300,
  },
  {
    name: "hostile target: an endless body is not read; the status counts and the connection is closed",
    replies: [
      async (connection) => {
        connection.socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
        while (!connection.socket.destroyed) {
          if (!connection.socket.write(chunk)) await new Promise((resolve) => setTimeout(resolve, 1));
        }
      },
    ],
    outcome: "delivered",
    attempts: 1,
    maxMs: 1500,
  },
  {
    name: "hostile target: a head above 8 KiB is no answer",
    replies: [`HTTP/1.1 200 OK\r\nX-Big: ${"a".repeat(9000)}\r\n\r\n`],
    knobs: { max_attempts: 2 },
    outcome: "failed",
    attempts: 2,
  },
  {
    name: "hostile target: a head of 8,000 bytes is an answer",
    replies: [`HTTP/1.1 200 OK\r\nX-Big: ${"a".repeat(7960)}\r\n\r\n`],
    outcome: "delivered",
    attempts: 1,
  },
  {
    name: "hostile target: an endless head is given up",
    replies: [
      async (connection) => {
        connection.socket.write("HTTP/1.1 200 OK\r\n");
        while (!connection.socket.destroyed) {
          if (!connection.socket.write("X-A: b\r\n".repeat(1000))) await new Promise((go) => setTimeout(go, 1));
        }
      },
    ],
    knobs: { max_attempts: 1 },
    outcome: "failed",
    attempts: 1,
    maxMs: 1500,
  },
  {
    name: "hostile target: a flood of informational answers is given up",
    replies: ["HTTP/1.1 102 Processing\r\n\r\n".repeat(1000) + ok],
    knobs: { max_attempts: 1 },
    outcome: "failed",
    attempts: 1,
  },
  {
    name: "informational answers come before the one that counts",
    replies: [`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok}`],
    outcome: "delivered",
    attempts: 1,
  },
  ...["SSH-2.0-OpenSSH_9.9\r\n", "\0\0\x12\x04\0\0\0\0\0", "HTTP/1.1 999999 Huge\r\n\r\n", "\r\n\r\n\r\n"].map(
    (bytes): Case => ({
      name: `hostile target: garbage ${JSON.stringify(bytes.slice(0, 12))} is no answer and is retried`,
      replies: [bytes, ok],
      outcome: "delivered",
      attempts: 2,
    }),
  ),
  {
    name: "hostile target: switching protocols is no answer",
    replies: ["HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"],
    knobs: { max_attempts: 2 },
    outcome: "failed",
    attempts: 2,
  },
];

for (const { name, replies, knobs, outcome, attempts, minMs = 0, maxMs = 8000 } of CASES) {
  test(name, async () => {
    await using receiver = await startReceiver(...replies);
    await using rig = webhookRig();
    rig.publish([target(receiver.url, knobs)]);
    const beganMs = performance.now();
    assert.equal(await rig.deliver(), outcome);
    const tookMs = performance.now() - beganMs;
    assert.equal(receiver.requests.length, attempts);
    assert.ok(tookMs >= minMs && tookMs <= maxMs, `took ${tookMs} ms`);
    assert.deepEqual(rig.counts(), [`breaker_half_open ${outcome} 1`]);
    assert.equal(rig.webhooks.active, 0);
    const bodies = new Set(receiver.requests.map(({ body }) => body));
    assert.deepEqual([...bodies], [SAMPLE.envelope.toString()], "every attempt sends the same bytes");
    await waitUntil(() => receiver.connections.every(({ socket }) => socket.destroyed || socket.readableEnded), {
      what: "our end of every connection was closed",
    });
  });
}

test("delivery rule 2: a target that refuses connections is tried max_attempts times", async () => {
  const gone = await startReceiver(ok);
  await gone.close();
  await using rig = webhookRig();
  rig.publish([target(gone.url, { max_attempts: 3 })]);
  assert.equal(await rig.deliver(), "failed");
  const [line] = rig.logged.coded("webhook_delivery_failed");
  assert.equal(line?.["attempts"], 3);
  assert.equal(line["reason"], "connect_failed");
});

test("delivery rule 5: timeout_ms bounds the lookup of the name", async () => {
  await using server = await startRawServer(() => undefined);
  await using rig = webhookRig({ lookup: async () => await new Promise(() => undefined) });
  rig.publish([target(`http://never.test:${server.port}/`, { timeout_ms: 100 })]);
  const beganMs = performance.now();
  assert.equal(await rig.deliver(), "failed");
  assert.ok(performance.now() - beganMs < 1500);
  assert.equal(rig.logged.coded("webhook_delivery_failed")[0]?.["reason"], "timeout");
});

test("delivery rule 6: at most 32 deliveries run at once; more are dropped and counted, not queued", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  await using receiver = await startReceiver(async (connection) => {
    await released;
    await connection.write(ok);
  });
  await using rig = webhookRig();
  rig.publish([target(receiver.url, { timeout_ms: 20_000 })]);
  const running = Array.from({ length: 32 }, async () => await rig.deliver());
  await waitUntil(() => receiver.requests.length === 32);
  assert.equal(rig.webhooks.active, 32);
  assert.equal(await rig.deliver(), "dropped");
  assert.equal(await rig.deliver(), "dropped");
  release(undefined);
  assert.deepEqual(new Set(await Promise.all(running)), new Set(["delivered"]));
  assert.equal(await rig.deliver(), "delivered", "places are free again");
  assert.equal(receiver.requests.length, 33, "what was dropped was never sent");
  assert.deepEqual(rig.counts(), ["breaker_half_open delivered 33", "breaker_half_open dropped 2"]);
  assert.equal(rig.logged.coded("webhook_delivery_dropped").length, 2);
});

test("an envelope above the cap is dropped and counted without being tried", async () => {
  await using receiver = await startReceiver(ok);
  await using rig = webhookRig();
  rig.publish([target(receiver.url)]);
  const [recipient] = rig.webhooks.recipientsFor(SAMPLE.kind);
  assert.equal(await recipient?.deliver({ ...SAMPLE, isTooLarge: true }, "drop"), "dropped");
  assert.deepEqual(rig.counts(), ["breaker_half_open dropped 1"]);
  assert.equal(receiver.connections.length, 0);
});

test("a delivery is one POST with the specified fields, the path and query as written, and the configured headers", async () => {
  await using receiver = await startReceiver(ok);
  await using rig = webhookRig();
  const url = `http://127.0.0.1:${receiver.port}/a/../b//c;d?x=%7e&y=a+b&token=querysecret#part`;
  rig.publish([target(url, { headers: { "X-Key": "${HOOK_KEY}", "x-Inline": "inline-value" } })], {
    "${HOOK_KEY}": "s3cret-value",
  });
  assert.equal(await rig.deliver(), "delivered");
  const [request] = receiver.requests;
  assert.equal(request?.requestLine, "POST /a/../b//c;d?x=%7e&y=a+b&token=querysecret HTTP/1.1");
  assert.deepEqual(request?.fields, [
    "Host",
    `127.0.0.1:${receiver.port}`,
    "Content-Type",
    "application/json",
    "User-Agent",
    "gateway-webhook",
    "X-Key",
    "s3cret-value",
    "x-Inline",
    "inline-value",
    "Content-Length",
    String(SAMPLE.envelope.length),
    "Connection",
    "close",
  ]);
});

test("logs name the target by origin and path, and hold no header value and no query", async () => {
  await using receiver = await startReceiver(response(500));
  await using rig = webhookRig();
  const url = `http://127.0.0.1:${receiver.port}/hook?token=querysecret`;
  rig.publish([target(url, { headers: { Authorization: "${TOKEN}" } })], { "${TOKEN}": "Bearer topsecret" });
  assert.equal(await rig.deliver(), "failed");
  const [line] = rig.logged.coded("webhook_delivery_failed");
  assert.equal(line?.["url"], `http://127.0.0.1:${receiver.port}/hook`);
  assert.equal(line["status"], 500);
  assert.equal(line["outcome"], "failed");
  assert.doesNotMatch(rig.logged.text, /topsecret|querysecret/);
});

test("a new generation's targets and secrets count from the next event on; deliveries under way keep theirs", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  await using old = await startReceiver(async (connection) => {
    await released;
    await connection.write(response(503, "Retry-After: 0"));
  }, ok);
  await using young = await startReceiver(ok);
  await using rig = webhookRig();
  rig.publish([target(old.url, { headers: { "X-Key": "${KEY}" } })], { "${KEY}": "first" });
  const underWay = rig.deliver();
  await waitUntil(() => old.requests.length === 1);
  rig.publish([target(young.url, { headers: { "X-Key": "${KEY}" } })], { "${KEY}": "second" });
  assert.equal(await rig.deliver(), "delivered");
  release(undefined);
  assert.equal(await underWay, "delivered");
  assert.deepEqual(
    old.requests.map((request) => request.header("x-key")),
    ["first", "first"],
  );
  assert.deepEqual(
    young.requests.map((request) => request.header("x-key")),
    ["second"],
  );
});
