import { parentPort } from "node:worker_threads";
import { WriterThread } from "./writer-thread.ts";
import type { FromWriter, ToWriter, WriterSetup } from "./writer-messages.ts";

const port = parentPort;
port?.once("message", (setup: WriterSetup) => {
  const thread = new WriterThread(
    setup,
    (message: FromWriter, transfer?: ArrayBuffer[]) => port.postMessage(message, transfer),
    () => port.close(),
  );
  port.on("message", (message: ToWriter) => thread.receive(message));
  thread.start();
});
