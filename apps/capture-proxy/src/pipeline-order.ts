import type { SliceName } from "@headworks/capture-contract";

/** The order in which slices see a request. Slices that do not intercept are not listed. */
export const INTERCEPTOR_ORDER = [
  "blocklist", // a blocked host costs no further work and opens no connection
  "rewrites", // everything behind sees the result of declarative edits
  "scripts", // see the result of declarative edits, and decide before a rule responds
  "mocks", // stands where the forwarder stands, and sees what rewrites made of the request
  "breakpoints", // a person sees exactly what would be sent
  "throttle", // shapes what really goes over the wire
  "ws-traffic", // takes the messages of what became a WebSocket connection; takes no part before
] as const satisfies readonly SliceName[];

/** The order in which slices observe exchanges. */
export const OBSERVER_ORDER = [
  "throttle", // discards delayed bytes of a client that is gone
  "breakpoints", // pauses end before the entry is stored
  "mocks", // keeps entries for rules that it creates once they are stored
  "mirror", // copies small bodies before the store takes them over
  "streams", // frames belong to the entry, and are queued before it ends
  "grpc", // the status of a call is known before its entry is stored
  "runs", // counts the exchanges in flight of each run
  "logs", // reads bodies, so it precedes the observers that release them
  "metrics", // counts everything, recorded or not
  "traffic", // stores and announces
] as const satisfies readonly SliceName[];

/** Slices whose failure must block a request, because their decision is a promise to the user. */
export const FAIL_CLOSED: ReadonlySet<string> = new Set<SliceName>(["blocklist"]);
