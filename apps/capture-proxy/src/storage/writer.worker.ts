// Tested by open-capture-store.test.ts
import { parentPort, workerData } from "node:worker_threads";
import { WriterThread } from "./writer-thread.ts";
import type { FromWriter, ToWriter, WriterSetup } from "./writer-messages.ts";

const port = parentPort;
if (port !== null) {
  const thread = new WriterThread(
    workerData as WriterSetup,
    (message: FromWriter) => port.postMessage(message),
    () => port.close(),
  );
  port.on("message", (message: ToWriter) => thread.receive(message));
  thread.start();
}
