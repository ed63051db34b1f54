/** A top-level command whose subcommands are operations of the API. Kept apart so that help needs no schema. */
export interface CommandGroup {
  readonly slice: string;
  /** A shorter name that does the same. */
  readonly alias?: string;
  readonly summary: string;
}

/** One group for each slice of the contract, in the order of the help; a test holds it against the contract. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  { slice: "traffic", summary: "List, search, follow and import captured traffic" },
  { slice: "streams", summary: "WebSockets, event streams, JSON streams and gRPC calls, message by message" },
  { slice: "sessions", summary: "Capture sessions: named sets of entries" },
  { slice: "runs", summary: "Programs with a proxy and a session of their own (see `weir run`)" },
  { slice: "export", summary: "HAR files and command lines that repeat a request" },
  { slice: "capture", summary: "Recording or passing through" },
  { slice: "config", summary: "Settings of the running service" },
  { slice: "mirror", summary: "Bodies of answers as files, while they pass" },
  { slice: "autosave", summary: "Snapshots of the active session, made by themselves" },
  { slice: "replay", summary: "Send requests again, once or many times, and compare the answers" },
  { slice: "breakpoints", summary: "Exchanges that wait for a decision, and what makes them wait" },
  { slice: "rewrites", summary: "Changes to requests and answers on their way" },
  { slice: "mocks", summary: "Answers given instead of the origins'" },
  { slice: "blocklist", summary: "Hosts that are refused" },
  { slice: "throttle", summary: "A slower line: bandwidth, latency, loss" },
  { slice: "ws-traffic", alias: "ws", summary: "Messages of WebSocket connections, and rules for them" },
  { slice: "logs", summary: "The log: its files, what goes into it, and its last lines" },
  { slice: "upstream", summary: "The proxy that Weir itself goes through" },
  { slice: "grpc", summary: "gRPC calls, their messages, and schemas to decode them" },
  { slice: "persistence", summary: "All rules in one document, to keep or to take elsewhere" },
  { slice: "focus", summary: "Hosts to look at" },
  { slice: "cert", summary: "The CA of the running service" },
  { slice: "metrics", summary: "Health, counters and performance" },
];
