// Tested by session-import.test.ts
import { randomUUID } from "node:crypto";
import type { Failure } from "@headworks/capture-contract";
import { BODY_STATES, ENTRY_STATES, FLAG_MODIFIED, FLAG_PASSTHROUGH, FLAG_SCRIPTED } from "./entry-facts.ts";
import { CheckedMembers, checkedFailure, checkedTls, MemberError } from "./checked-members.ts";
import { bodyStateCode, targetOfUrl } from "./imported-entry.ts";
import type { ImportedEntry, ImportedMessage, ImportedTarget, StoredFile } from "./imported-entry.ts";

/** The bodies of an entry that stood in parts before the entries. */
export type FindBody = (entryId: string, side: "request" | "response") => StoredFile | undefined;

const SCHEMES = ["http", "https", "ws", "wss", "tcp"] as const;
const SOURCES = ["upstream", "slice", "import"] as const;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u;
/** One character per byte, without controls but for the tab. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/u;
const NO_END: Failure = {
  stage: "receive",
  side: "internal",
  code: "SHUTDOWN",
  message: "Was still running when the session was exported",
};

/**
 * An entry of a native session document. Only `timestamp`, `request.method` and `request.url` must be there, so that
 * documents of other programs with the same format can be read; what is there must have its right type. Throws
 * {@link MemberError}.
 */
export function importedNativeEntry(value: unknown, findBody: FindBody): ImportedEntry {
  const entry = new CheckedMembers(value, "");
  const request = entry.object("request") ?? entry.refuse("request", "is missing");
  const response = entry.object("response");
  const timings = entry.object("timings");
  const id = entry.optionalText("id", 64) ?? "";
  const state = entry.oneOf("state", ENTRY_STATES) ?? (response === null ? "failed" : "complete");
  const startedMs = Date.parse(entry.text("timestamp"));
  if (Number.isNaN(startedMs)) return entry.refuse("timestamp", "is not a time");
  const method = request.text("method");
  if (!TOKEN.test(method)) return request.refuse("method", "is not a method");
  const failure = checkedFailure(entry.object("failure"));
  const durationMs = entry.milliseconds("duration_ms") ?? response?.milliseconds("duration_ms") ?? null;
  const stage = (name: string): number | null => timings?.milliseconds(name) ?? null;
  return {
    id: id === "" ? randomUUID() : id,
    state: ENTRY_STATES.indexOf(state === "pending" ? "failed" : state),
    startedMs,
    method,
    target: targetOf(entry, request),
    status: response === null ? null : statusOf(response),
    statusMessage: response?.optionalText("status_message") ?? null,
    durationUs: microseconds(durationMs),
    ttfbUs: microseconds(entry.milliseconds("ttfb_ms")),
    requestVersion: request.optionalText("http_version", 32),
    responseVersion: response?.optionalText("http_version", 32) ?? null,
    flags:
      (entry.boolean("modified") ? FLAG_MODIFIED : 0) |
      (entry.boolean("is_passthrough") ? FLAG_PASSTHROUGH : 0) |
      (entry.boolean("script_intercepted") ? FLAG_SCRIPTED : 0),
    source: entry.oneOf("source", SOURCES) ?? "import",
    clientAddress: entry.optionalText("client_addr", 255),
    serverAddress: entry.optionalText("server_addr", 255),
    connection: entry.whole("connection_id"),
    timings: ["blocked", "dns", "connect", "tls", "send", "wait", "receive"].map(stage),
    failure: failure ?? (state === "pending" ? NO_END : null),
    tls: checkedTls(entry.object("tls")),
    note: entry.optionalText("notes"),
    request: message(request, findBody(id, "request")),
    response: response === null ? undefined : message(response, findBody(id, "response")),
  };
}

function statusOf(response: CheckedMembers): number {
  const status = response.whole("status_code") ?? response.refuse("status_code", "is missing");
  return status <= 999 ? status : response.refuse("status_code", "is not a status");
}

/** The URL does not tell a port that no scheme has, nor the target `*`. */
function targetOf(entry: CheckedMembers, request: CheckedMembers): ImportedTarget {
  const scheme = entry.oneOf("scheme", SCHEMES);
  const port = entry.raw("port") === -1 ? -1 : entry.whole("port");
  const path = request.optionalText("path");
  if (path !== null && !/^[\x21-\x7e]*$/u.test(path)) return request.refuse("path", "is not a request target");
  if (port !== null && port > 65_535) return entry.refuse("port", "is not a port");
  const target = urlTarget(request);
  return {
    scheme: scheme ?? target.scheme,
    host: target.host,
    port: port ?? target.port,
    path: path === null || path === "" ? target.path : path,
  };
}

function urlTarget(request: CheckedMembers): ImportedTarget {
  try {
    return targetOfUrl(request.text("url"));
  } catch (error) {
    if (error instanceof MemberError) throw error;
    return request.refuse("url", "is not a URL that can be captured");
  }
}

function message(members: CheckedMembers, file: StoredFile | undefined): ImportedMessage {
  const body = file ?? bodyOf(members);
  const state = members.oneOf("body_state", BODY_STATES);
  return {
    fields: fieldsOf(members, "headers_list") ?? joinedFields(members),
    trailers: fieldsOf(members, "trailers_list"),
    body,
    bodySize: members.whole("body_size") ?? 0,
    bodyState: bodyStateCode(state),
  };
}

function fieldsOf(members: CheckedMembers, name: string): string[] | null {
  const pairs = members.array(name);
  return (
    pairs &&
    pairs.flatMap((pair, index): string[] => {
      if (!Array.isArray(pair) || pair.length !== 2) {
        return members.refuse(`${name}[${index}]`, "is not a name and a value");
      }
      const [field, value] = pair as readonly unknown[];
      if (typeof field !== "string" || !TOKEN.test(field)) {
        return members.refuse(`${name}[${index}]`, "has no field name");
      }
      if (typeof value !== "string" || !FIELD_VALUE.test(value)) {
        return members.refuse(`${name}[${index}]`, "has a value that no field can have");
      }
      return [field, value];
    })
  );
}

/** Documents without `headers_list` have their fields in an object only. */
function joinedFields(members: CheckedMembers): string[] {
  const headers = members.raw("headers");
  if (headers === null) return [];
  if (typeof headers !== "object" || Array.isArray(headers)) return members.refuse("headers", "is not an object");
  return Object.entries(headers).flatMap(([field, value]: [string, unknown]) => {
    if (!TOKEN.test(field) || typeof value !== "string") return members.refuse("headers", "holds what is no field");
    return value.split("\n").flatMap((line) => {
      return FIELD_VALUE.test(line) ? [field, line] : members.refuse("headers", "holds a value that no field can have");
    });
  });
}

function bodyOf(members: CheckedMembers): Uint8Array | undefined {
  const text = members.optionalText("body");
  if (text === null) return undefined;
  const encoding = members.oneOf("body_encoding", ["utf8", "base64"]);
  const isBase64 = encoding === "base64" || (encoding === null && text.startsWith("base64:"));
  if (!isBase64) return Buffer.from(text, "utf8");
  return base64Bytes(text.startsWith("base64:") ? text.slice(7) : text) ?? members.refuse("body", "is not base64");
}

/** Strict where Buffer is not: it skips what is no base64 and stops at padding. */
export function base64Bytes(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === (text.length / 4) * 3 - padding ? bytes : undefined;
}

function microseconds(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 1000);
}
