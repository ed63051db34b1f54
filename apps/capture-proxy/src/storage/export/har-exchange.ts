import type { HarBody, HarExchange, HarExchangeTimings } from "@headworks/har";
import type { Failure, TlsInfo } from "@headworks/capture-contract";
import { fieldValue } from "@headworks/http1";
import type { SqlRow } from "../database.ts";
import { entryState, FLAG_PASSTHROUGH } from "../read/entry-facts.ts";
import { BODY_STATES } from "../write/entry-record.ts";
import { urlOfRow } from "../read/entry-shapes.ts";
import { parsed, storedFields, storedTls } from "../read/stored-json.ts";
import { shownEffect } from "../read/rule-effects.ts";
import type { StoredBodies } from "../read/stored-bodies.ts";

/** `_weir.more`: facts of a stored entry that HAR cannot express. */
export interface HarExtras {
  readonly state: string;
  readonly source: string;
  readonly flags: number;
  /** `tcp` for tunnels, whose HAR URL uses a known scheme. */
  readonly scheme: string;
  /** Where the URL does not determine it. */
  readonly path: string;
  readonly port: number;
  readonly durationUs: number | null;
  readonly ttfbUs: number | null;
  readonly failure: Failure | null;
  readonly tls: TlsInfo | null;
  readonly requestTrailers: string[] | null;
  readonly responseTrailers: string[] | null;
  readonly requestBody: HarBodyFacts;
  readonly responseBody: HarBodyFacts;
}

/** Storage state of a body. */
export interface HarBodyFacts {
  readonly size: number;
  readonly state: string;
}

/** Converts a stored entry to an exchange of the HAR package; bodies are truncated at `maxBodyBytes`. */
export function harExchangeOf(row: SqlRow, sessionId: string, bodies: StoredBodies, maxBodyBytes: number): HarExchange {
  const failure = parsed<Failure>(row["failure"]);
  return {
    startedMs: Number(row["started_ms"]),
    request: {
      method: String(row["method"]),
      url: harUrl(row),
      httpVersion: textOf(row["request_version"]) ?? "HTTP/1.1",
      ...fieldsOf(row, "request"),
      body: harBody(row, "request", bodies, maxBodyBytes),
      ...missingBody(row, "request"),
    },
    response:
      row["response_fields"] === null
        ? undefined
        : {
            status: Number(row["status"]),
            reason: textOf(row["status_message"]) ?? "",
            httpVersion: textOf(row["response_version"]) ?? "HTTP/1.1",
            ...fieldsOf(row, "response"),
            body: harBody(row, "response", bodies, maxBodyBytes),
            ...missingBody(row, "response"),
          },
    timings: harTimings(row),
    serverAddress: textOf(row["server_addr"]),
    clientAddress: textOf(row["client_addr"]),
    connectionId: row["connection_id"] === null ? undefined : String(row["connection_id"]),
    note: textOf(row["note"]),
    webSocketMessages: undefined,
    weir: {
      id: String(row["id"]),
      session: sessionId,
      isPassthrough: (Number(row["flags"]) & FLAG_PASSTHROUGH) !== 0,
      failure: failure?.message,
      more: { ...extrasOf(row, failure), ...effectExtras(row) },
    },
  };
}

/** Replaces schemes unknown to HAR readers: `tcp://host:22/` becomes `https://host:22/`. */
function harUrl(row: SqlRow): string {
  if (row["scheme"] !== "tcp") return urlOfRow(row);
  // A CONNECT rejected for its port has none.
  const hasPort = Number(row["port"]) > 0;
  return urlOfRow({ ...row, scheme: "https", ...(!hasPort && { method: "", port: 443 }) });
}

function fieldsOf(row: SqlRow, side: "request" | "response"): Pick<HarExchange["request"], "fields" | "mediaType"> {
  const fields = storedFields(row[`${side}_fields`]) ?? [];
  const mediaType = textOf(row[`${side}_type`]);
  const isSaid = mediaType === undefined || fieldValue(fields, "content-type") !== undefined;
  return isSaid ? { fields } : { fields, mediaType };
}

function extrasOf(row: SqlRow, failure: Failure | null): HarExtras {
  return {
    state: entryState(row),
    source: String(row["source"]),
    flags: Number(row["flags"]),
    scheme: String(row["scheme"]),
    path: String(row["path"]),
    port: Number(row["port"]),
    durationUs: numberOf(row["duration_us"]),
    ttfbUs: numberOf(row["ttfb_us"]),
    failure,
    tls: storedTls(row["tls"]),
    requestTrailers: parsed<string[]>(row["request_trailers"]),
    responseTrailers: parsed<string[]>(row["response_trailers"]),
    requestBody: bodyFacts(row, "request"),
    responseBody: bodyFacts(row, "response"),
  };
}

const NO_BODY = { body: null, body_encoding: null, body_size: 0, body_stored_size: 0, body_state: "none" } as const;

/** Rule effects as entries show them; an unreplaced body is the one in the HAR. */
function effectExtras(row: SqlRow): Partial<ReturnType<typeof shownEffect>> {
  return row["trace"] === null || row["trace"] === undefined ? {} : shownEffect(row, NO_BODY, NO_BODY, 0);
}

function bodyFacts(row: SqlRow, side: "request" | "response"): HarBodyFacts {
  return {
    size: Number(row[`${side}_body_size`]),
    state: BODY_STATES[Number(row[`${side}_body_state`]) as 0 | 1 | 2 | 3],
  };
}

function missingBody(row: SqlRow, side: "request" | "response"): { readonly missingBodyBytes?: number } {
  const { size, state } = bodyFacts(row, side);
  return size > 0 && state === "not_stored" ? { missingBodyBytes: size } : {};
}

function harBody(
  row: SqlRow,
  side: "request" | "response",
  bodies: StoredBodies,
  maxBodyBytes: number,
): HarBody | undefined {
  const { size, state } = bodyFacts(row, side);
  if (size === 0 || state === "not_stored") return undefined;
  const stored = Math.min(Number(row[`${side}_body_stored`]), maxBodyBytes);
  const bytes = bodies.read(Number(row["seq"]), side, stored) ?? new Uint8Array(0);
  return { bytes, isEncoded: true, isTruncated: bytes.length < size, transferredBytes: size };
}

function harTimings(row: SqlRow): HarExchangeTimings {
  const stages = parsed<(number | null)[]>(row["timings"]) ?? [];
  const stage = (place: number): number | undefined => stages[place] ?? undefined;
  return {
    blocked: stage(0),
    dns: stage(1),
    connect: stage(2),
    tls: stage(3),
    send: stage(4),
    wait: stage(5),
    receive: stage(6),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function numberOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}
