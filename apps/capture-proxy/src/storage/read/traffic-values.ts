import type { TreeNode } from "@headworks/capture-contract";
import type { Database, SqlValue } from "../database.ts";
import { storedFields } from "./stored-json.ts";
import type { SessionScope } from "./reader-messages.ts";

const PATH = "(CASE instr(path, '?') WHEN 0 THEN path ELSE substr(path, 1, instr(path, '?') - 1) END)";
const BARE_HOST = "(CASE WHEN instr(host, ':') > 0 THEN '[' || host || ']' ELSE host END)";
const HOST_AND_PORT = `(${BARE_HOST} || ':' || port)`;
const IS_DEFAULT_PORT = "((port = 443 AND scheme IN ('https', 'wss')) OR (port = 80 AND scheme IN ('http', 'ws')))";
const HOST = `(CASE WHEN ${IS_DEFAULT_PORT} THEN ${BARE_HOST} ELSE ${HOST_AND_PORT} END)`;
const MAX_NODES = 5000;
/** Completion looks at this many of the newest entries. */
const RECENT_ENTRIES = 100_000;
const RECENT_HEADS = 2000;

/**
 * Hosts (with their port where it is not the scheme's own) that a condition holds for, or with `ofHost` the paths of one
 * of them, which may be named with any port; most frequent first.
 */
export function treeOf(
  database: Database,
  ofHost: string | undefined,
  where: string,
  values: readonly SqlValue[],
): TreeNode[] {
  const name = ofHost === undefined ? HOST : PATH;
  const condition = ofHost === undefined ? where : `${where} AND ? IN (${HOST}, ${HOST_AND_PORT})`;
  const bound = ofHost === undefined ? values : [...values, asciiLower(ofHost)];
  return database
    .prepare(
      `SELECT ${name} AS name, COUNT(*) AS count, SUM(state = 2 OR COALESCE(status >= 400, FALSE)) AS errors,
         SUM(COALESCE(response_size, 0)) AS bytes, MAX(started_ms) AS last
       FROM entry e WHERE ${condition} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${MAX_NODES}`,
    )
    .all(...bound)
    .map((row) => ({
      name: String(row["name"]),
      count: Number(row["count"]),
      errors: Number(row["errors"]),
      response_bytes: Number(row["bytes"]),
      last_timestamp: new Date(Number(row["last"])).toISOString(),
    }));
}

const VALUE_COLUMNS: Readonly<Record<string, string>> = {
  host: "host",
  method: "method",
  status: "CAST(status AS TEXT)",
  path: PATH,
  type: "resource_type",
  scheme: "scheme",
  mime: "response_type",
  client: "rtrim(rtrim(client_addr, '0123456789'), ':')",
};

/** Values of a field that begin with a prefix, whatever the case, most frequent first. */
export function valuesOf(
  database: Database,
  scope: SessionScope,
  field: string,
  prefix: string,
  limit: number,
): { value: string; count: number }[] {
  if (field === "header") return headerNames(database, scope, prefix, limit);
  const column = VALUE_COLUMNS[field];
  if (column === undefined) return [];
  const folded = asciiLower(prefix);
  return database
    .prepare(
      `SELECT value, COUNT(*) AS count FROM (
         SELECT ${column} AS value FROM entry WHERE session = ? AND seq > ? ORDER BY seq DESC LIMIT ${RECENT_ENTRIES}
       ) WHERE value IS NOT NULL AND substr(lower(value), 1, length(?)) = ? GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?`,
    )
    .all(scope.number, scope.floorSeq, folded, folded, limit)
    .map((row) => ({ value: String(row["value"]), count: Number(row["count"]) }));
}

function headerNames(
  database: Database,
  scope: SessionScope,
  prefix: string,
  limit: number,
): { value: string; count: number }[] {
  const counts = new Map<string, number>();
  const wanted = prefix.toLowerCase();
  const rows = database
    .prepare(
      `SELECT h.request_fields, h.response_fields FROM entry e JOIN head h ON h.seq = e.seq
       WHERE e.session = ? AND e.seq > ? ORDER BY e.seq DESC LIMIT ${RECENT_HEADS}`,
    )
    .iterate(scope.number, scope.floorSeq);
  for (const row of rows) {
    for (const fields of [storedFields(row["request_fields"]), storedFields(row["response_fields"])]) {
      for (let index = 0; fields !== null && index < fields.length; index += 2) {
        const name = (fields[index] ?? "").toLowerCase();
        if (name.startsWith(wanted)) counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
  }
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((left, right) => right.count - left.count || (left.value < right.value ? -1 : 1))
    .slice(0, limit);
}

/** As SQL's `lower` does it. */
function asciiLower(text: string): string {
  return text.replaceAll(/[A-Z]/gu, (letter) => letter.toLowerCase());
}
