import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { waitUntil } from "@headworks/testkit";
import { joinSockets } from "./join-sockets.ts";

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
