import { autosaveOperations } from "./autosave.ts";
import { blocklistOperations } from "./blocklist.ts";
import { breakpointsOperations } from "./breakpoints.ts";
import { captureOperations } from "./capture.ts";
import { certOperations } from "./cert.ts";
import { configOperations } from "./config.ts";
import { exportOperations } from "./export.ts";
import { focusOperations } from "./focus.ts";
import { grpcOperations } from "./grpc.ts";
import { logsOperations } from "./logs.ts";
import { metricsOperations } from "./metrics.ts";
import { mirrorOperations } from "./mirror.ts";
import { mocksOperations } from "./mocks.ts";
import { persistenceOperations } from "./persistence.ts";
import { ApiErrorBody } from "./primitives.ts";
import { replayOperations } from "./replay.ts";
import { rewritesOperations } from "./rewrites.ts";
import { runsOperations } from "./runs.ts";
import { scriptsOperations } from "./scripts.ts";
import { sessionsOperations } from "./sessions.ts";
import { streamsOperations } from "./streams.ts";
import { throttleOperations } from "./throttle.ts";
import { trafficOperations } from "./traffic.ts";
import { upstreamOperations } from "./upstream.ts";
import { wsTrafficOperations } from "./ws-traffic.ts";

/** Every operation of Weir's API, by slice. REST, client, CLI, OpenAPI and agents are made from it. */
export const operations = {
  traffic: trafficOperations,
  sessions: sessionsOperations,
  runs: runsOperations,
  export: exportOperations,
  cert: certOperations,
  config: configOperations,
  capture: captureOperations,
  autosave: autosaveOperations,
  blocklist: blocklistOperations,
  breakpoints: breakpointsOperations,
  focus: focusOperations,
  mirror: mirrorOperations,
  grpc: grpcOperations,
  mocks: mocksOperations,
  replay: replayOperations,
  rewrites: rewritesOperations,
  scripts: scriptsOperations,
  streams: streamsOperations,
  throttle: throttleOperations,
  upstream: upstreamOperations,
  "ws-traffic": wsTrafficOperations,
  logs: logsOperations,
  metrics: metricsOperations,
  persistence: persistenceOperations,
} as const;

export type SliceName = keyof typeof operations;

export const apiInfo = {
  title: "Weir",
  version: "0.1.0",
  description:
    "The API of Weir, a traffic-capturing proxy. Everything the web UI and the command line do goes through it.",
  prefix: "/api",
  error: ApiErrorBody,
} as const;

export { ERRORS } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
export * from "./autosave.ts";
export * from "./blocklist.ts";
export * from "./breakpoints.ts";
export * from "./capture.ts";
export * from "./cert.ts";
export * from "./condition.ts";
export * from "./config.ts";
export * from "./diff.ts";
export * from "./events.ts";
export * from "./export.ts";
export * from "./focus.ts";
export * from "./grpc.ts";
export * from "./logs.ts";
export * from "./message.ts";
export * from "./metrics.ts";
export * from "./mirror.ts";
export * from "./mock-bodies.ts";
export * from "./mock-rule.ts";
export * from "./mocks.ts";
export * from "./persistence.ts";
export * from "./primitives.ts";
export * from "./replay.ts";
export * from "./rewrites.ts";
export * from "./runs.ts";
export * from "./scripts.ts";
export * from "./sessions.ts";
export * from "./streams.ts";
export * from "./throttle.ts";
export * from "./traffic.ts";
export * from "./upstream.ts";
export * from "./ws-traffic.ts";
