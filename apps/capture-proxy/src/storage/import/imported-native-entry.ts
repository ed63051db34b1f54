import { randomUUID } from "node:crypto";
import type { Failure, RuleTrace } from "@headworks/capture-contract";
import { LargeText } from "@headworks/har";
import type { HttpVersion, RequestMessage, ResponseMessage, Scheme } from "#exchange/exchange.ts";
import { MAX_EMBEDDED_BODY_BYTES } from "../export/traffic-export.ts";
import { finalState } from "../read/stored-entry.ts";
import {
  BODY_STATES,
  ENTRY_STATES,
  FLAG_MODIFIED,
  FLAG_PASSTHROUGH,
  FLAG_SCRIPTED,
  flagsOfKinds,
  RULE_KINDS,
} from "../write/entry-record.ts";
import { checkedFailure, CheckedMembers, checkedTls, MemberError } from "./checked-members.ts";
import { bodyStateCode, clientOf, cutNote, keptBytes, targetOfUrl, writtenToFile } from "./imported-entry.ts";
import type { FileTarget, ImportedEffect, ImportedEntry, ImportedMessage, ImportedTarget } from "./imported-entry.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u;
/** Bytes as characters, without controls except tab. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/u;

/** Throws {@link MemberError}, like all functions here, if it is missing or invalid. */
function methodOf(request: CheckedMembers): string {
  const method = request.text("method");
  return TOKEN.test(method) ? method : request.refuse("method", "is not a method");
}

function statusOf(response: CheckedMembers): number {
  const status = response.whole("status_code") ?? response.refuse("status_code", "is missing");
  return status <= 999 ? status : response.refuse("status_code", "is not a status");
}

function urlTarget(request: CheckedMembers): ImportedTarget {
  try {
    return targetOfUrl(request.text("url"));
  } catch (error) {
    if (error instanceof MemberError) throw error;
    return request.refuse("url", "is not a URL that can be captured");
  }
}

/** A body that was read before its entry. */
export interface FoundBody {
  readonly body: ImportedMessage["body"];
  /** Total size; `body` is shorter if truncated. */
  readonly totalBytes: number;
}

/** One side of an entry; large bodies are found already. */
function importedMessage(members: CheckedMembers, found: FoundBody | undefined): ImportedMessage {
  const state = members.oneOf("body_state", BODY_STATES) ?? (members.boolean("truncated") ? "truncated" : null);
  const isCut = found !== undefined && keptBytes(found.body) < found.totalBytes;
  return {
    fields: fieldsOf(members, "headers_list") ?? joinedFields(members),
    trailers: fieldsOf(members, "trailers_list"),
    contentType: members.optionalText("content_type"),
    body: found === undefined ? bodyOf(members) : found.body,
    bodySize: Math.max(members.whole("body_size") ?? 0, found?.totalBytes ?? 0),
    bodyState: bodyStateCode(isCut ? "truncated" : state),
  };
}

function fieldsOf(members: CheckedMembers, name: string): string[] | null {
  const pairs = members.array(name);
  return (
    pairs &&
    pairs.flatMap((pair, index): string[] => {
      if (!Array.isArray(pair) || pair.length !== 2) {
        return members.refuse(`${name}[${index}]`, "is not a pair of name and value");
      }
      const [field, value] = pair as readonly unknown[];
      if (typeof field !== "string" || !TOKEN.test(field)) {
        return members.refuse(`${name}[${index}]`, "has an invalid field name");
      }
      if (typeof value !== "string" || !FIELD_VALUE.test(value)) {
        return members.refuse(`${name}[${index}]`, "has an invalid value");
      }
      return [field, value];
    })
  );
}

/** For documents without `headers_list`. */
function joinedFields(members: CheckedMembers): string[] {
  const headers = members.raw("headers");
  if (headers === null) return [];
  if (typeof headers !== "object" || Array.isArray(headers)) return members.refuse("headers", "is not an object");
  return Object.entries(headers).flatMap(([field, value]: [string, unknown]) => {
    if (!TOKEN.test(field) || typeof value !== "string") return members.refuse("headers", "contains an invalid field");
    return value.split("\n").flatMap((line) => {
      return FIELD_VALUE.test(line) ? [field, line] : members.refuse("headers", "contains an invalid value");
    });
  });
}

/** Undefined without a body. */
function bodyOf(members: CheckedMembers): Uint8Array | undefined {
  const text = members.optionalText("body");
  if (text === null) return undefined;
  if (!isBase64Body(members, text)) return Buffer.from(text, "utf8");
  return base64Bytes(withoutPrefix(text)) ?? members.refuse("body", "is not base64");
}

/** Whether a body that starts with this text is base64. */
function isBase64Body(members: CheckedMembers, text: string): boolean {
  const encoding = members.oneOf("body_encoding", ["utf8", "base64"]);
  return encoding === "base64" || (encoding === null && text.startsWith(BASE64_PREFIX));
}

const BASE64_PREFIX = "base64:";

/** Removes the base64 prefix. */
function withoutPrefix(text: string): string {
  return text.startsWith(BASE64_PREFIX) ? text.slice(BASE64_PREFIX.length) : text;
}

/** Strict: Buffer skips invalid characters and stops at padding. */
export function base64Bytes(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === (text.length / 4) * 3 - padding ? bytes : undefined;
}

const MAX_STEPS = 1000;
const VERSIONS: readonly HttpVersion[] = ["HTTP/1.0", "HTTP/1.1", "HTTP/2", "SOCKS5"];

/** Reads `trace`, `original_request` and `original_response`. Throws `MemberError`. */
export function importedEffect(
  entry: CheckedMembers,
  findBody: (member: "original_request" | "original_response") => FoundBody | undefined,
): ImportedEffect | undefined {
  const trace = (entry.array("trace") ?? []).slice(0, MAX_STEPS).map(stepOf);
  const [request, response] = [entry.object("original_request"), entry.object("original_response")];
  if (trace.length === 0 && request === null && response === null) return undefined;
  const sent = request && importedMessage(request, findBody("original_request"));
  const received = response && importedMessage(response, findBody("original_response"));
  const bodies = [sent, received].map((message) => bytesOf(message));
  return {
    record: {
      trace,
      request: request && sent && requestOf(request, sent),
      response: response && received && responseOf(response, received),
      requestBytes: bodies[0]?.length ?? -1,
      responseBytes: bodies[1]?.length ?? -1,
    },
    bodies: bodies.flatMap((bytes) => bytes ?? []),
  };
}

function stepOf(value: unknown, index: number): RuleTrace {
  const step = new CheckedMembers(value, `trace[${index}]`);
  return {
    kind: step.oneOf("kind", RULE_KINDS) ?? step.refuse("kind", "is missing"),
    rule_id: step.optionalText("rule_id", 255) ?? "",
    rule_name: step.optionalText("rule_name", 1024) ?? "",
    phase: step.oneOf("phase", ["request", "response"]) ?? "request",
    changes: (step.array("changes") ?? []).filter((change) => typeof change === "string").slice(0, MAX_STEPS),
  };
}

function requestOf(members: CheckedMembers, { fields, trailers }: ImportedMessage): RequestMessage {
  const { scheme, host, port, path } = urlTarget(members);
  return {
    method: methodOf(members),
    scheme: scheme as Scheme,
    host,
    port,
    path,
    version: members.oneOf("http_version", VERSIONS) ?? "HTTP/1.1",
    fields: [...fields],
    trailers: trailers === null ? undefined : [...trailers],
  };
}

function responseOf(members: CheckedMembers, { fields, trailers }: ImportedMessage): ResponseMessage {
  return {
    status: statusOf(members),
    reason: members.optionalText("status_message", 1024) ?? "",
    version: members.oneOf("http_version", VERSIONS) ?? "HTTP/1.1",
    fields: [...fields],
    trailers: trailers === null ? undefined : [...trailers],
  };
}

function bytesOf(message: ImportedMessage | null): Uint8Array | undefined {
  return message?.body instanceof Uint8Array ? message.body : undefined;
}

/** Finds bodies that were read before their entry. */
type FindBody = (member: MessageMember, entryId: string) => FoundBody | undefined;

const SCHEMES = ["http", "https", "ws", "wss", "tcp"] as const;
const SOURCES = ["upstream", "slice", "import"] as const;

const NO_END: Failure = {
  stage: "receive",
  side: "internal",
  code: "SHUTDOWN",
  message: "Still in progress when the session was exported",
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

/** Members of a native entry that have a body. */
const MESSAGE_MEMBERS = ["request", "response", "original_request", "original_response"] as const;
type MessageMember = (typeof MESSAGE_MEMBERS)[number];

/** Large bodies of an entry, with notes about them. */
interface LargeMembers {
  readonly found: ReadonlyMap<MessageMember, FoundBody>;
  readonly notes: readonly string[];
}

/**
 * Writes the large bodies of an entry to files. Bodies above the embedding limit of Weir's exports come from other
 * programs and are truncated like captured ones. Throws {@link MemberError}.
 */
export async function largeMembersOf(entry: CheckedMembers, target: FileTarget): Promise<LargeMembers> {
  const found = new Map<MessageMember, FoundBody>();
  const notes: string[] = [];
  for (const name of MESSAGE_MEMBERS) {
    const members = entry.object(name);
    const text = members?.raw("body");
    if (members === null || !(text instanceof LargeText)) continue;
    const pieces = (): Iterable<Uint8Array> => bodyPieces(members, text);
    const isOwn = !exceeds(pieces(), MAX_EMBEDDED_BODY_BYTES);
    const limited = isOwn ? { ...target, maxBodyBytes: MAX_EMBEDDED_BODY_BYTES } : target;
    const isOriginal = name.startsWith("original");
    const body = isOriginal ? heldInMemory(pieces(), limited.maxBodyBytes) : await writtenToFile(pieces(), limited);
    found.set(name, body);
    notes.push(...cutNote(name.replace("_", " "), body));
  }
  return { found, notes };
}

/** Replaced bodies are stored with their entry, not in files. */
function heldInMemory(pieces: Iterable<Uint8Array>, maxBytes: number): FoundBody & { readonly body: Uint8Array } {
  const kept: Uint8Array[] = [];
  let [keptBytes, totalBytes] = [0, 0];
  for (const piece of pieces) {
    totalBytes += piece.length;
    const part = piece.subarray(0, maxBytes - keptBytes);
    keptBytes += part.length;
    if (part.length > 0) kept.push(part);
  }
  return { body: Buffer.concat(kept), totalBytes };
}

function exceeds(pieces: Iterable<Uint8Array>, bytes: number): boolean {
  let seenBytes = 0;
  for (const piece of pieces) {
    seenBytes += piece.length;
    if (seenBytes > bytes) return true;
  }
  return false;
}

function* bodyPieces(members: CheckedMembers, text: LargeText): Generator<Uint8Array> {
  const [beginning = ""] = textsOf(members, "body", text);
  const texts = textsOf(members, "body", text);
  if (isBase64Body(members, beginning)) {
    yield* base64Pieces(members, "body", texts, beginning.length - withoutPrefix(beginning).length);
    return;
  }
  for (const part of texts) yield Buffer.from(part, "utf8");
}

/** Decodes a long base64 text as strictly as a short one. Throws {@link MemberError}. */
export function largeBase64(members: CheckedMembers, name: string, text: LargeText): Iterable<Uint8Array> {
  return base64Pieces(members, name, textsOf(members, name, text), 0);
}

function* base64Pieces(
  members: CheckedMembers,
  name: string,
  texts: Iterable<string>,
  prefixLength: number,
): Generator<Uint8Array> {
  let open = "";
  let unread = prefixLength;
  let isFinished = false;
  for (const text of texts) {
    const known = open + text.slice(unread);
    unread = 0;
    const whole = known.slice(0, known.length - (known.length % 4));
    open = known.slice(whole.length);
    if (whole === "") continue;
    if (isFinished) members.refuse(name, "is not base64");
    yield base64Bytes(whole) ?? members.refuse(name, "is not base64");
    isFinished = whole.endsWith("=");
  }
  if (open !== "") members.refuse(name, "is not base64");
}

/** Malformed strings are detected only while reading. */
function* textsOf(members: CheckedMembers, name: string, text: LargeText): Generator<string> {
  try {
    yield* text.texts();
  } catch (error) {
    if (error instanceof MemberError) throw error;
    members.refuse(name, error instanceof Error ? error.message : String(error));
  }
}
