import { blocklistOperations } from "./blocklist.ts";
import { breakpointsOperations } from "./breakpoints.ts";
import { captureOperations } from "./capture.ts";
import { certOperations } from "./cert.ts";
import { configOperations } from "./config.ts";
import { exportOperations } from "./export.ts";
import { focusOperations } from "./focus.ts";
import { metricsOperations } from "./metrics.ts";
import { mocksOperations } from "./mocks.ts";
import { persistenceOperations } from "./persistence.ts";
import { ApiErrorBody } from "./primitives.ts";
import { replayOperations } from "./replay.ts";
import { rewritesOperations } from "./rewrites.ts";
import { sessionsOperations } from "./sessions.ts";
import { throttleOperations } from "./throttle.ts";
import { trafficOperations } from "./traffic.ts";

/** Every operation of Weir's API, by slice. REST, client, CLI, OpenAPI and agents are made from it. */
export const operations = {
  traffic: trafficOperations,
  sessions: sessionsOperations,
  export: exportOperations,
  cert: certOperations,
  config: configOperations,
  capture: captureOperations,
  blocklist: blocklistOperations,
  breakpoints: breakpointsOperations,
  focus: focusOperations,
  mocks: mocksOperations,
  replay: replayOperations,
  rewrites: rewritesOperations,
  throttle: throttleOperations,
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
export * from "./blocklist.ts";
export * from "./breakpoints.ts";
export * from "./capture.ts";
export * from "./cert.ts";
export * from "./condition.ts";
export * from "./config.ts";
export * from "./entry-diff.ts";
export * from "./events.ts";
export * from "./export.ts";
export * from "./focus.ts";
export * from "./match-preview.ts";
export * from "./message.ts";
export * from "./metrics.ts";
export * from "./mock-bodies.ts";
export * from "./mock-rule.ts";
export * from "./mock-serving.ts";
export * from "./mocks.ts";
export * from "./persistence.ts";
export * from "./primitives.ts";
export * from "./replay.ts";
export * from "./rewrite-action.ts";
export * from "./rewrites.ts";
export * from "./sessions.ts";
export * from "./throttle.ts";
export * from "./traffic.ts";
