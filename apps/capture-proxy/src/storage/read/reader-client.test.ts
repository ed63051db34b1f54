import assert from "node:assert/strict";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { openDatabase, TRAFFIC_MIGRATIONS } from "../database.ts";
import { ReaderClient, ReaderPool, type ReaderRequest } from "./reader-client.ts";

const ROW: ReaderRequest = { op: "row", id: "unknown", sessions: new Map() };

const ENDED = { name: "ReaderBusyError", message: "A reader thread ended" };

class ReaderRig {
  readonly broken: string[] = [];
  readonly reader: ReaderClient;
  readonly #path: string;
  readonly #hidden: string;
  /** False simulates a system without free threads. */
  hasThreads = true;

  constructor(folder: string) {
    this.#path = join(folder, "traffic.db");
    this.#hidden = join(folder, "hidden.db");
    openDatabase(this.#path, { migrations: TRAFFIC_MIGRATIONS }).close();
    const begin = (): string => {
      if (!this.hasThreads) throw new Error("EAGAIN");
      return this.#path;
    };
    const setup = {
      // The getter runs when the worker is constructed, where a lack of threads fails, too.
      get path() {
        return begin();
      },
      bodiesFolder: folder,
      decodedFolder: folder,
      index: undefined,
    };
    this.reader = new ReaderClient(setup, "reader-of-a-test", (reason) => void this.broken.push(reason));
  }

  /** New threads cannot open the store. */
  async hide(): Promise<void> {
    await rename(this.#path, this.#hidden);
  }

  async show(): Promise<void> {
    await rename(this.#hidden, this.#path);
  }

  async brokenTimes(count: number): Promise<void> {
    await waitUntil(() => this.broken.length >= count, { what: `thread ${count} to break` });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reader.close();
  }
}

// Run concurrently: the tests mostly wait for the second between two threads.
describe("a reader client", { concurrency: true }, () => {
  test("requests to a thread that failed to start go to the next one", async () => {
    await using directory = await temporaryDirectory();
    await using rig = new ReaderRig(directory.path);
    await rig.hide();
    rig.reader.start();
    const early = rig.reader.send(ROW);
    await rig.brokenTimes(1);
    const late = rig.reader.send(ROW);
    await rig.show();
    assert.deepEqual(await Promise.all([early, late]), [undefined, undefined]);
    assert.equal(rig.broken.length, 1);
  });

  test("without free threads a request waits for one, and an early start fails silently", async () => {
    await using directory = await temporaryDirectory();
    await using rig = new ReaderRig(directory.path);
    rig.hasThreads = false;
    rig.reader.start();
    assert.deepEqual(rig.broken, ["A reader thread could not start: EAGAIN"]);
    const early = rig.reader.send(ROW);
    await rig.brokenTimes(2);
    rig.hasThreads = true;
    assert.equal(await early, undefined);
    assert.equal(rig.broken.length, 2);
  });

  test("a request fails after four failed starts, a second apart, and a later one succeeds", async () => {
    await using directory = await temporaryDirectory();
    await using rig = new ReaderRig(directory.path);
    await rig.hide();
    const startedMs = performance.now();
    await assert.rejects(rig.reader.send(ROW), ENDED);
    assert.ok(performance.now() - startedMs >= 3000);
    await rig.brokenTimes(4);
    await rig.show();
    assert.equal(await rig.reader.send(ROW), undefined);
    assert.equal(rig.broken.length, 4);
  });

  test("a request that broke its thread fails without a retry; the next one gets a new thread", async () => {
    await using directory = await temporaryDirectory();
    await using rig = new ReaderRig(directory.path);
    assert.equal(await rig.reader.send(ROW), undefined);
    await rig.hide();
    // A running thread fails because the store is gone.
    rig.reader.post({ kind: "reopen" });
    await assert.rejects(rig.reader.send(ROW), ENDED);
    await rig.show();
    assert.equal(await rig.reader.send(ROW), undefined);
    assert.equal(rig.broken.length, 1);
  });

  test("aborting a request without a thread removes it at once, and closing rejects waiting requests", async () => {
    await using directory = await temporaryDirectory();
    await using rig = new ReaderRig(directory.path);
    // A failed thread still exists for a moment; one that never started does not.
    rig.hasThreads = false;
    const refused = assert.rejects(rig.reader.send(ROW), ENDED);
    // More than the maximum of queued requests.
    for (let count = 0; count < 100; count += 1) {
      const controller = new AbortController();
      const givenUp = assert.rejects(rig.reader.send(ROW, controller.signal), { message: "given up" });
      controller.abort(new Error("given up"));
      await givenUp;
      await setImmediate();
    }
    await rig.reader.close();
    await refused;
    await assert.rejects(rig.reader.send(ROW), { name: "ReaderBusyError" });
  });
});

test("a failure of both threads is reported once, and again after a second", async () => {
  const said: { reason: string; atMs: number }[] = [];
  // An unclonable value makes every start fail.
  const unclonable = (() => "traffic.db") as unknown as string;
  const pool = new ReaderPool(
    { path: unclonable, bodiesFolder: "", decodedFolder: "", index: undefined },
    { caughtUp: () => undefined, onBroken: (reason) => void said.push({ reason, atMs: performance.now() }) },
  );
  pool.start();
  assert.equal(said.length, 1);
  assert.match(said[0]?.reason ?? "", /^A reader thread could not start: /);
  await waitUntil(() => {
    pool.start();
    return said.length >= 2;
  });
  assert.ok((said[1]?.atMs ?? 0) - (said[0]?.atMs ?? 0) >= 1000);
  assert.equal(said[1]?.reason, said[0]?.reason);
  await pool.close();
  assert.equal(said.length, 2);
});
