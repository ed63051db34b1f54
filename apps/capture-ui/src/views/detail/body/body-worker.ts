import { serveBody } from "./body-worker-client.ts";
import type { WorkerRequest } from "./body-worker-client.ts";

const serve = serveBody((response) => self.postMessage(response));

self.addEventListener("message", (event: MessageEvent<WorkerRequest>) => void serve(event.data));
