import { randomUUID } from "node:crypto";
import type { Failure } from "@headworks/capture-contract";
import type { HarBody, HarExchange, HarExchangeTimings } from "@headworks/har";
import { wireText } from "@headworks/http-fields";
import { encodeAsDeclared } from "@headworks/http-fields/content-coding";
import { fieldValues } from "@headworks/http1";
import { ENTRY_STATES, FLAG_PASSTHROUGH, flagsOfKinds } from "../write/entry-record.ts";
import { finalState } from "../read/stored-entry.ts";
import { CheckedMembers, checkedFailure, checkedTls, MemberError } from "./checked-members.ts";
import { importedEffect } from "./imported-native-entry.ts";
import {
  bodyStateCode,
  clientOf,
  contentInFile,
  contentInMemory,
  cutNote,
  type FileTarget,
  type ImportedContent,
  type ImportedEntry,
  type ImportedMessage,
  type ImportedTarget,
  isCut,
  type LargeContent,
  targetOfUrl,
} from "./imported-entry.ts";

/**
 * Converts a HAR entry, using the additional facts of Weir's own exports where valid. Bodies that other programs
 * decoded are encoded again; a field naming an unknown coding is dropped. Bodies are truncated at the target's limit;
 * large ones go to its files. Throws for a URL that cannot be captured and for malformed large texts.
 */
export async function importedHarEntry(
  exchange: HarExchange<Uint8Array | LargeContent>,
  files: FileTarget,
): Promise<{ readonly entry: ImportedEntry; readonly notes: readonly string[] }> {
  const { request, response } = exchange;
  const own = new OwnFacts(exchange.weir.more);
  const target = targetOf(request.url, own);
  const sent = await content(request.fields, request.body, files);
  const received = response && (await content(response.fields, response.body, files));
  const messages = {
    request: message(request, sent, own, "request"),
    response: response === undefined ? undefined : message(response, received, own, "response"),
  };
  const notes = [
    ...unnamedNote("request", request.fields),
    ...unnamedNote("response", response?.fields ?? []),
    ...missingNote(request.body?.missingParts ?? []),
    ...cutNote("request", sent),
    ...cutNote("response", received),
    ...unreadNote(exchange.unreadMessages ?? 0),
  ];
  return { entry: { ...factsOf(exchange, own), target, ...messages }, notes };
}

const MAX_LISTED = 5;
const MAX_LISTED_LENGTH = 100;

function listed(texts: readonly string[]): string {
  const more = texts.length > MAX_LISTED ? ` and ${texts.length - MAX_LISTED} more` : "";
  return texts.slice(0, MAX_LISTED).join(", ") + more;
}

function missingNote(parts: readonly string[]): string[] {
  if (parts.length === 0) return [];
  return [`the form of its request is incomplete: the document lacks the content of ${listed(parts)}`];
}

function unreadNote(messages: number): string[] {
  if (messages === 0) return [];
  if (messages === 1) return ["1 unreadable WebSocket message was skipped"];
  return [`${messages} unreadable WebSocket messages were skipped`];
}

function unnamedNote(side: "request" | "response", fields: readonly string[]): string[] {
  const names = fields.filter((text, at) => at % 2 === 0 && !FIELD_NAME.test(text));
  if (names.length === 0) return [];
  const shown = names.map((name) => JSON.stringify(name.slice(0, MAX_LISTED_LENGTH).toWellFormed()));
  return [`header fields of its ${side} with invalid names were skipped: ${listed(shown)}`];
}

/** Everything but the messages. */
function factsOf(
  exchange: HarExchange<unknown>,
  own: OwnFacts,
): Omit<ImportedEntry, "target" | "request" | "response"> {
  const { request, response, timings, weir } = exchange;
  const failure =
    own.read((more) => checkedFailure(more.object("failure"))) ??
    (weir.failure === undefined ? null : failed(weir.failure));
  const state = own.read((more) => more.oneOf("state", ENTRY_STATES));
  const isWhole = response !== undefined && failure === null;
  const totalMs = sumOf(timings);
  const flags = own.read((more) => more.whole("flags"));
  const effect = own.read((more) => importedEffect(more, () => undefined) ?? null) ?? undefined;
  return {
    id: weir.id !== undefined && /^[\w.-]{1,64}$/u.test(weir.id) ? weir.id : randomUUID(),
    state: ENTRY_STATES.indexOf(finalState(state ?? (isWhole ? "complete" : "failed"))),
    startedMs: exchange.startedMs,
    method: request.method,
    status: response?.status ?? null,
    statusMessage: response?.reason ?? null,
    durationUs: own.has("durationUs") ? own.read((more) => more.whole("durationUs")) : Math.round(totalMs * 1000),
    ttfbUs: own.has("ttfbUs") ? own.read((more) => more.whole("ttfbUs")) : ttfbUs(exchange, totalMs),
    requestVersion: request.httpVersion || null,
    responseVersion: response?.httpVersion || null,
    flags:
      (flags === null ? (weir.isPassthrough ? FLAG_PASSTHROUGH : 0) : flags & 7) |
      flagsOfKinds(effect?.record.trace ?? []),
    source: "import",
    ...clientOf(exchange.clientAddress ?? null, connectionNumber(exchange.connectionId)),
    serverAddress: exchange.serverAddress ?? null,
    timings: stagesOf(timings).map((stage) => stage ?? null),
    failure: failure ?? (state === "pending" ? failed("Still in progress when it was exported") : null),
    tls: own.read((more) => checkedTls(more.object("tls"))),
    note: exchange.note ?? null,
    effect,
  };
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

type FoundBody = HarBody<Uint8Array | LargeContent> | undefined;
type HarMessage = Pick<
  HarExchange<Uint8Array | LargeContent>["request"],
  "fields" | "mediaType" | "body" | "missingBodyBytes"
>;

async function content(
  fields: readonly string[],
  body: FoundBody,
  files: FileTarget,
): Promise<ImportedContent | undefined> {
  if (body === undefined) return undefined;
  const codings = body.isEncoded ? undefined : fieldValues(fields, "content-encoding");
  if (!(body.bytes instanceof Uint8Array)) return await contentInFile(body.bytes, codings, files);
  const contentType = fieldValues(fields, "content-type")[0];
  const bytes = body.isText === true ? encodeAsDeclared(utf8.decode(body.bytes), contentType) : body.bytes;
  return contentInMemory(bytes, codings, files.maxBodyBytes);
}

/** `_weir.more` from an untrusted file: members of the wrong type count as absent. */
class OwnFacts {
  readonly #more: CheckedMembers | null;

  constructor(more: Readonly<Record<string, unknown>> | undefined) {
    this.#more = more === undefined ? null : new CheckedMembers(more, "_weir.more");
  }

  has(name: string): boolean {
    // Null is a fact: exports write it for unmeasured values.
    return this.#more?.holds(name) ?? false;
  }

  read<T>(reader: (more: CheckedMembers) => T | null): T | null {
    if (this.#more === null) return null;
    try {
      return reader(this.#more);
    } catch (error) {
      if (error instanceof MemberError) return null;
      throw error;
    }
  }
}

function targetOf(url: string, own: OwnFacts): ImportedTarget {
  const target = targetOfUrl(url);
  const path = own.read((more) => more.optionalText("path"));
  const isTunnel = own.read((more) => more.optionalText("scheme")) === "tcp";
  const port = own.read((more) => (more.raw("port") === -1 ? -1 : more.whole("port")));
  return {
    ...target,
    ...(isTunnel && { scheme: "tcp" }),
    // The URL cannot express the target `*`, nor a port without a scheme default.
    ...(path === "*" && { path }),
    ...((isTunnel || target.scheme === "tcp") && port !== null && port <= 65_535 && { port }),
  };
}

function message(
  { fields, mediaType, body, missingBodyBytes = 0 }: HarMessage,
  found: ImportedContent | undefined,
  own: OwnFacts,
  side: "request" | "response",
): ImportedMessage {
  const noted = own.read((more) => more.object(`${side}Body`));
  const size = noted === null ? null : own.read(() => noted.whole("size"));
  const state = noted === null ? null : own.read(() => noted.optionalText("state"));
  const isWhole = body?.isEncoded === false && !body.isTruncated;
  const transferred = body === undefined || isWhole ? missingBodyBytes : (body.transferredBytes ?? 0);
  return {
    fields: sendableFields(found?.isPlain === true ? without(fields, "content-encoding") : fields),
    trailers: own.read((more) => trailersOf(more, `${side}Trailers`)),
    contentType: mediaType ?? null,
    body: found?.body,
    bodySize: Math.max(size ?? transferred, found?.totalBytes ?? 0),
    bodyState: bodyStateCode(
      found !== undefined && isCut(found)
        ? "truncated"
        : (state ?? (body?.isTruncated === true ? "truncated" : "complete")),
    ),
  };
}

function trailersOf(more: CheckedMembers, name: string): string[] | null {
  const list = more.array(name);
  return list === null ? null : sendableFields(list.filter((text) => typeof text === "string"));
}

const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u;

/** Drops invalid names, and encodes values beyond bytes, which other programs write. */
function sendableFields(fields: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [name = "", value = ""] = [fields[index], fields[index + 1]];
    if (!FIELD_NAME.test(name)) continue;
    kept.push(name, wireValue(value));
  }
  return kept;
}

function wireValue(value: string): string {
  return wireText(value.replaceAll(/[\x00-\x08\x0a-\x1f\x7f]+/gu, " "));
}

function without(fields: readonly string[], lowerName: string): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? "";
    if (name.toLowerCase() !== lowerName) kept.push(name, fields[index + 1] ?? "");
  }
  return kept;
}

function stagesOf(timings: HarExchangeTimings): (number | undefined)[] {
  const { blocked, dns, connect, tls, send, wait, receive } = timings;
  return [blocked, dns, connect, tls, send, wait, receive];
}

function sumOf(timings: HarExchangeTimings): number {
  const total = stagesOf(timings).reduce<number>((sum, stage) => sum + (stage ?? 0), 0);
  return Math.min(total, 1e12);
}

function ttfbUs({ response, timings }: HarExchange<unknown>, totalMs: number): number | null {
  return response === undefined ? null : Math.max(0, Math.round((totalMs - (timings.receive ?? 0)) * 1000));
}

function connectionNumber(id: string | undefined): number | null {
  return id !== undefined && /^-?\d{1,15}$/u.test(id) ? Number(id) : null;
}

function failed(sentence: string): Failure {
  return { stage: "receive", side: "upstream", code: "INTERNAL", message: sentence };
}
