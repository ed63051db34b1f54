import type { RequestData, ResponseData, RuleTrace, TrafficEntry } from "@headworks/capture-contract";
import { durationText, sizeText, timeText } from "./present-values.ts";
import { renderPairs } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { visibleOctets, visibleText } from "./terminal.ts";

/** How much of a body a person gets to see; `weir traffic body` gives all of it. */
const SHOWN_BODY_CHARACTERS = 16_384;

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
    ["Answered by", entry.source === "upstream" ? null : entry.source],
    ["Note", entry.notes],
    ...entry.trace.map((step): [string, string] => ["Rule", stepText(step)]),
    ["Request was", requestWas(entry)],
    ["Answer was", originalResponseText(entry)],
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

const CLIENT_CERTIFICATE_TEXTS = {
  sent: " (client certificate sent)",
  none: " (asks for a client certificate; none is set)",
} as const;

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
  if (data.body_encoding === "base64") return remark(`${size} that are no text: ${more} -o FILE`);
  const shown = visibleText(data.body.slice(0, SHOWN_BODY_CHARACTERS).replaceAll("\r\n", "\n"), true);
  const isCut = data.body.length > SHOWN_BODY_CHARACTERS;
  const end = isCut
    ? remark(`cut; all of it: ${more}`)
    : data.body_state === "truncated"
      ? remark(`stored up to ${sizeText(data.body_stored_size)} of ${size}`)
      : "\n";
  return `\n${shown}${end}`;
}
