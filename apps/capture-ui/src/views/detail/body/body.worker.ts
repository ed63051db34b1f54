// Tested by body-calls.test.ts
import { serveBody } from "./body-calls.ts";
import type { WorkerRequest } from "./body-calls.ts";

const serve = serveBody((response) => self.postMessage(response));

self.addEventListener("message", (event: MessageEvent<WorkerRequest>) => void serve(event.data));
