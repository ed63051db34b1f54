import assert from "node:assert/strict";
import { test } from "node:test";
import { serveBody } from "./body-worker-client.ts";
import type { WorkerResponse, WorkerRequest } from "./body-worker-client.ts";
import { BodyClient, CallTimeout } from "./body-client.ts";
import type { BodyWorker } from "./body-client.ts";

/** A worker that runs in this thread. */
function localWorker(body: string): BodyWorker & { ended: boolean; sent: WorkerRequest[] } {
  const worker: BodyWorker & { ended: boolean; sent: WorkerRequest[] } = {
    ended: false,
    sent: [],
    onmessage: null,
    onerror: null,
    postMessage: (message) => {
      worker.sent.push(message);
      // Simulates a pattern that never finishes: no reply.
      if (message.kind === "call" && message.name === "search") return;
      void serve(message);
    },
    terminate: () => {
      worker.ended = true;
    },
  };
  const serve = serveBody(
    (data) => worker.onmessage?.({ data } as MessageEvent<WorkerResponse>),
    () => Promise.resolve(new Response(body)),
  );
  return worker;
}

async function opened(body: string) {
  const worker = localWorker(body);
  const ready = Promise.withResolvers<void>();
  const failures: string[] = [];
  const client = new BodyClient(
    worker,
    { url: "/x?", contentType: "application/json" },
    (progress) => {
      if (progress.done) ready.resolve();
    },
    (reason) => failures.push(reason.message),
  );
  await ready.promise;
  return { worker, client, failures };
}

test("replies resolve their calls", async () => {
  const { client } = await opened('{"a":1}');
  const [rows, text] = await Promise.all([client.call("openTree", []), client.call("text", ["raw"])]);
  assert.equal(rows, 2);
  assert.equal(text, '{"a":1}');
});

test("a call that times out terminates the worker and rejects pending calls", async () => {
  const { client, worker } = await opened('{"a":1}');
  const query = { text: "(a+)+$", regex: true, matchCase: false };
  await assert.rejects(client.call("search", ["raw", query], 5), CallTimeout);
  assert.equal(worker.ended, true);
});

test("a failing worker rejects pending calls and reports the failure", async () => {
  const { client, worker, failures } = await opened("[]");
  const call = client.call("search", ["raw", { text: "x", regex: false, matchCase: false }]);
  worker.onerror?.({ message: "" } as ErrorEvent);
  await assert.rejects(call, /stopped working/u);
  assert.equal(worker.ended, true);
  assert.deepEqual(failures, ["The viewer stopped working"]);
});

test("closing rejects pending calls", async () => {
  const { client, worker } = await opened("[]");
  const call = client.call("search", ["raw", { text: "x", regex: false, matchCase: false }]);
  client.close();
  await assert.rejects(call, /closed/u);
  assert.equal(worker.ended, true);
});
