import { randomUUID } from "node:crypto";
import type { Failure } from "@headworks/capture-contract";
import { ENTRY_STATES, FLAG_MODIFIED, FLAG_PASSTHROUGH, FLAG_SCRIPTED, flagsOfKinds } from "../write/entry-record.ts";
import { finalState } from "../read/stored-entry.ts";
import { checkedFailure, checkedTls } from "./checked-members.ts";
import type { CheckedMembers } from "./checked-members.ts";
import { importedEffect } from "./imported-effect.ts";
import { clientOf } from "./imported-entry.ts";
import type { ImportedEntry, ImportedTarget } from "./imported-entry.ts";
import { importedMessage, methodOf, statusOf, urlTarget } from "./imported-message.ts";
import type { FoundBody } from "./imported-message.ts";
import type { MessageMember } from "./large-members.ts";

/** Finds bodies that were read before their entry. */
export type FindBody = (member: MessageMember, entryId: string) => FoundBody | undefined;

const SCHEMES = ["http", "https", "ws", "wss", "tcp"] as const;
const SOURCES = ["upstream", "slice", "import"] as const;
const NO_END: Failure = {
  stage: "receive",
  side: "internal",
  code: "SHUTDOWN",
  message: "Was still running when the session was exported",
};

/**
 * An entry of a native document. Only `timestamp`, `request.method` and `request.url` are required, for documents of
 * other programs; present members must have the right type. Throws {@link MemberError}.
 */
export function importedNativeEntry(entry: CheckedMembers, findBody: FindBody): ImportedEntry {
  const request = entry.object("request") ?? entry.refuse("request", "is missing");
  const response = entry.object("response");
  const timings = entry.object("timings");
  const id = entry.optionalText("id", 64) ?? "";
  const state = entry.oneOf("state", ENTRY_STATES) ?? (response === null ? "failed" : "complete");
  const startedMs = Date.parse(entry.text("timestamp"));
  if (Number.isNaN(startedMs)) return entry.refuse("timestamp", "is not a time");
  const method = methodOf(request);
  const failure = checkedFailure(entry.object("failure"));
  const durationMs = entry.milliseconds("duration_ms") ?? response?.milliseconds("duration_ms") ?? null;
  const found = (member: MessageMember): FoundBody | undefined => findBody(member, id);
  const effect = importedEffect(entry, found);
  const stage = (name: string): number | null => timings?.milliseconds(name) ?? null;
  return {
    id: id === "" ? randomUUID() : id,
    state: ENTRY_STATES.indexOf(finalState(state)),
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
      (entry.boolean("script_intercepted") ? FLAG_SCRIPTED : 0) |
      flagsOfKinds(effect?.record.trace ?? []),
    source: entry.oneOf("source", SOURCES) ?? "import",
    ...clientOf(entry.optionalText("client_addr", 255), entry.integer("connection_id")),
    serverAddress: entry.optionalText("server_addr", 255),
    timings: ["blocked", "dns", "connect", "tls", "send", "wait", "receive"].map(stage),
    failure: failure ?? (state === "pending" ? NO_END : null),
    tls: checkedTls(entry.object("tls")),
    note: entry.optionalText("notes"),
    effect,
    request: importedMessage(request, found("request")),
    response: response === null ? undefined : importedMessage(response, found("response")),
  };
}

/** The URL cannot express the target `*`, nor a port without a scheme default. */
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

function microseconds(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 1000);
}
