import type { SubscribeFilter, TrafficSnapshot } from "@headworks/capture-contract";
import { allOf, compileQuery, formatQuery, fromParameters, needs, parseQuery } from "@headworks/query-language";
import type { Query, QueryRecord } from "@headworks/query-language";

/** A compiled subscription filter, or the sentence that tells the client why there is none. */
export type EventFilter =
  | { readonly kind: "all" }
  | {
      readonly kind: "some";
      readonly matches: (row: TrafficSnapshot) => boolean;
      /** The same in the query language, for the store. */
      readonly query: string;
    }
  | { readonly kind: "refused"; readonly message: string };

/**
 * Compiles what a client subscribes to. Live rows carry no header fields, bodies, notes or messages of streams, so a
 * filter that needs those is refused; `search` looks at the URL.
 */
export function compileEventFilter(filter: SubscribeFilter | null | undefined, nowMs: number): EventFilter {
  const terms: Query[] = [];
  const parameters = fromParameters({
    ...(given(filter?.method) && { method: filter?.method ?? undefined }),
    ...(given(filter?.status_code) && { status_code: filter?.status_code ?? undefined }),
  });
  if (!parameters.ok) return { kind: "refused", message: parameters.error.message };
  terms.push(parameters.query);
  if (given(filter?.search)) {
    const value = { kind: "literal", text: filter?.search ?? "" } as const;
    terms.push({ kind: "field", field: "url", key: null, test: { kind: "text", mode: "matches", values: [value] } });
  }
  if (given(filter?.q)) {
    const parsed = parseQuery(filter?.q ?? "");
    if (!parsed.ok) return { kind: "refused", message: parsed.error.message };
    terms.push(parsed.query);
  }
  const query = allOf(terms);
  if (query.kind === "all") return { kind: "all" };
  const missing = missingMaterial(query);
  if (missing !== undefined) {
    return { kind: "refused", message: `Live rows carry no ${missing}; this filter cannot be applied to them` };
  }
  const text = formatQuery(query);
  // Written out, parts that are each within their limits may exceed that of one query.
  const whole = parseQuery(text);
  if (!whole.ok) return { kind: "refused", message: whole.error.message };
  const predicate = compileQuery(query, { nowMs });
  return { kind: "some", matches: (row) => predicate(recordOf(row)), query: text };
}

function given(text: string | null | undefined): boolean {
  return text !== undefined && text !== null && text.trim() !== "";
}

function missingMaterial(query: Query): string | undefined {
  const { headFields, requestBody, responseBody, streams } = needs(query);
  // Messages may come after the row that was left out for want of them, and are stored only later.
  if (streams) return "messages and no outcome of streams";
  if (requestBody || responseBody) return "bodies";
  if (headFields) return "header fields";
  return usesNotes(query) ? "notes" : undefined;
}

function usesNotes(query: Query): boolean {
  switch (query.kind) {
    case "and":
    case "or":
      return query.terms.some(usesNotes);
    case "not":
      return usesNotes(query.term);
    case "preset":
      return usesNotes(query.query);
    case "field":
      return query.field === "note";
    default:
      return false;
  }
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, ws: 80, https: 443, wss: 443 };
const NO_FIELDS: readonly string[] = [];

function recordOf(row: TrafficSnapshot): QueryRecord {
  const mark = row.path.indexOf("?");
  return {
    id: row.id,
    seq: row.seq,
    sessionId: row.session_id,
    method: row.method,
    scheme: row.scheme,
    host: row.host,
    port: portOf(row),
    path: mark === -1 ? row.path : row.path.slice(0, mark),
    query: mark === -1 ? "" : row.path.slice(mark + 1),
    url: row.url,
    status: row.status_code ?? undefined,
    httpVersion: row.http_version ?? undefined,
    requestType: essence(row.content_type),
    responseType: essence(row.response_content_type),
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
    requestFields: () => NO_FIELDS,
    responseFields: () => NO_FIELDS,
    requestText: () => undefined,
    responseText: () => undefined,
  };
}

function essence(type: string | null): string | undefined {
  return type?.split(";", 1)[0]?.trim().toLowerCase();
}

function portOf({ url, scheme }: TrafficSnapshot): number {
  const start = url.indexOf("://");
  const end = url.indexOf("/", start + 3);
  const authority = url.slice(start + 3, end === -1 ? undefined : end);
  const port = /:([0-9]+)$/.exec(authority)?.[1];
  return port === undefined ? (DEFAULT_PORTS[scheme] ?? 0) : Number(port);
}
