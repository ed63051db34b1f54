export { WorkerFault, WorkerHost, type WorkerHostOptions } from "./worker-host.ts";
export { serveRequests, type ThreadReply } from "./serve-requests.ts";
