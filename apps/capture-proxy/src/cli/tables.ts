import {
  type BlockEntry,
  type Breakpoint,
  type CaptureSession,
  type Condition,
  type ConfigField,
  type FocusHost,
  formatBitRate,
  formatRate,
  type GrpcConnection,
  type GrpcFrame,
  grpcFrameLine,
  type GrpcSchema,
  type GrpcStream,
  type MockCollection,
  type MockHit,
  type MockMiss,
  type MockRule,
  type MockVersion,
  type PausedItem,
  type ReplayBatch,
  type ReplayResult,
  type RewriteRule,
  type Run,
  type ScriptExecution,
  type ScriptMatch,
  type SavedRequest,
  type Script,
  type StreamFrame,
  type StreamSummary,
  type ThrottleProfile,
  type TrafficEntry,
  type TrafficSnapshot,
  type TreeNode,
  type WsConnection,
  type WsMessage,
  type WsPaused,
  type WsPayload,
  type WsRule,
} from "@headworks/capture-contract";
import { closeCodeText } from "@headworks/http-fields";
import { describeCondition } from "@headworks/match-condition";
import { durationText, sizeText, timeText, valueText, type WideColumn } from "./table.ts";

interface Switched {
  readonly enabled: boolean;
}

const on: WideColumn<Switched> = { title: "On", text: (row) => (row.enabled ? "yes" : "no") };
const name: WideColumn<{ readonly name: string }> = { title: "Name", text: (row) => row.name, shrinksTo: 10 };
const id: WideColumn<{ readonly id: string }> = { title: "Id", text: (row) => row.id };
const hits: WideColumn<{ readonly hit_count: number }> = {
  title: "Hits",
  text: (row) => String(row.hit_count),
  align: "right",
};
const priority: WideColumn<{ readonly priority: number }> = {
  title: "Priority",
  text: (row) => String(row.priority),
  align: "right",
  fromColumns: 110,
};
const matches: WideColumn<{ readonly condition: Condition }> = {
  title: "Matches",
  text: (row) => describeCondition(row.condition),
  shrinksTo: 12,
};

const statusStyle = (status: number | undefined): "green" | "cyan" | "yellow" | "red" | undefined => {
  if (status === undefined) return "red";
  return status >= 500 ? "red" : status >= 400 ? "yellow" : status >= 300 ? "cyan" : "green";
};

const CALL_TYPES: Readonly<Record<GrpcStream["message_type"], string>> = {
  unary: "unary",
  serverstream: "server",
  clientstream: "client",
  bidistream: "both",
};

const grpcConnections: readonly WideColumn<GrpcConnection>[] = [
  { title: "State", text: (row) => row.state },
  { title: "Host", text: (row) => row.host, shrinksTo: 12 },
  { title: "Server", text: (row) => row.server_addr ?? "", shrinksTo: 12, fromColumns: 100 },
  { title: "Client", text: (row) => row.client_addr ?? "", shrinksTo: 12, fromColumns: 120 },
  { title: "Active", text: (row) => String(row.active_streams), align: "right" },
  { title: "Calls", text: (row) => String(row.total_streams), align: "right" },
  { title: "Since", text: (row) => timeText(row.created_at), fromColumns: 90 },
  id,
];

const grpcCalls: readonly WideColumn<GrpcStream>[] = [
  {
    title: "Status",
    text: callStatus,
    style: (row) => (row.state !== "closed" ? "dim" : row.status_code === 0 ? "green" : "red"),
    shrinksTo: 9,
  },
  { title: "Service", text: (row) => row.service, shrinksTo: 12, cut: "middle" },
  { title: "Method", text: (row) => row.method, shrinksTo: 8 },
  { title: "Streams", text: (row) => CALL_TYPES[row.message_type], fromColumns: 90 },
  { title: "Sent", text: (row) => String(row.frames_sent), align: "right" },
  { title: "Received", text: (row) => String(row.frames_received), align: "right" },
  { title: "Started", text: (row) => timeText(row.created_at), fromColumns: 130 },
  {
    title: "Message",
    text: (row) => row.status_message || (row.failure ?? row.issues[0] ?? ""),
    shrinksTo: 10,
    fromColumns: 150,
  },
  id,
];

const grpcFrames: readonly WideColumn<GrpcFrame>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp), fromColumns: 110 },
  { title: "", text: (row) => (row.direction === "request" ? "→" : "←") },
  { title: "Method", text: (row) => row.method, shrinksTo: 8 },
  { title: "Size", text: (row) => sizeText(row.size), align: "right" },
  { title: "Type", text: frameType, shrinksTo: 8, fromColumns: 100 },
  { title: "Message", text: (row) => grpcFrameLine(row) ?? row.data, shrinksTo: 20 },
  { title: "Call", text: (row) => row.stream_id, fromColumns: 120 },
];

const grpcSchemas: readonly WideColumn<GrpcSchema>[] = [
  name,
  { title: "From", text: (row) => row.source },
  { title: "Services", text: (row) => row.services.map(({ name }) => name).join(", "), shrinksTo: 12 },
  { title: "Messages", text: (row) => String(row.messages), align: "right" },
  { title: "Files", text: (row) => String(row.files.length), align: "right", fromColumns: 100 },
  { title: "Added", text: (row) => timeText(row.created_at), fromColumns: 120 },
  id,
];

const traffic: readonly WideColumn<TrafficEntry>[] = [
  { title: "#", text: (row) => String(row.seq), align: "right" },
  { title: "Method", text: (row) => row.request.method, shrinksTo: 7 },
  {
    title: "Status",
    text: (row) => entryStatus(row),
    style: (row) => (row.state === "pending" ? "dim" : statusStyle(row.response?.status_code)),
    shrinksTo: 8,
  },
  { title: "URL", text: (row) => row.request.url, shrinksTo: 18, cut: "middle" },
  { title: "Type", text: (row) => row.resource_type, fromColumns: 130 },
  { title: "Size", text: (row) => sizeText(row.response_size), align: "right", fromColumns: 100 },
  { title: "Time", text: (row) => durationText(row.response?.duration_ms), align: "right", fromColumns: 90 },
  { title: "Started", text: (row) => timeText(row.timestamp), fromColumns: 160 },
  id,
];

const trafficRows: readonly WideColumn<TrafficSnapshot>[] = [
  { title: "#", text: (row) => String(row.seq), align: "right" },
  { title: "Method", text: (row) => row.method, shrinksTo: 7 },
  { title: "Status", text: (row) => String(row.status_code ?? row.state), shrinksTo: 8 },
  { title: "URL", text: (row) => row.url, shrinksTo: 18, cut: "middle" },
  { title: "Size", text: (row) => sizeText(row.response_size), align: "right" },
  { title: "Time", text: (row) => durationText(row.duration_ms), align: "right" },
  { title: "Started", text: (row) => timeText(row.timestamp), fromColumns: 160 },
  id,
];

const sessions: readonly WideColumn<CaptureSession>[] = [
  { title: "", text: (row) => (row.is_current ? "*" : "") },
  { title: "Name", text: (row) => row.name ?? "", shrinksTo: 10 },
  { title: "Entries", text: (row) => String(row.request_count), align: "right" },
  { title: "Size", text: (row) => sizeText(row.total_size_bytes), align: "right", fromColumns: 80 },
  { title: "Tags", text: (row) => row.tags.join(", "), shrinksTo: 8, fromColumns: 130 },
  { title: "Updated", text: (row) => timeText(row.updated_at), fromColumns: 100 },
  id,
];

const runs: readonly WideColumn<Run>[] = [
  { title: "Session", text: (row) => row.session_name ?? "", shrinksTo: 10 },
  { title: "Proxy", text: (row) => row.proxy_url },
  { title: "Started", text: (row) => timeText(row.started_at), fromColumns: 90 },
  { title: "Ended", text: (row) => (row.ended_at === null ? "" : timeText(row.ended_at)), fromColumns: 110 },
  { title: "In flight", text: (row) => String(row.open_exchanges), align: "right" },
  id,
];

const blocklist: readonly WideColumn<BlockEntry>[] = [
  on,
  { title: "Pattern", text: (row) => row.pattern, shrinksTo: 12 },
  { title: "Response", text: (row) => String(row.status_code), align: "right" },
  hits,
  { title: "Note", text: (row) => row.note ?? "", shrinksTo: 8, fromColumns: 100 },
  id,
];

const focus: readonly WideColumn<FocusHost>[] = [
  { title: "Pattern", text: (row) => row.pattern, shrinksTo: 12 },
  { title: "Added", text: (row) => timeText(row.created_at), fromColumns: 80 },
  id,
];

const fields: readonly WideColumn<ConfigField>[] = [
  { title: "Setting", text: (row) => row.name },
  { title: "Value", text: (row) => valueText(row.value), shrinksTo: 12 },
  { title: "From", text: (row) => row.source },
  {
    title: "Applies",
    text: appliesText,
    style: (row) => (row.restart_pending || row.overridden_by !== undefined ? "yellow" : undefined),
  },
  { title: "Flag", text: (row) => row.flag ?? "", fromColumns: 110 },
  { title: "Variable", text: (row) => row.environment, fromColumns: 140 },
  { title: "Meaning", text: (row) => row.description ?? "", shrinksTo: 10, fromColumns: 120 },
];

const tree: readonly WideColumn<TreeNode>[] = [
  { title: "Name", text: (row) => row.name, shrinksTo: 20, cut: "middle" },
  { title: "Entries", text: (row) => String(row.count), align: "right" },
  {
    title: "Errors",
    text: (row) => String(row.errors),
    align: "right",
    style: (row) => (row.errors > 0 ? "red" : undefined),
  },
  { title: "Size", text: (row) => sizeText(row.response_bytes), align: "right" },
  { title: "Last", text: (row) => timeText(row.last_timestamp), fromColumns: 90 },
];

/** The status code, or why there is none. */
function entryStatus(row: Pick<TrafficEntry, "state" | "failure" | "response" | "is_passthrough">): string {
  if (row.response) return String(row.response.status_code);
  if (row.failure) return row.failure.code;
  if (row.is_passthrough) return "tunnel";
  return row.state;
}

function appliesText({ restart_pending: isPending, overridden_by: winner, applies }: ConfigField): string {
  if (winner !== undefined) return `overridden by ${winner}`;
  return isPending ? "restart pending" : applies;
}

/** The status of a completed call, or its state. */
function callStatus({ state, status_code: code, status_name: name, failure }: GrpcStream): string {
  if (state !== "closed") return state;
  if (code !== null) return name ?? String(code);
  return failure === null ? "no status" : "interrupted";
}

function frameType({ is_trailer: isTrailer, decoded }: GrpcFrame): string {
  return isTrailer ? "trailers" : (decoded?.message_type ?? "");
}

const streams: readonly WideColumn<StreamSummary>[] = [
  { title: "Kind", text: (row) => row.kind },
  {
    title: "State",
    text: (row) => row.state,
    style: (row) => (row.state === "open" ? "green" : undefined),
  },
  { title: "URL", text: (row) => row.url, shrinksTo: 18, cut: "middle" },
  { title: "Sent", text: (row) => String(row.frames_sent), align: "right" },
  { title: "Received", text: (row) => String(row.frames_received), align: "right" },
  { title: "Size", text: (row) => sizeText(row.bytes_sent + row.bytes_received), align: "right", fromColumns: 110 },
  { title: "Started", text: (row) => timeText(row.created_at), fromColumns: 140 },
  id,
];

const streamFrames: readonly WideColumn<StreamFrame>[] = [
  { title: "#", text: (row) => String(row.ordinal), align: "right" },
  { title: "", text: (row) => (row.direction === "send" ? "↑" : "↓") },
  { title: "Type", text: kindOf, shrinksTo: 8 },
  { title: "Size", text: (row) => sizeText(row.size), align: "right" },
  { title: "Effect", text: (row) => row.effect ?? "", fromColumns: 120 },
  { title: "Time", text: (row) => timeText(row.timestamp), fromColumns: 110 },
  { title: "Content", text: (row) => contentOf(row), shrinksTo: 20 },
];

/** The type of an event where it has one; without a name it is a message, as browsers have it. */
function kindOf({ type, size, attributes }: StreamFrame): string {
  if (type !== "event") return type;
  return attributes["event"] ?? (size === 0 && attributes["comment"] !== undefined ? "comment" : "message");
}

/** Text on one line; bytes as they begin. */
function contentOf({ text, base64, size, attributes }: StreamFrame): string {
  if (size === 0 && attributes["comment"] !== undefined) return `: ${attributes["comment"]}`;
  return (text ?? `base64:${base64 ?? ""}`).replaceAll(/\s+/gu, " ").trim();
}

const ARROWS = { send: "→", receive: "←" } as const;

const wsConnections: readonly WideColumn<WsConnection>[] = [
  {
    title: "State",
    text: (row) => (row.problem === null ? row.state : `${row.state}, unread`),
    style: (row) => (row.problem === null ? (row.state === "closed" ? "dim" : "green") : "red"),
  },
  { title: "URL", text: (row) => row.url, shrinksTo: 20, cut: "middle" },
  { title: "Sent", text: (row) => String(row.messages_sent), align: "right" },
  { title: "Received", text: (row) => String(row.messages_received), align: "right" },
  { title: "Bytes", text: (row) => sizeText(row.bytes_sent + row.bytes_received), align: "right", fromColumns: 90 },
  {
    title: "Close",
    text: (row) => (row.close_code === null ? "" : closeCodeText(row.close_code, row.close_reason ?? "")),
    shrinksTo: 12,
    fromColumns: 110,
  },
  { title: "Since", text: (row) => timeText(row.created_at), fromColumns: 120 },
  id,
];

const wsMessages: readonly WideColumn<WsMessage>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp), fromColumns: 110 },
  { title: "", text: (row) => ARROWS[row.direction] },
  { title: "Type", text: (row) => row.message_type },
  { title: "Size", text: (row) => sizeText(row.payload.size), align: "right" },
  { title: "Done", text: (row) => row.effect ?? "", fromColumns: 90, style: () => "yellow" },
  { title: "Content", text: (row) => payloadText(row.payload), shrinksTo: 20 },
  { title: "Connection", text: (row) => row.connection_id, fromColumns: 130 },
];

const wsRules: readonly WideColumn<WsRule>[] = [
  on,
  name,
  { title: "Action", text: (row) => row.action.type },
  { title: "Messages", text: (row) => messagesText(row.match), shrinksTo: 16, cut: "middle", fromColumns: 80 },
  hits,
  id,
];

const wsPaused: readonly WideColumn<WsPaused>[] = [
  { title: "Since", text: (row) => timeText(row.paused_at), fromColumns: 100 },
  { title: "", text: (row) => ARROWS[row.direction] },
  { title: "Rule", text: (row) => row.rule_name, shrinksTo: 8 },
  { title: "Content", text: (row) => payloadText(row.payload), shrinksTo: 20 },
  id,
];

/** Which messages a rule is for, in words: `text, from the server, host *.shop.test`. */
function messagesText({ host, url, direction, message_type: type, text }: WsRule["match"]): string {
  const parts = [
    ...(type === undefined ? [] : [type]),
    ...(direction === undefined ? [] : [direction === "send" ? "from the client" : "from the server"]),
    ...(host === undefined ? [] : [`host ${host}`]),
    ...(url === undefined ? [] : [`URL ${url}`]),
    ...(text === undefined ? [] : [`with ${text}`]),
  ];
  return parts.length === 0 ? "all" : parts.join(", ");
}

function payloadText({ text, raw_base64: base64 = "" }: WsPayload): string {
  return text ?? base64;
}

const breakpoints: readonly WideColumn<Breakpoint>[] = [
  on,
  name,
  { title: "Pauses", text: (row) => row.direction },
  matches,
  { title: "Timeout", text: (row) => (row.timeout_secs === null ? "" : `${row.timeout_secs} s`), fromColumns: 110 },
  priority,
  hits,
  id,
];

const paused: readonly WideColumn<PausedItem>[] = [
  { title: "#", text: (row) => String(row.position), align: "right" },
  { title: "Side", text: (row) => row.direction },
  { title: "Method", text: (row) => row.request.method },
  { title: "Status", text: (row) => (row.response === null ? "" : String(row.response.status_code)) },
  { title: "URL", text: (row) => row.request.url, shrinksTo: 18, cut: "middle" },
  { title: "Rule", text: (row) => row.rule_name, shrinksTo: 8, fromColumns: 100 },
  { title: "Since", text: (row) => timeText(row.paused_at), fromColumns: 90 },
  { title: "Until", text: (row) => (row.deadline === null ? "" : timeText(row.deadline)), fromColumns: 130 },
  id,
];

const rewrites: readonly WideColumn<RewriteRule>[] = [
  on,
  name,
  { title: "Changes", text: (row) => row.direction },
  { title: "Actions", text: (row) => row.rewrites.map(({ type }) => type).join(", "), shrinksTo: 10 },
  matches,
  priority,
  hits,
  id,
];

const mocks: readonly WideColumn<MockRule>[] = [
  { title: "On", text: (row) => (row.expired ? "expired" : row.enabled ? "yes" : "no") },
  name,
  matches,
  { title: "Response", text: (row) => responseText(row), shrinksTo: 8 },
  { title: "Tags", text: (row) => row.tags.join(", "), shrinksTo: 6, fromColumns: 130 },
  priority,
  hits,
  id,
];

/** The response of a mock, in a word or two. */
function responseText({ response_config: config }: MockRule): string {
  switch (config.type) {
    case "single":
      return String(config.response.status_code);
    case "conditional":
      return `${config.conditions.length + 1} by condition`;
    case "sequence":
      return `${config.responses.length} in turn`;
    case "probabilistic":
      return `${config.responses.length} by chance`;
  }
}

const versions: readonly WideColumn<MockVersion>[] = [
  { title: "Version", text: (row) => String(row.version), align: "right" },
  { title: "Saved", text: (row) => timeText(row.saved_at) },
  matches,
  { title: "Comment", text: (row) => row.comment ?? "", shrinksTo: 10 },
];

const collections: readonly WideColumn<MockCollection>[] = [
  on,
  name,
  { title: "Rules", text: (row) => String(row.rule_count), align: "right" },
  { title: "Description", text: (row) => row.description ?? "", shrinksTo: 10, fromColumns: 90 },
  id,
];

const mockHits: readonly WideColumn<MockHit>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp) },
  { title: "Method", text: (row) => row.request_method },
  { title: "Status", text: (row) => String(row.response_status), align: "right" },
  { title: "URL", text: (row) => row.request_url, shrinksTo: 18, cut: "middle" },
  { title: "Duration", text: (row) => durationText(row.response_time_ms), align: "right" },
  { title: "Mock", text: (row) => row.mock_id, fromColumns: 120 },
];

const savedRequests: readonly WideColumn<SavedRequest>[] = [
  { title: "Name", text: (row) => row.name ?? "", shrinksTo: 10 },
  { title: "Method", text: (row) => row.request.method },
  { title: "URL", text: (row) => row.request.url, shrinksTo: 18, cut: "middle" },
  { title: "Collection", text: (row) => row.collection ?? "", shrinksTo: 8, fromColumns: 110 },
  { title: "Saved", text: (row) => timeText(row.saved_at), fromColumns: 130 },
  id,
];

const replays: readonly WideColumn<ReplayResult>[] = [
  { title: "Time", text: (row) => timeText(row.executed_at) },
  { title: "Method", text: (row) => row.request.method },
  { title: "Status", text: (row) => (row.response ? String(row.response.status_code) : (row.error_code ?? "failed")) },
  { title: "URL", text: (row) => row.request.url, shrinksTo: 18, cut: "middle" },
  { title: "Duration", text: (row) => durationText(row.duration_ms), align: "right" },
  { title: "Entry", text: (row) => row.entry_id ?? "", fromColumns: 150 },
  id,
];

const batches: readonly WideColumn<ReplayBatch>[] = [
  { title: "Started", text: (row) => timeText(row.started_at) },
  { title: "State", text: (row) => row.state },
  { title: "Done", text: (row) => String(row.total), align: "right" },
  { title: "Failed", text: (row) => String(row.failed), align: "right" },
  { title: "p50", text: (row) => durationText(row.p50_ms ?? undefined), align: "right", fromColumns: 90 },
  { title: "p95", text: (row) => durationText(row.p95_ms ?? undefined), align: "right", fromColumns: 90 },
  { title: "p99", text: (row) => durationText(row.p99_ms ?? undefined), align: "right", fromColumns: 110 },
  id,
];

/** Templates of rules of any kind. */
const templates: readonly WideColumn<{ readonly name: string; readonly description: string }>[] = [
  name,
  { title: "Description", text: (row) => row.description, shrinksTo: 20 },
];

const scripts: readonly WideColumn<Script | ScriptMatch>[] = [
  on,
  { ...priority, fromColumns: 0 },
  name,
  { title: "Hooks", text: (row) => row.hooks.join(", "), shrinksTo: 10 },
  { title: "Matches", text: (row) => filterText(row.match_filter), shrinksTo: 12, fromColumns: 100 },
  { title: "Problem", text: (row) => ("problem" in row ? (row.problem ?? "") : ""), shrinksTo: 8, style: () => "red" },
  id,
];

function filterText(filter: Script["match_filter"]): string {
  if (filter === undefined) return "everything";
  return Object.entries(filter)
    .map(([part, pattern]) => `${part.replace("_pattern", "")} ${pattern}`)
    .join(", ");
}

const executions: readonly WideColumn<ScriptExecution>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp), fromColumns: 100 },
  { title: "Script", text: (row) => row.script_name, shrinksTo: 10 },
  { title: "Hook", text: (row) => row.hook ?? "" },
  { title: "Took", text: (row) => durationText(row.duration_ms), align: "right" },
  {
    title: "Result",
    text: (row) => row.error ?? (row.changes.length === 0 ? "ok" : row.changes.join("; ")),
    style: (row) => (row.success ? "green" : "red"),
    shrinksTo: 12,
  },
  { title: "Console", text: (row) => row.console.join("; "), shrinksTo: 10 },
  { title: "Entry", text: (row) => row.traffic_entry_id ?? "", fromColumns: 150 },
];

const misses: readonly WideColumn<MockMiss>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp) },
  { title: "Method", text: (row) => row.method },
  { title: "URL", text: (row) => row.url, shrinksTo: 18, cut: "middle" },
  { title: "Closest", text: (row) => row.near[0]?.differences.join("; ") ?? row.reason, shrinksTo: 14 },
];

const rate = (bytesPerSecond: number): string =>
  bytesPerSecond === 0 ? "no limit" : `${formatRate(bytesPerSecond)} (${formatBitRate(bytesPerSecond)})`;

const throttleProfiles: readonly WideColumn<ThrottleProfile>[] = [
  name,
  { title: "Down", text: (row) => rate(row.download_bps), align: "right" },
  { title: "Up", text: (row) => rate(row.upload_bps), align: "right" },
  { title: "Latency", text: (row) => durationText(row.latency_ms), align: "right" },
  { title: "Jitter", text: (row) => durationText(row.jitter_ms), align: "right" },
  { title: "Loss", text: (row) => `${row.packet_loss_percent} %`, align: "right" },
];

/** Tables by the schema name of their rows, which the contract gives for each response. */
export const TABLES: Readonly<Record<string, readonly WideColumn<never>[]>> = {
  TrafficEntry: traffic,
  TrafficSnapshot: trafficRows,
  CaptureSession: sessions,
  Run: runs,
  BlockEntry: blocklist,
  FocusHost: focus,
  ConfigField: fields,
  TreeNode: tree,
  Breakpoint: breakpoints,
  PausedItem: paused,
  RewriteRule: rewrites,
  MockRule: mocks,
  MockVersion: versions,
  MockCollection: collections,
  MockHit: mockHits,
  MockTemplate: templates,
  MockMiss: misses,
  RewriteTemplate: templates,
  Script: scripts,
  ScriptMatch: scripts,
  ScriptExecution: executions,
  ScriptTemplate: templates,
  ThrottleProfile: throttleProfiles,
  SavedRequest: savedRequests,
  ReplayResult: replays,
  ReplayBatch: batches,
  GrpcConnection: grpcConnections,
  GrpcStream: grpcCalls,
  GrpcFrame: grpcFrames,
  GrpcSchema: grpcSchemas,
  StreamSummary: streams,
  StreamFrame: streamFrames,
  WsConnection: wsConnections,
  WsMessage: wsMessages,
  WsRule: wsRules,
  WsPaused: wsPaused,
};
