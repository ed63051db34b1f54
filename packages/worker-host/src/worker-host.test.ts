import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { runProcess, temporaryDirectory } from "@headworks/testkit";
import { WorkerFault, WorkerHost, type WorkerHostOptions } from "./worker-host.ts";
import type { TestData, TestRequest } from "./test-thread.ts";

const MODULE = new URL("./test-thread.ts", import.meta.url);

interface Rig extends AsyncDisposable {
  readonly host: WorkerHost<TestRequest, unknown>;
  readonly starts: () => number;
  readonly notified: Int32Array<SharedArrayBuffer>;
}

function startRig(options: Partial<WorkerHostOptions<TestRequest>> = {}): Rig {
  const starts = new Int32Array(new SharedArrayBuffer(4));
  const notified = new Int32Array(new SharedArrayBuffer(4));
  const workerData: TestData = { starts, notified };
  const host = new WorkerHost<TestRequest, unknown>({
    module: MODULE,
    name: "test",
    maxHeapMb: 64,
    workerData,
    ...options,
  });
  return {
    host,
    starts: () => Atomics.load(starts, 0),
    notified,
    [Symbol.asyncDispose]: async () => await host.close(),
  };
}

const echo = (value: unknown): TestRequest => ({ op: "echo", value });

/** The value, or the kind and message of the fault. */
async function outcome(reply: Promise<unknown>): Promise<unknown> {
  try {
    return await reply;
  } catch (error) {
    assert.ok(error instanceof WorkerFault, String(error));
    return [error.kind, error.message];
  }
}

test("replies come in the order of the requests, also of those that wait", async () => {
  await using rig = startRig();
  const order: unknown[] = [];
  const requests = [{ op: "later" } as const, echo(1), { op: "later" } as const, echo(2)];
  const replies = requests.map(async (request) => void order.push(await rig.host.request(request)));
  assert.equal(rig.host.pending, 4);
  await Promise.all(replies);
  assert.deepEqual(order, ["later", 1, "later", 2]);
  assert.deepEqual(await rig.host.request({ op: "handled" }), order);
  assert.equal(rig.host.pending, 0);
  assert.equal(rig.starts(), 1);
});

test("an error rejects its request alone, with the name and the stack that it had in the thread", async () => {
  await using rig = startRig();
  const replies = [{ op: "throw" } as const, { op: "throwText" } as const, { op: "unclonable" } as const, echo(1)];
  const [thrown, text, unclonable, value] = await Promise.all(
    replies.map(async (request) => await outcome(rig.host.request(request))),
  );
  assert.deepEqual(thrown, ["error", "No such word"]);
  assert.deepEqual(text, ["error", "a text"]);
  assert.match(String(unclonable), /^error,.*could not be cloned/s);
  assert.equal(value, 1);
  assert.equal(rig.starts(), 1);
  const fault: unknown = await rig.host.request({ op: "throw" }).catch((error: unknown) => error);
  assert.ok(fault instanceof WorkerFault);
  assert.equal(fault.cause?.name, "SyntaxError");
  assert.match(fault.cause.stack ?? "", /test-thread\.ts/);
});

test("a request that cannot be cloned is rejected, before and after the thread has started", async () => {
  await using rig = startRig();
  const first = rig.host.request(echo(() => undefined));
  assert.match(String(await outcome(first)), /^error,.*could not be cloned/s);
  assert.equal(rig.host.pending, 0);
  const replies = [echo(1), echo(() => undefined), echo(2)].map((request) => outcome(rig.host.request(request)));
  const [one, unclonable, two] = await Promise.all(replies);
  assert.deepEqual([one, two], [1, 2]);
  assert.match(String(unclonable), /^error,.*could not be cloned/s);
});

for (const { op, kind, message } of [
  { op: "crash", kind: "crash", message: "A bug" },
  { op: "crashWithText", kind: "crash", message: "a text" },
  { op: "exit", kind: "crash", message: "The thread ended" },
  { op: "fill", kind: "memory", message: "The thread ran out of memory" },
] as const) {
  test(`a thread that ends (${op}) fails the request that it was handling, and the next one handles the others`, async () => {
    await using rig = startRig();
    const requests = [echo(1), { op }, echo(2), { op }, echo(3)];
    const outcomes = await Promise.all(requests.map((request) => outcome(rig.host.request(request))));
    assert.deepEqual(outcomes, [1, [kind, message], 2, [kind, message], 3]);
    assert.equal(rig.starts(), 3);
    assert.equal(rig.host.pending, 0);
  });
}

test("a reply that preceded the crash of the thread counts", async () => {
  // Errors and replies take different ways out of a thread.
  for (let round = 0; round < 5; round += 1) {
    await using rig = startRig();
    const outcomes = await Promise.all(
      ([{ op: "replyThenCrash" }, { op: "crash" }] as const).map((request) => outcome(rig.host.request(request))),
    );
    assert.deepEqual(outcomes, ["replied", ["crash", "A bug"]]);
  }
});

test("a request that takes too long ends its thread, and the next one handles the others", async () => {
  await using rig = startRig();
  const spinning = outcome(rig.host.request({ op: "spin" }, { timeoutMs: 20 }));
  const others = [rig.host.request(echo(1), { timeoutMs: 60_000 }), rig.host.request(echo(2))];
  assert.deepEqual(await spinning, ["timeout", "The thread took longer than 20 ms"]);
  assert.deepEqual(await Promise.all(others), [1, 2]);
  assert.equal(rig.starts(), 2);
});

test("the time of a request begins after the start of the thread and the replies to earlier requests", async () => {
  const delays: (number | undefined)[] = [];
  await using rig = startRig({
    clock: {
      after: (delayMs) => {
        delays.push(delayMs);
        return () => void delays.push(undefined);
      },
    },
  });
  const limits = [700, undefined, 500];
  await Promise.all(limits.map((timeoutMs, at) => rig.host.request(echo(at), timeoutMs ? { timeoutMs } : {})));
  assert.deepEqual(delays, [30_000, undefined, 700, undefined, 500, undefined]);
});

test("a reply that arrived in time counts, although this thread was too busy to receive it", async () => {
  let ring = (): void => undefined;
  await using rig = startRig({
    clock: {
      after: (_delayMs, callback) => {
        ring = callback;
        return () => undefined;
      },
    },
  });
  await rig.host.request(echo(1));
  const reply = rig.host.request({ op: "notify" }, { timeoutMs: 10 });
  Atomics.wait(rig.notified, 0, 0);
  ring();
  assert.equal(await reply, "in time");
});

test("a thread with state is not restarted: all requests fail after its end", async () => {
  await using rig = startRig({ restarts: false });
  const requests = [echo(1), { op: "crash" } as const, echo(2)];
  const outcomes = await Promise.all(requests.map((request) => outcome(rig.host.request(request))));
  assert.deepEqual(outcomes, [1, ["crash", "A bug"], ["crash", "A bug"]]);
  assert.deepEqual(await outcome(rig.host.request(echo(3))), ["crash", "A bug"]);
  assert.equal(rig.starts(), 1);
});

test("buffers are transferred there and back", async () => {
  await using rig = startRig();
  const bytes = new Uint8Array([1, 2, 3]);
  const reply = await rig.host.request({ op: "pass", bytes }, { transfer: [bytes.buffer] });
  assert.deepEqual(reply, new Uint8Array([1, 2, 3]));
  assert.equal(bytes.length, 0);
});

test("buffers that were transferred to a thread are lost with it", async () => {
  await using rig = startRig();
  const bytes = new Uint8Array([1]);
  const outcomes = await Promise.all([
    outcome(rig.host.request({ op: "crash" })),
    outcome(rig.host.request({ op: "pass", bytes }, { transfer: [bytes.buffer] })),
    outcome(rig.host.request(echo(1))),
  ]);
  assert.deepEqual(outcomes, [["crash", "A bug"], ["crash", "The thread ended before it handled the request"], 1]);
});

test("closing rejects pending and later requests and ends the thread", async () => {
  await using rig = startRig();
  assert.equal(await rig.host.request(echo(1)), 1);
  const pending = outcome(rig.host.request({ op: "spin" }, { timeoutMs: 60_000 }));
  await Promise.all([rig.host.close(), rig.host.close()]);
  assert.deepEqual(await pending, ["closed", "The thread is closed"]);
  assert.deepEqual(await outcome(rig.host.request(echo(2))), ["closed", "The thread is closed"]);
  assert.equal(rig.host.pending, 0);
  assert.equal(rig.starts(), 1);
});

for (const [code, message] of [
  ["throw new Error('No such file')", "No such file"],
  ["process.exit()", "The thread ended"],
  // Without `serveRequests`.
  ["export {}", "The thread ended"],
] as const) {
  test(`a module that ends while it loads (${code}) rejects all requests, without another start`, async () => {
    const starts = new Int32Array(new SharedArrayBuffer(4));
    const source = `import { workerData } from "node:worker_threads"; Atomics.add(workerData, 0, 1); ${code}`;
    const module = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
    await using rig = startRig({ module, workerData: starts });
    const outcomes = await Promise.all([1, 2, 3].map((value) => outcome(rig.host.request(echo(value)))));
    assert.deepEqual(
      outcomes,
      Array.from({ length: 3 }, () => ["crash", message]),
    );
    assert.equal(Atomics.load(starts, 0), 1);
    // A later request tries again.
    assert.deepEqual(await outcome(rig.host.request(echo(4))), ["crash", message]);
    assert.equal(Atomics.load(starts, 0), 2);
  });
}

test("a module that never finishes to load rejects all requests", async () => {
  const module = new URL("data:text/javascript,for (;;);");
  const delays: number[] = [];
  await using rig = startRig({
    module,
    clock: {
      after: (delayMs, callback) => {
        delays.push(delayMs);
        setImmediate(callback);
        return () => undefined;
      },
    },
  });
  const outcomes = await Promise.all([1, 2].map((value) => outcome(rig.host.request(echo(value), { timeoutMs: 1 }))));
  assert.deepEqual(
    outcomes,
    Array.from({ length: 2 }, () => ["timeout", "The thread took longer than 30000 ms to start"]),
  );
  assert.deepEqual(delays, [30_000]);
});

test("a module that does not exist, and first requests that cannot be cloned, reject the request", async () => {
  await using missing = startRig({ module: new URL("./missing.ts", import.meta.url) });
  assert.match(String(await outcome(missing.host.request(echo(1)))), /^crash,Cannot find module/);
  await using unclonable = startRig({ firstRequests: () => [echo(() => undefined)] });
  assert.match(String(await outcome(unclonable.host.request(echo(1)))), /^crash,.*could not be cloned/s);
});

test("each new thread handles the first requests before all others", async () => {
  let version = 0;
  await using rig = startRig({
    firstRequests: () => [echo(`first ${(version += 1)}`), { op: "throw" }, echo("second")],
  });
  const outcomes = await Promise.all(
    ([{ op: "handled" }, { op: "exit" }, { op: "handled" }] as const).map((request) =>
      outcome(rig.host.request(request)),
    ),
  );
  assert.deepEqual(outcomes, [
    ["first 1", "second"],
    ["crash", "The thread ended"],
    ["first 2", "second"],
  ]);
});

test("a first request that ends the thread rejects all requests, without another start", async () => {
  await using rig = startRig({ firstRequests: () => [{ op: "exit" }] });
  const outcomes = await Promise.all([1, 2].map((value) => outcome(rig.host.request(echo(value)))));
  assert.deepEqual(
    outcomes,
    Array.from({ length: 2 }, () => ["crash", "The thread ended"]),
  );
  assert.equal(rig.starts(), 1);
});

test("a pending request keeps the process alive, an idle thread does not", async () => {
  const script = `
    import { WorkerHost } from ${JSON.stringify(new URL("./index.ts", import.meta.url).href)};
    const shared = new Int32Array(new SharedArrayBuffer(4));
    const host = new WorkerHost({
      module: new URL(${JSON.stringify(MODULE.href)}), name: "test", maxHeapMb: 64,
      workerData: { starts: shared, notified: shared },
    });
    host.request({ op: "exit" }).catch(() => undefined);
    host.request({ op: "later" }).then(console.log);
    host.request({ op: "throw" }).catch((fault) => console.log(fault.message));
  `;
  const directory = await temporaryDirectory();
  const file = directory.file("script.mjs");
  writeFileSync(file, script);
  const { code, stdout, stderr } = await runProcess(process.execPath, [file]);
  await directory.remove();
  assert.deepEqual([code, stdout, stderr], [0, "later\nNo such word\n", ""]);
});
