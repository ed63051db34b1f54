import { parentPort, workerData } from "node:worker_threads";
import { ReaderThread } from "./reader-thread.ts";
import type { FromReader, ReaderSetup, ToReader } from "./reader-messages.ts";

const port = parentPort;
if (port !== null) {
  const post = (message: FromReader, transfer: ArrayBuffer[]): void => port.postMessage(message, transfer);
  const thread = new ReaderThread(workerData as ReaderSetup, post);
  port.on("message", (message: ToReader) => {
    if (!thread.receive(message)) port.close();
  });
  post({ kind: "ready" }, []);
}
