// Tested by traffic-transfer.test.ts
import { parentPort, workerData } from "node:worker_threads";
import type { FromImport, ImportSetup, ToImport } from "./import-messages.ts";
import { ImportThread } from "./import-thread.ts";

const port = parentPort;
if (port !== null) {
  const post = (message: FromImport, transfer: ArrayBuffer[]): void => port.postMessage(message, transfer);
  const thread = new ImportThread(workerData as ImportSetup, post);
  port.on("message", (message: ToImport) => {
    thread.receive(message);
    if (message.kind === "end") port.close();
  });
}
