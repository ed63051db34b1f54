import type {
  LogStatus,
  RequestData,
  ResponseData,
  RuleTrace,
  ScriptTestResult,
  TestedRequest,
  TestedResponse,
  TrafficEntry,
} from "@headworks/capture-contract";
import { isNumeric } from "@headworks/json";
import { durationText, renderPairs, renderTable, sizeText, timeText, valueText, type WideColumn } from "./table.ts";
import { type Terminal, visibleOctets, visibleText } from "./terminal.ts";
import { TABLES } from "./tables.ts";

/** Limit of a body in the output; `weir traffic body` prints all of it. */
const SHOWN_BODY_CHARACTERS = 16_384;

const CLIENT_CERTIFICATE_TEXTS = {
  sent: " (client certificate sent)",
  none: " (client certificate requested; none configured)",
} as const;

const LOG_SCHEMAS: ReadonlySet<string> = new Set(["LogStatus", "LogRotated", "LogsChanged"]);

/** A response for people. `schemaId` is the `$id` of the rows of a list or of the object, if it has one. */
export function present(value: unknown, schemaId: string | undefined, terminal: Terminal): string {
  if (Array.isArray(value)) return presentList(value, schemaId, terminal);
  if (typeof value !== "object" || value === null || isNumeric(value)) return `${valueText(value)}\n`;
  if (schemaId !== undefined && LOG_SCHEMAS.has(schemaId)) return presentLogStatus(value as LogStatus, terminal);
  if (schemaId === "ScriptTestResult") return presentScriptTest(value as ScriptTestResult, terminal);
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

/** A rule's changes of the request line; `--json` has both messages whole. */
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

/** A dry run of a script: what it did, what it wrote, and the messages that it changed or made. */
function presentScriptTest(result: ScriptTestResult, terminal: Terminal): string {
  const { error, changes, console: lines, response, modified_request: request, modified_response: changed } = result;
  const pairs: [string, string][] = [
    ["Result", testText(result)],
    ["Error", error ?? ""],
    ["Changes", changes.join("\n")],
    ["Console", lines.join("\n")],
    ["Message", result.modified_payload ?? ""],
    ["Took", durationText(result.duration_ms)],
    ["Delay", result.delay_ms === 0 ? "" : durationText(result.delay_ms)],
  ];
  const facts = renderPairs(
    pairs.filter(([, value]) => value !== ""),
    terminal,
  );
  const messages = [
    ...(request === null ? [] : [testedText(`${request.method} ${request.url}`, request, terminal)]),
    ...[response, changed].flatMap((each) =>
      each === null ? [] : [testedText(`${each.status_code} ${each.status_message}`, each, terminal)],
    ),
  ];
  return [facts, ...messages].join("\n");
}

function testText({ error, modified, continue_: goesOn, response }: ScriptTestResult): string {
  if (error !== null) return "failed";
  if (response !== null) return `responds itself with ${response.status_code}`;
  if (!goesOn) return "stops the message";
  return modified ? "changes the message" : "changes nothing";
}

function testedText(
  line: string,
  { headers_list: list, body }: TestedRequest | TestedResponse,
  terminal: Terminal,
): string {
  const fields = list.map(
    ([name = "", value = ""]) => `${terminal.style("cyan", visibleText(name))}: ${visibleOctets(value)}`,
  );
  const head = [terminal.style("bold", visibleOctets(line.trim())), ...fields].join("\n");
  if (body === null || body === "") return `${head}\n`;
  return `${head}\n\n${visibleText(body.slice(0, SHOWN_BODY_CHARACTERS), true)}\n`;
}
