import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Retries } from "@headworks/gateway-contract";
import { CHUNKED, type Framing, lengthFraming, NO_BODY } from "@headworks/http1";
import { waitUntil } from "@headworks/testkit";
import { backoffMs, joinSockets, retryRules } from "./proxied-request.ts";

const attemptsOf = (retries: Retries, method: string, framing: Framing = NO_BODY, upgrade?: string): number =>
  retryRules(retries, { method, framing, upgrade }).attempts;

test("retries: GET, HEAD, OPTIONS, TRACE and PUT; POST if configured; DELETE, PATCH and upgrades never", () => {
  for (const method of ["GET", "HEAD", "OPTIONS", "TRACE", "PUT"]) assert.equal(attemptsOf({ attempts: 2 }, method), 2);
  for (const method of ["POST", "DELETE", "PATCH", "CONNECT", "get"]) {
    assert.equal(attemptsOf({ attempts: 2 }, method), 0, method);
  }
  assert.equal(attemptsOf({ attempts: 2, retry_post: true }, "POST"), 2);
  assert.equal(attemptsOf({ attempts: 2, retry_post: true }, "PATCH"), 0);
  assert.equal(attemptsOf({ attempts: 2 }, "GET", NO_BODY, "websocket"), 0);
});

test("retries: a body is repeated only if it fits buffer_max_bytes, which is 0 by default", () => {
  for (const [maxBytes, framing, attempts] of [
    [undefined, lengthFraming(1), 0],
    [undefined, lengthFraming(0), 1],
    [10, lengthFraming(10), 1],
    [10, lengthFraming(11), 0],
    [10, CHUNKED, 1],
    [0, CHUNKED, 0],
  ] as const) {
    const retries = maxBytes === undefined ? { attempts: 1 } : { attempts: 1, buffer_max_bytes: maxBytes };
    assert.equal(attemptsOf(retries, "PUT", framing), attempts, JSON.stringify([maxBytes, framing]));
  }
});

test("retries: the defaults, and hedging without further attempts", () => {
  const plain = { method: "GET", framing: NO_BODY, upgrade: undefined };
  assert.deepEqual(retryRules({ attempts: 1 }, plain), {
    attempts: 1,
    maxKeptBytes: 0,
    onTransport: true,
    statuses: [502, 503, 504],
    baseMs: 25,
    capMs: 250,
    hedges: 0,
    hedgeAfterMs: 0,
  });
  const { attempts, hedges, hedgeAfterMs } = retryRules({ hedge: { hedge_after_ms: 7 } }, plain);
  assert.deepEqual([attempts, hedges, hedgeAfterMs], [0, 1, 7]);
  assert.deepEqual(retryRules({ attempts: 1, retry_statuses: [] }, plain).statuses, []);
  assert.equal(retryRules(undefined, plain).attempts, 0);
});

test("retries: the pause is random, up to a ceiling that doubles from the base to the cap", () => {
  const rules = retryRules({ attempts: 10 }, { method: "GET", framing: NO_BODY, upgrade: undefined });
  const ceilings = [2, 3, 4, 5, 6, 7].map((next) => backoffMs(rules, next, () => 1));
  assert.deepEqual(ceilings, [25, 50, 100, 200, 250, 250]);
  assert.equal(
    backoffMs(rules, 5, () => 0),
    0,
  );
});

/** One end; the test plays its other side. */
class End extends Duplex {
  taken = "";
  /** The callback of a write that was not taken yet. */
  held: (() => void) | undefined;
  isSlow = false;

  constructor() {
    super({ allowHalfOpen: true });
    this.pause();
  }

  override _read(): void {
    // The test pushes the data.
  }

  override _write(piece: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const take = (): void => {
      this.taken += piece.toString();
      done();
    };
    if (this.isSlow) this.held = take;
    else take();
  }
}

function join(): { client: End; upstream: End; ended: number[] } {
  const [client, upstream] = [new End(), new End()];
  const ended: number[] = [];
  joinSockets({ socket: client, bytes: undefined }, { socket: upstream, bytes: undefined }, (bytes) => {
    ended.push(bytes);
  });
  return { client, upstream, ended };
}

for (const from of ["upstream", "client"] as const) {
  test(`a tunnel: the last bytes of the ${from} reach the other end, however slow it reads`, async () => {
    const { ended, ...ends } = join();
    const [leaving, staying] = from === "upstream" ? [ends.upstream, ends.client] : [ends.client, ends.upstream];
    staying.isSlow = true;
    leaving.push("last words");
    await waitUntil(() => staying.held !== undefined);
    leaving.push(null);
    leaving.destroy();
    await turn();
    assert.equal(staying.destroyed, false);
    assert.deepEqual(ended, []);
    staying.held?.();
    await waitUntil(() => ended.length === 1);
    assert.equal(staying.taken, "last words");
    assert.equal(staying.destroyed, true);
    assert.deepEqual(ended, [from === "upstream" ? 10 : 0]);
  });
}

test("a tunnel: one end may half-close and still receive", async () => {
  const { client, upstream, ended } = join();
  client.push("question");
  client.push(null);
  await waitUntil(() => upstream.writableFinished);
  upstream.push("answer");
  await waitUntil(() => client.taken === "answer");
  assert.equal(upstream.taken, "question");
  assert.deepEqual(ended, []);
  upstream.push(null);
  await waitUntil(() => ended.length === 1);
});

test("a tunnel: an end that breaks closes the other at once, and the end is reported once", async () => {
  const { client, upstream, ended } = join();
  client.isSlow = true;
  upstream.push("half a");
  await waitUntil(() => client.held !== undefined);
  upstream.destroy(new Error("reset"));
  await waitUntil(() => client.destroyed);
  await turn();
  assert.deepEqual(ended, [6]);
});

test("a tunnel: an end that does not read pauses the other", async () => {
  const { client, upstream } = join();
  client.isSlow = true;
  upstream.push(Buffer.alloc(100_000));
  await waitUntil(() => upstream.isPaused());
  client.isSlow = false;
  client.held?.();
  await waitUntil(() => !upstream.isPaused());
  upstream.destroy();
});
