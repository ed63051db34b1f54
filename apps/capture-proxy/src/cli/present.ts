import {
  type BlockEntry,
  type CaptureSession,
  type ConfigField,
  type FocusHost,
  type GrpcConnection,
  type GrpcFrame,
  grpcFrameLine,
  type GrpcSchema,
  type GrpcStream,
  type LogStatus,
  type RequestData,
  type ResponseData,
  type RuleTrace,
  type Run,
  type TrafficEntry,
  type TrafficSnapshot,
  type TreeNode,
} from "@headworks/capture-contract";
import { isNumeric } from "@headworks/json";
import { durationText, sizeText, timeText, valueText } from "./present-values.ts";
import { RULE_TABLES } from "./rule-tables.ts";
import { STREAM_TABLES } from "./stream-tables.ts";
import { renderPairs, renderTable, type WideColumn } from "./table.ts";
import { type Terminal, visibleOctets, visibleText } from "./terminal.ts";
import { WS_TABLES } from "./ws-tables.ts";

const connections: readonly WideColumn<GrpcConnection>[] = [
  { title: "State", text: (row) => row.state },
  { title: "Host", text: (row) => row.host, shrinksTo: 12 },
  { title: "Server", text: (row) => row.server_addr ?? "", shrinksTo: 12, fromColumns: 100 },
  { title: "Client", text: (row) => row.client_addr ?? "", shrinksTo: 12, fromColumns: 120 },
  { title: "Active", text: (row) => String(row.active_streams), align: "right" },
  { title: "Calls", text: (row) => String(row.total_streams), align: "right" },
  { title: "Since", text: (row) => timeText(row.created_at), fromColumns: 90 },
  { title: "Id", text: (row) => row.id },
];

const CALL_TYPES: Readonly<Record<GrpcStream["message_type"], string>> = {
  unary: "unary",
  serverstream: "server",
  clientstream: "client",
  bidistream: "both",
};

const streams: readonly WideColumn<GrpcStream>[] = [
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
  { title: "Id", text: (row) => row.id },
];

const frames: readonly WideColumn<GrpcFrame>[] = [
  { title: "Time", text: (row) => timeText(row.timestamp), fromColumns: 110 },
  { title: "", text: (row) => (row.direction === "request" ? "→" : "←") },
  { title: "Method", text: (row) => row.method, shrinksTo: 8 },
  { title: "Size", text: (row) => sizeText(row.size), align: "right" },
  { title: "Type", text: frameType, shrinksTo: 8, fromColumns: 100 },
  { title: "Message", text: (row) => grpcFrameLine(row) ?? row.data, shrinksTo: 20 },
  { title: "Call", text: (row) => row.stream_id, fromColumns: 120 },
];

const schemas: readonly WideColumn<GrpcSchema>[] = [
  { title: "Name", text: (row) => row.name, shrinksTo: 10 },
  { title: "From", text: (row) => row.source },
  { title: "Services", text: (row) => row.services.map(({ name }) => name).join(", "), shrinksTo: 12 },
  { title: "Messages", text: (row) => String(row.messages), align: "right" },
  { title: "Files", text: (row) => String(row.files.length), align: "right", fromColumns: 100 },
  { title: "Added", text: (row) => timeText(row.created_at), fromColumns: 120 },
  { title: "Id", text: (row) => row.id },
];

/** Tables by the name of the schema of their rows. */
const GRPC_TABLES: Readonly<Record<string, readonly WideColumn<never>[]>> = {
  GrpcConnection: connections,
  GrpcStream: streams,
  GrpcFrame: frames,
  GrpcSchema: schemas,
};

/** Limit of a body in the output; `weir traffic body` prints all of it. */
const SHOWN_BODY_CHARACTERS = 16_384;

const CLIENT_CERTIFICATE_TEXTS = {
  sent: " (client certificate sent)",
  none: " (client certificate requested; none configured)",
} as const;

const statusStyle = (status: number | undefined): "green" | "cyan" | "yellow" | "red" | undefined => {
  if (status === undefined) return "red";
  return status >= 500 ? "red" : status >= 400 ? "yellow" : status >= 300 ? "cyan" : "green";
};

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
  { title: "Id", text: (row) => row.id },
];

const trafficRows: readonly WideColumn<TrafficSnapshot>[] = [
  { title: "#", text: (row) => String(row.seq), align: "right" },
  { title: "Method", text: (row) => row.method, shrinksTo: 7 },
  { title: "Status", text: (row) => String(row.status_code ?? row.state), shrinksTo: 8 },
  { title: "URL", text: (row) => row.url, shrinksTo: 18, cut: "middle" },
  { title: "Size", text: (row) => sizeText(row.response_size), align: "right" },
  { title: "Time", text: (row) => durationText(row.duration_ms), align: "right" },
  { title: "Started", text: (row) => timeText(row.timestamp), fromColumns: 160 },
  { title: "Id", text: (row) => row.id },
];

/** The status code, or why there is none. */
function entryStatus(row: Pick<TrafficEntry, "state" | "failure" | "response" | "is_passthrough">): string {
  if (row.response) return String(row.response.status_code);
  if (row.failure) return row.failure.code;
  if (row.is_passthrough) return "tunnel";
  return row.state;
}

const sessions: readonly WideColumn<CaptureSession>[] = [
  { title: "", text: (row) => (row.is_current ? "*" : "") },
  { title: "Name", text: (row) => row.name ?? "", shrinksTo: 10 },
  { title: "Entries", text: (row) => String(row.request_count), align: "right" },
  { title: "Size", text: (row) => sizeText(row.total_size_bytes), align: "right", fromColumns: 80 },
  { title: "Tags", text: (row) => row.tags.join(", "), shrinksTo: 8, fromColumns: 130 },
  { title: "Updated", text: (row) => timeText(row.updated_at), fromColumns: 100 },
  { title: "Id", text: (row) => row.id },
];

const runs: readonly WideColumn<Run>[] = [
  { title: "Session", text: (row) => row.session_name ?? "", shrinksTo: 10 },
  { title: "Proxy", text: (row) => row.proxy_url },
  { title: "Started", text: (row) => timeText(row.started_at), fromColumns: 90 },
  { title: "Ended", text: (row) => (row.ended_at === null ? "" : timeText(row.ended_at)), fromColumns: 110 },
  { title: "In flight", text: (row) => String(row.open_exchanges), align: "right" },
  { title: "Id", text: (row) => row.id },
];

const blocklist: readonly WideColumn<BlockEntry>[] = [
  { title: "On", text: (row) => (row.enabled ? "yes" : "no") },
  { title: "Pattern", text: (row) => row.pattern, shrinksTo: 12 },
  { title: "Response", text: (row) => String(row.status_code), align: "right" },
  { title: "Hits", text: (row) => String(row.hit_count), align: "right" },
  { title: "Note", text: (row) => row.note ?? "", shrinksTo: 8, fromColumns: 100 },
  { title: "Id", text: (row) => row.id },
];

const focus: readonly WideColumn<FocusHost>[] = [
  { title: "Pattern", text: (row) => row.pattern, shrinksTo: 12 },
  { title: "Added", text: (row) => timeText(row.created_at), fromColumns: 80 },
  { title: "Id", text: (row) => row.id },
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

function appliesText({ restart_pending: isPending, overridden_by: winner, applies }: ConfigField): string {
  if (winner !== undefined) return `overridden by ${winner}`;
  return isPending ? "restart pending" : applies;
}

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

/** Tables by the schema name of their rows, which the contract gives for each response. */
const TABLES: Readonly<Record<string, readonly WideColumn<never>[]>> = {
  TrafficEntry: traffic,
  TrafficSnapshot: trafficRows,
  CaptureSession: sessions,
  Run: runs,
  BlockEntry: blocklist,
  FocusHost: focus,
  ConfigField: fields,
  TreeNode: tree,
  ...RULE_TABLES,
  ...GRPC_TABLES,
  ...STREAM_TABLES,
  ...WS_TABLES,
};

/** Names of schemas that have a table of their own. */
export const tableNames: readonly string[] = Object.keys(TABLES);

const LOG_SCHEMAS: ReadonlySet<string> = new Set(["LogStatus", "LogRotated", "LogsChanged"]);

/** A response for people. `schemaId` is the `$id` of the rows of a list or of the object, if it has one. */
export function present(value: unknown, schemaId: string | undefined, terminal: Terminal): string {
  if (Array.isArray(value)) return presentList(value, schemaId, terminal);
  if (typeof value !== "object" || value === null || isNumeric(value)) return `${valueText(value)}\n`;
  if (schemaId !== undefined && LOG_SCHEMAS.has(schemaId)) return presentLogStatus(value as LogStatus, terminal);
  if (schemaId === "TrafficEntry" && "request" in value) return presentEntry(value as TrafficEntry, terminal);
  return renderPairs(pairsOf(value, ""), terminal);
}

function presentList(rows: readonly unknown[], schemaId: string | undefined, terminal: Terminal): string {
  if (rows.length === 0) return terminal.isTty ? `${terminal.style("dim", "No items")}\n` : "";
  const columns = (schemaId === undefined ? undefined : TABLES[schemaId]) as readonly WideColumn<unknown>[] | undefined;
  const wide = columns ?? genericColumns(rows);
  return renderTable(
    rows,
    wide.filter(({ fromColumns }) => terminal.columns >= (fromColumns ?? 0)),
    terminal,
  );
}

function genericColumns(rows: readonly unknown[]): readonly WideColumn<unknown>[] {
  const [first] = rows;
  if (typeof first !== "object" || first === null) return [{ title: "Value", text: valueText, shrinksTo: 10 }];
  return Object.keys(first).map((key) => ({
    title: key,
    text: (row) => valueText((row as Record<string, unknown>)[key]),
    shrinksTo: 8,
  }));
}

function pairsOf(value: object, prefix: string): [string, string][] {
  return Object.entries(value).flatMap(([key, entry]: [string, unknown]): [string, string][] => {
    const name = `${prefix}${key}`;
    if (typeof entry === "object" && entry !== null && !Array.isArray(entry) && !isNumeric(entry)) {
      return pairsOf(entry, `${name}.`);
    }
    if (Array.isArray(entry) && entry.some((item) => typeof item === "object" && !isNumeric(item))) {
      return [[name, objectLines(entry)]];
    }
    // The size of a buffer is a number of lines.
    if (typeof entry === "number" && /bytes$|(?<!buffer)_size$/.test(key)) {
      return [[name, entry < 1024 ? `${entry} B` : `${entry} (${sizeText(entry)})`]];
    }
    // A drawing is for browsers.
    if (key.endsWith("_svg")) return [];
    return [[name, valueText(entry)]];
  });
}

/** Limit of the output for people; `--json` has all. */
const SHOWN_OBJECTS = 20;

function objectLines(items: readonly unknown[]): string {
  if (items.length > SHOWN_OBJECTS) return `${items.length}, see --json`;
  return items.map((item) => objectLine(item)).join("\n");
}

/** A step of a test as a line with a mark, a field as name and value, everything else as its properties in a row. */
function objectLine(item: unknown): string {
  if (typeof item !== "object" || item === null) return valueText(item);
  if (Array.isArray(item)) return item.length === 2 ? item.map(valueText).join(": ") : valueText(item);
  const { name, ok, detail, duration_ms } = item as Readonly<Record<string, unknown>>;
  if (typeof name === "string" && typeof ok === "boolean") {
    const took = typeof duration_ms === "number" ? ` (${duration_ms} ms)` : "";
    return `${ok ? "✓" : "✗"} ${name}: ${valueText(detail)}${took}`;
  }
  return Object.entries(item)
    .map(([key, value]) => `${key} ${valueText(value)}`)
    .join("  ");
}

/** One entry: facts, both heads in wire order, both bodies as far as they are text. */
export function presentEntry(entry: TrafficEntry, terminal: Terminal): string {
  const { request, response } = entry;
  const parts = [
    renderPairs(facts(entry), terminal),
    message(requestLine(request), request, "request", entry.id, terminal),
  ];
  if (response) parts.push(message(statusLine(response), response, "response", entry.id, terminal));
  return parts.join("\n");
}

function stateText({ state, failure }: TrafficEntry): string {
  if (state === "closed") return "closed by the client";
  return failure ? `failed: ${failure.message} (${failure.code}, ${failure.stage})` : state;
}

function facts(entry: TrafficEntry): [string, string][] {
  const { timings } = entry;
  const stages = Object.entries(timings).flatMap(([name, ms]) => (ms === null ? [] : [`${name} ${durationText(ms)}`]));
  const rows: [string, string | null | undefined][] = [
    ["Id", entry.id],
    ["Number", String(entry.seq)],
    ["URL", entry.request.url],
    ["State", stateText(entry)],
    ["Started", timeText(entry.timestamp)],
    ["Duration", durationText(entry.response?.duration_ms)],
    ["Timings", stages.join(", ")],
    ["Client", entry.client_addr],
    ["Server", entry.server_addr],
    ["TLS", tlsText(entry)],
    ["Answered by", entry.source === "slice" ? "Weir" : null],
    ["Source", entry.source === "import" ? "import" : null],
    ["Note", entry.notes],
    ...entry.trace.map((step): [string, string] => ["Rule", stepText(step)]),
    ["Original request", requestWas(entry)],
    ["Original response", originalResponseText(entry)],
  ];
  return rows.filter((row): row is [string, string] => row[1] !== null && row[1] !== undefined && row[1] !== "");
}

function stepText({ kind, rule_name, phase, changes }: RuleTrace): string {
  const what = changes.length === 0 ? "matched" : changes.join("; ");
  return `${kind} "${rule_name}", ${phase}: ${what}`;
}

/** What a rule changed of the request line; `--json` has the whole of both messages. */
function requestWas({ request, original_request: was }: TrafficEntry): string | null {
  if (was === null || (was.method === request.method && was.url === request.url)) return null;
  return `${was.method} ${was.url}`;
}

function originalResponseText({ response, original_response: was }: TrafficEntry): string | null {
  if (was === null || was.status_code === response?.status_code) return null;
  return `${was.status_code} ${was.status_message ?? ""}`.trim();
}

function tlsText({ tls }: TrafficEntry): string | null {
  if (!tls) return null;
  const verified = tls.upstream_verified === false ? " (certificate not verified)" : "";
  const response =
    tls.upstream_client_certificate === null ? "" : CLIENT_CERTIFICATE_TEXTS[tls.upstream_client_certificate];
  return `client ${tls.client_version ?? "-"}, origin ${tls.upstream_version ?? "-"}${verified}${response}`;
}

function requestLine(request: RequestData): string {
  return `${request.method} ${request.path} ${request.http_version ?? ""}`.trim();
}

function statusLine(response: ResponseData): string {
  return `${response.http_version ?? "HTTP"} ${response.status_code} ${response.status_message ?? ""}`.trim();
}

function message(line: string, data: RequestData | ResponseData, side: string, id: string, terminal: Terminal): string {
  const fields = data.headers_list.map(
    ([name, value]) => `${terminal.style("cyan", visibleText(name))}: ${visibleOctets(value)}`,
  );
  return `${[terminal.style("bold", visibleOctets(line)), ...fields].join("\n")}\n${bodyText(data, side, id, terminal)}`;
}

function bodyText(data: RequestData | ResponseData, side: string, id: string, terminal: Terminal): string {
  if (data.body_state === "none" || data.body_size === 0) return "";
  const size = sizeText(data.body_size);
  const more = `weir traffic body ${id} ${side}`;
  const remark = (text: string): string => `\n${terminal.style("dim", `[${text}]`)}\n`;
  if (data.body_state === "not_stored") return remark(`body of ${size}, not stored`);
  if (data.body === null) return remark(`body of ${size}: ${more}`);
  if (data.body_encoding === "base64") return remark(`${size}, not text: ${more} -o FILE`);
  const shown = visibleText(data.body.slice(0, SHOWN_BODY_CHARACTERS).replaceAll("\r\n", "\n"), true);
  const isCut = data.body.length > SHOWN_BODY_CHARACTERS;
  const end = isCut
    ? remark(`shortened; complete body: ${more}`)
    : data.body_state === "truncated"
      ? remark(`stored up to ${sizeText(data.body_stored_size)} of ${size}`)
      : "\n";
  return `\n${shown}${end}`;
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

/** The log's status for people: what is in force, how writing goes, and the files. Also shows the response to a rotation. */
function presentLogStatus(status: LogStatus & { readonly rotated_to?: string }, terminal: Terminal): string {
  const { current_file: file, async, debug_logging: debug, traffic_events: events, restart_pending: pending } = status;
  const overridden = Object.entries(status.overridden_by).map(([name, by]) => `${name} by ${by}`);
  const pairs: [string, string][] = [
    ["rotated to", status.rotated_to ?? ""],
    ["file", file === null ? "none; standard output only" : `${file.path} (${sizeText(file.size_bytes)})`],
    ["problem", status.problem ?? ""],
    ["new file", `${rotationText(status.rotation)}, at most ${status.max_file_size_mb} MiB`],
    ["kept", `${status.archived_count} of at most ${status.max_files} rotated files`],
    ["form", `${status.json_format ? "JSON lines" : "text"}, level ${status.verbosity}`],
    ["after a restart", pending.join(", ")],
    ["overridden", overridden.join(", ")],
    ["lines", `${async.written_events} written, ${async.dropped_events} lost, ${async.buffer_depth} waiting`],
    ["traffic", trafficText(debug, events)],
  ];
  const head = renderPairs(
    pairs.filter(([, value]) => value !== ""),
    terminal,
  );
  if (status.archived_files.length === 0) return head;
  const table = renderTable(
    status.archived_files,
    [
      { title: "Rotated file", text: (row) => row.name },
      { title: "Size", text: (row) => sizeText(row.size_bytes), align: "right" },
      { title: "Last line", text: (row) => timeText(row.modified) },
    ],
    terminal,
  );
  return `${head}\n${table}`;
}

function rotationText(rotation: LogStatus["rotation"]): string {
  return rotation.mode === "size" ? `size (${rotation.size_mb} MiB)` : rotation.mode;
}

function trafficText(debug: LogStatus["debug_logging"], events: LogStatus["traffic_events"]): string {
  if (!debug.enabled) return "not logged";
  const hosts = debug.host_filter.length === 0 ? "all hosts" : debug.host_filter.join(", ");
  return `${debug.level} of ${hosts}: ${events.logged} events, ${events.dropped} lost`;
}
