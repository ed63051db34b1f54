import { isNumeric } from "@headworks/exact-json";
import type {
  BlockEntry,
  CaptureSession,
  ConfigField,
  FocusHost,
  Run,
  LogStatus,
  TrafficEntry,
  TrafficSnapshot,
  TreeNode,
} from "@headworks/capture-contract";
import { GRPC_TABLES } from "./grpc-tables.ts";
import { presentEntry } from "./present-entry.ts";
import { presentLogStatus } from "./present-logs.ts";
import { durationText, sizeText, timeText, valueText } from "./present-values.ts";
import { renderPairs, renderTable } from "./table.ts";
import type { WideColumn } from "./table.ts";
import { RULE_TABLES } from "./rule-tables.ts";
import { STREAM_TABLES } from "./stream-tables.ts";
import { WS_TABLES } from "./ws-tables.ts";
import type { Terminal } from "./terminal.ts";

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
  { title: "Answer", text: (row) => String(row.status_code), align: "right" },
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

/** Tables by the name of the schema of their rows; the contract decides which one an answer is. */
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

/** An answer for people. `rowSchema` is the `$id` of the rows of a list or of the object, where it has one. */
export function present(value: unknown, schemaId: string | undefined, terminal: Terminal): string {
  if (Array.isArray(value)) return presentList(value, schemaId, terminal);
  if (typeof value !== "object" || value === null || isNumeric(value)) return `${valueText(value)}\n`;
  if (schemaId !== undefined && LOG_SCHEMAS.has(schemaId)) return presentLogStatus(value as LogStatus, terminal);
  if (schemaId === "TrafficEntry" && "request" in value) return presentEntry(value as TrafficEntry, terminal);
  return renderPairs(pairsOf(value, ""), terminal);
}

function presentList(rows: readonly unknown[], schemaId: string | undefined, terminal: Terminal): string {
  if (rows.length === 0) return terminal.isTty ? `${terminal.style("dim", "Nothing there")}\n` : "";
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

/** More than these are for programs; `--json` has them. */
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
