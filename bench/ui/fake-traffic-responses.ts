import type { ServerResponse } from "node:http";
import type { SORT_COLUMNS, TrafficSnapshot } from "@headworks/capture-contract";
import { ok, type Response } from "./fake-responses.ts";
import type { FakeState } from "./fake-state.ts";
import { bodyText, SESSION_ID } from "./fake-store.ts";

type SortName = (typeof SORT_COLUMNS)[number];
const SORT_KEYS: Readonly<Record<SortName, (row: TrafficSnapshot) => number | string>> = {
  seq: (row) => row.seq,
  timestamp: (row) => row.timestamp,
  method: (row) => row.method,
  status: (row) => row.status_code ?? 0,
  host: (row) => row.host,
  path: (row) => row.path,
  type: (row) => row.resource_type,
  size: (row) => row.response_size ?? -1,
  request_size: (row) => row.request_size,
  duration: (row) => row.duration_ms ?? -1,
  ttfb: (row) => row.ttfb_ms ?? -1,
};

/** Traffic calls; "sent" if the response is already being sent, undefined for unknown calls. */
export function trafficResponse(
  state: FakeState,
  path: string,
  query: URLSearchParams,
  method: string,
  json: () => Record<string, unknown>,
  response: ServerResponse,
): Response | "sent" | undefined {
  const { store } = state;
  const filter = { q: query.get("q") ?? "" };
  if (path === "/traffic/rows") {
    const key = SORT_KEYS[(query.get("sort") ?? "seq") as SortName];
    const sorted =
      query.get("sort") === null || query.get("sort") === "seq"
        ? store.matching(filter)
        : store.matching(filter).toSorted((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.seq - b.seq));
    const offset = Number(query.get("offset") ?? 0);
    const limit = Number(query.get("limit") ?? 100);
    const rows =
      query.get("order") === "asc"
        ? sorted.slice(offset, offset + limit)
        : sorted.slice(Math.max(0, sorted.length - offset - limit), Math.max(0, sorted.length - offset)).toReversed();
    return ok({ total: sorted.length, total_complete: true, rows });
  }
  if (path === "/traffic/summary") return ok(store.summary(filter));
  if (path === "/traffic/count") return ok({ count: store.matching(filter).length });
  if (path === "/traffic/tree") return ok(store.tree(filter, query.get("of_host") ?? undefined));
  if (path === "/traffic/values") return ok(store.values(query.get("field") ?? "", query.get("prefix") ?? ""));
  if (path === "/traffic/clear" && method === "POST") {
    const ids = new Set((json()["ids"] ?? query.get("ids")?.split(",")) as readonly string[] | undefined);
    store.rows = ids.size === 0 ? [] : store.rows.filter((row) => !ids.has(row.id));
    state.broadcast({
      type: "Traffic",
      data: ids.size === 0 ? { type: "Cleared" } : { type: "Deleted", data: [...ids] },
    });
    return { status: 204 };
  }
  if (path === "/export/har") {
    response.writeHead(200, {
      "content-type": "application/json",
      "x-total-count": String(store.matching(filter).length),
    });
    response.end(JSON.stringify({ log: { version: "1.2", creator: { name: "fake", version: "0" }, entries: [] } }));
    return "sent";
  }
  const snippet = /^\/export\/snippet\/([^/]+)$/u.exec(path);
  if (snippet) {
    return ok({
      format: query.get("format") ?? "curl",
      text: `curl --compressed 'https://example/${snippet[1] ?? ""}'`,
    });
  }
  if (path === "/traffic/import/har") {
    return ok({ session_id: SESSION_ID, imported_count: 12, skipped_count: 1, errors: ["entry 3: no URL"] });
  }
  const body = /^\/traffic\/([^/]+)\/body\/(request|response)$/u.exec(path);
  if (body) {
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(bodyText(body[2] ?? ""));
    return "sent";
  }
  const id = /^\/traffic\/([^/]+)$/u.exec(path)?.[1];
  if (id === undefined) return undefined;
  if (method === "PATCH") {
    const note = json()["notes"];
    if (typeof note === "string") store.notes.set(id, note);
    else store.notes.delete(id);
    return ok({ id, notes: note });
  }
  if (method === "DELETE") {
    store.rows = store.rows.filter((row) => row.id !== id);
    state.broadcast({ type: "Traffic", data: { type: "Deleted", data: [id] } });
    return { status: 204 };
  }
  const entry = store.entry(id);
  return entry === undefined ? undefined : ok(entry);
}
