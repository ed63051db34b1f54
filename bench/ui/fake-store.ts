import type {
  TrafficEntry,
  TrafficFilter,
  TrafficSnapshot,
  TrafficSummary,
  TreeNode,
} from "@headworks/capture-contract";
import { compileQuery, parseQuery, type QueryRecord } from "@headworks/query-language";
import { generatedRow, seededRandom } from "./generated-traffic.ts";

export const SESSION_ID = "11111111-1111-4111-8111-111111111111";

/** Generated rows, oldest first, with the queries of a screen. */
export class FakeStore {
  rows: TrafficSnapshot[] = [];
  readonly notes = new Map<string, string>();
  #seq = 0;
  readonly #random: () => number;

  constructor(count: number, seed = 7) {
    this.#random = seededRandom(seed);
    const start = Date.now() - count * 350;
    for (let index = 0; index < count; index += 1) this.add(start + index * 350 + this.#random() * 300);
  }

  /** Adds one row that begins at the given time, optionally pending. */
  add(startMs: number, pending = false): TrafficSnapshot {
    this.#seq += 1;
    const row = generatedRow(this.#random, this.#seq, startMs, SESSION_ID);
    const added: TrafficSnapshot = pending
      ? {
          ...row,
          state: "pending",
          status_code: null,
          status_message: null,
          duration_ms: null,
          ttfb_ms: null,
          response_size: null,
          failure_code: null,
        }
      : row;
    this.rows.push(added);
    return row;
  }

  finish(row: TrafficSnapshot): void {
    const index = this.rows.findIndex((other) => other.id === row.id);
    if (index !== -1) this.rows[index] = row;
  }

  /** Rows of a filter, oldest first. Throws an error for an invalid query. */
  matching(query: Partial<TrafficFilter>): readonly TrafficSnapshot[] {
    const text = query.q ?? "";
    if (text.trim() === "") return this.rows;
    const parsed = parseQuery(text);
    if (!parsed.ok) throw new Error(parsed.error.message);
    const holds = compileQuery(parsed.query, { nowMs: Date.now() });
    return this.rows.filter((row) => holds(record(row)));
  }

  summary(query: Partial<TrafficFilter>): TrafficSummary {
    const rows = this.matching(query);
    const durations = rows.flatMap((row) => row.duration_ms ?? []).toSorted((a, b) => a - b);
    const quantile = (share: number): number | null => durations[Math.floor(durations.length * share)] ?? null;
    const byType: Record<string, number> = {};
    const byStatus: Record<string, number> = {};
    for (const row of rows) {
      byType[row.resource_type] = (byType[row.resource_type] ?? 0) + 1;
      const key = row.status_code === null ? row.state : `${Math.floor(row.status_code / 100)}xx`;
      byStatus[key] = (byStatus[key] ?? 0) + 1;
    }
    const first = rows[0]?.timestamp ?? null;
    const last = rows.at(-1)?.timestamp ?? null;
    return {
      total: this.rows.length,
      matched: rows.length,
      pending: rows.filter((row) => row.state === "pending").length,
      request_bytes: rows.reduce((sum, row) => sum + row.request_size, 0),
      response_bytes: rows.reduce((sum, row) => sum + (row.response_size ?? 0), 0),
      duration_p50_ms: quantile(0.5),
      duration_p95_ms: quantile(0.95),
      errors: rows.filter(isError).length,
      by_type: byType,
      by_status_class: byStatus,
      first_timestamp: first,
      last_timestamp: last,
      histogram: histogram(rows, first, last),
    };
  }

  tree(query: Partial<TrafficFilter>, host: string | undefined): readonly TreeNode[] {
    const nodes = new Map<
      string,
      { name: string; count: number; errors: number; response_bytes: number; last_timestamp: string }
    >();
    for (const row of this.matching(query)) {
      if (host !== undefined && row.host !== host) continue;
      const name = host === undefined ? row.host : (row.path.split("?")[0] ?? row.path);
      const node = nodes.get(name) ?? { name, count: 0, errors: 0, response_bytes: 0, last_timestamp: row.timestamp };
      node.count += 1;
      node.errors += isError(row) ? 1 : 0;
      node.response_bytes += row.response_size ?? 0;
      node.last_timestamp = row.timestamp;
      nodes.set(name, node);
    }
    return [...nodes.values()].toSorted((a, b) => b.count - a.count);
  }

  values(field: string, prefix: string): readonly { value: string; count: number }[] {
    const counts = new Map<string, number>();
    for (const row of this.rows) {
      const value = {
        host: row.host,
        method: row.method,
        status: String(row.status_code ?? ""),
        path: row.path.split("?")[0] ?? "",
        type: row.resource_type,
        scheme: row.scheme,
        mime: row.response_content_type ?? "",
      }[field];
      if (value === undefined || value === "" || !value.toLowerCase().includes(prefix.toLowerCase())) continue;
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return [...counts]
      .map(([value, count]) => ({ value, count }))
      .toSorted((a, b) => b.count - a.count)
      .slice(0, 20);
  }

  entry(id: string): TrafficEntry | undefined {
    const row = this.rows.find((other) => other.id === id);
    return row === undefined ? undefined : entryOf(row, this.notes.get(id) ?? null);
  }
}

function isError(row: TrafficSnapshot): boolean {
  return row.state === "failed" || (row.status_code ?? 0) >= 400;
}

function histogram(
  rows: readonly TrafficSnapshot[],
  first: string | null,
  last: string | null,
): TrafficSummary["histogram"] {
  if (first === null || last === null) return [];
  const start = Date.parse(first);
  const step = Math.max(1, (Date.parse(last) - start + 1) / 60);
  const buckets = Array.from({ length: 60 }, (_, index) => ({
    start: new Date(start + index * step).toISOString(),
    count: 0,
    errors: 0,
  }));
  for (const row of rows) {
    const bucket = buckets[Math.min(59, Math.floor((Date.parse(row.timestamp) - start) / step))];
    if (bucket === undefined) continue;
    bucket.count += 1;
    bucket.errors += isError(row) ? 1 : 0;
  }
  return buckets;
}

function record(row: TrafficSnapshot): QueryRecord {
  const [path = "", query = ""] = row.path.split("?");
  return {
    id: row.id,
    seq: row.seq,
    sessionId: row.session_id,
    method: row.method,
    scheme: row.scheme,
    host: row.host,
    port: 443,
    path,
    query,
    url: row.url,
    status: row.status_code ?? undefined,
    httpVersion: row.http_version ?? undefined,
    requestType: row.content_type ?? undefined,
    responseType: row.response_content_type ?? undefined,
    resourceType: row.resource_type,
    requestSizeBytes: row.request_size,
    responseSizeBytes: row.response_size ?? undefined,
    durationMs: row.duration_ms ?? undefined,
    ttfbMs: row.ttfb_ms ?? undefined,
    timestampMs: Date.parse(row.timestamp),
    clientAddress: row.client_addr ?? undefined,
    state: row.state,
    isPassthrough: row.is_passthrough,
    modified: row.modified,
    applied: row.applied,
    note: undefined,
    hasRequestBody: row.has_request_body,
    hasResponseBody: row.has_response_body,
    requestFields: () => [],
    responseFields: () => [],
    requestText: () => undefined,
    responseText: () => undefined,
  };
}

const REQUEST_BODY = JSON.stringify({
  order_id: "ord_5521",
  customer: 81,
  items: [
    { sku: "MUG-12", quantity: 2 },
    { sku: "TEE-M", quantity: 1 },
  ],
  payment: { method: "card", token: "tok_19f" },
});
const RESPONSE_BODY = JSON.stringify({
  type: "https://shop.example/problems/stock",
  title: "Not enough stock",
  status: 422,
  errors: [{ pointer: "/items/1/quantity", detail: "Only 0 left" }],
});

/** The text of a body, as from the body endpoint. */
export function bodyText(side: string): string {
  return side === "request" ? REQUEST_BODY : RESPONSE_BODY;
}

function entryOf(row: TrafficSnapshot, notes: string | null): TrafficEntry {
  const body = (text: string, present: boolean) => ({
    body: present ? text : null,
    body_encoding: present ? ("utf8" as const) : null,
    body_size: present ? text.length : 0,
    body_stored_size: present ? text.length : 0,
    body_state: present ? ("complete" as const) : ("none" as const),
    truncated: false,
  });
  const requestHeaders: [string, string][] = [
    ["Host", row.host],
    ["Accept", "application/json"],
    ["Authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiI4MSIsImV4cCI6MTg5MzQ1NjAwMH0."],
    ["Cookie", "sid=abc; theme=dark"],
    ["Content-Type", "application/json"],
  ];
  const responseHeaders: [string, string][] = [
    ["Content-Type", row.response_content_type ?? "application/octet-stream"],
    ["Set-Cookie", "sid=abc; HttpOnly; Secure"],
    ["Set-Cookie", "lang=en; Path=/"],
    ["X-Request-Id", `req_${row.seq.toString(16)}`],
  ];
  const { source, timings, has_request_body, has_response_body, failure_code } = row;
  return {
    id: row.id,
    seq: row.seq,
    session_id: row.session_id,
    state: row.state,
    request: {
      method: row.method,
      url: row.url,
      host: row.host,
      path: row.path,
      headers: Object.fromEntries(requestHeaders),
      headers_list: requestHeaders,
      ...body(REQUEST_BODY, has_request_body),
      content_type: "application/json",
      http_version: row.http_version,
    },
    response:
      row.status_code === null
        ? null
        : {
            status_code: row.status_code,
            status_message: row.status_message,
            headers: Object.fromEntries(responseHeaders),
            headers_list: responseHeaders,
            ...body(RESPONSE_BODY, has_response_body),
            content_type: row.response_content_type,
            duration_ms: row.duration_ms ?? 0,
            http_version: row.http_version,
          },
    timestamp: row.timestamp,
    modified: row.modified,
    trace: [],
    original_request: null,
    original_response: null,
    notes,
    request_size: row.request_size,
    response_size: row.response_size,
    is_passthrough: row.is_passthrough,
    script_intercepted: false,
    client_addr: row.client_addr,
    server_addr: row.server_addr,
    device_id: null,
    resource_type: row.resource_type,
    timings,
    failure:
      failure_code === null
        ? null
        : { stage: "connect", side: "upstream", code: failure_code, message: "connection refused by 203.0.113.7:443" },
    tls: {
      client_version: "TLSv1.3",
      client_cipher: "TLS_AES_128_GCM_SHA256",
      sni: row.host,
      upstream_version: "TLSv1.3",
      upstream_cipher: "TLS_AES_256_GCM_SHA384",
      upstream_verified: true,
      upstream_subject: `CN=${row.host}`,
      upstream_issuer: "CN=Example CA",
      upstream_valid_to: "2027-03-01T00:00:00.000Z",
      upstream_client_certificate: null,
    },
    source,
    connection_id: 4,
  };
}
