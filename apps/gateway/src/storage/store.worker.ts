import { parentPort, workerData } from "node:worker_threads";
import type { FromStore, StoreSetup, ToStore } from "./store-messages.ts";
import { StoreThread } from "./store-thread.ts";
import { toStateStoreError } from "./state-store-error.ts";

const port = parentPort;
if (port !== null) {
  const setup = workerData as StoreSetup;
  const post = (message: FromStore): void => port.postMessage(message);
  try {
    const thread = new StoreThread(setup, post);
    port.on("message", (message: ToStore) => {
      if (message.kind !== "close") return thread.receive(message);
      thread.close();
      port.close();
    });
    post({ kind: "ready" });
  } catch (error) {
    const { errorKind, message } = toStateStoreError(error, setup.path);
    post({ kind: "refused", errorKind, error: message });
  }
}
