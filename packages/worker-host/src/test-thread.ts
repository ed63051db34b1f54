import { workerData } from "node:worker_threads";
import { serveRequests, type ThreadReply } from "./serve-requests.ts";

/** What the thread of the tests can do. */
export type TestRequest =
  | { readonly op: "echo"; readonly value: unknown }
  | { readonly op: "pass"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly op: "handled" }
  | { readonly op: "later" | "throw" | "throwText" | "unclonable" | "notify" }
  | { readonly op: "exit" | "crash" | "crashWithText" | "replyThenCrash" | "fill" | "spin" };

/** Counters that tests share with their threads. */
export interface TestData {
  readonly starts: Int32Array<SharedArrayBuffer>;
  readonly notified: Int32Array<SharedArrayBuffer>;
}

const data = workerData as TestData;
Atomics.add(data.starts, 0, 1);
const handled: unknown[] = [];

serveRequests(async (request: TestRequest): Promise<ThreadReply<unknown>> => await handle(request));

async function handle(request: TestRequest): Promise<ThreadReply<unknown>> {
  switch (request.op) {
    case "echo":
      handled.push(request.value);
      return copied(request.value);
    case "handled":
      return copied([...handled]);
    case "pass":
      return { value: request.bytes, transfer: [request.bytes.buffer] };
    case "later":
      await new Promise((resolve) => setImmediate(resolve));
      handled.push("later");
      return copied("later");
    case "throw":
      throw new SyntaxError("No such word");
    case "throwText":
      // oxlint-disable-next-line typescript/only-throw-error -- libraries do so
      throw "a text";
    case "unclonable":
      return copied(() => undefined);
    case "notify":
      setImmediate(() => {
        Atomics.store(data.notified, 0, 1);
        Atomics.notify(data.notified, 0);
      });
      return copied("in time");
    case "exit":
      process.exit();
    case "crash":
      return await never(() => {
        throw new Error("A bug");
      });
    case "crashWithText":
      return await never(() => {
        // oxlint-disable-next-line typescript/only-throw-error -- libraries do so
        throw "a text";
      });
    case "replyThenCrash":
      setImmediate(() => {
        throw new Error("A bug");
      });
      return copied("replied");
    case "fill": {
      const kept: unknown[] = [];
      for (;;) kept.push(Array.from({ length: 1024 }, (_, at) => at));
    }
    case "spin":
      for (;;);
  }
}

function copied(value: unknown): ThreadReply<unknown> {
  return { value, transfer: [] };
}

/** Throws outside of the request. */
async function never(fail: () => void): Promise<ThreadReply<unknown>> {
  setImmediate(fail);
  return await new Promise<ThreadReply<unknown>>(() => undefined);
}
