import { parentPort, workerData } from "node:worker_threads";
import type { FromImport, ImportSetup, ToImport } from "./import-messages.ts";
import { ImportThread } from "./import-thread.ts";

const port = parentPort;
if (port !== null) {
  const post = (message: FromImport, transfer: ArrayBuffer[]): void => port.postMessage(message, transfer);
  const thread = new ImportThread(workerData as ImportSetup, post);
  const receive = async (message: ToImport): Promise<void> => {
    await thread.receive(message);
    if (message.kind === "end") port.close();
  };
  // Errors end the thread and reach the parent.
  port.on("message", (message: ToImport) => void receive(message));
}
