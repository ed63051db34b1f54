import { randomInt, randomUUID } from "node:crypto";
import type { ReplayModifications } from "@headworks/capture-contract";
import { utf8Octets, utf8Reading, wireText } from "@headworks/http-fields";
import { fieldValue, type RawFields, removeField, setField } from "@headworks/http1";
import { ApiError, validationError } from "#api/api-error.ts";
import type { OutgoingRequest } from "#exchange/outgoing.ts";
import {
  bodyBytes,
  hasVariables,
  MAX_BODY_BYTES,
  parseTarget,
  type ReplayRequest,
  writtenField,
} from "./replay-request.ts";

export interface Variables {
  readonly given: Readonly<Record<string, string>>;
  readonly iteration: number;
  readonly nowMs: number;
}

/** Applies modifications and leaves variables in place. Throws 400 for a request that cannot be sent. */
export function modified(request: ReplayRequest, changes: ReplayModifications): ReplayRequest {
  const method = changes.method ?? request.method;
  const url = changes.url?.trim() ?? request.url;
  const fields = request.fields.slice();
  for (const name of changes.remove_headers ?? []) removeField(fields, name.toLowerCase());
  if (changes.url !== undefined && changes.url !== null && authorityOf(url) !== authorityOf(request.url)) {
    removeField(fields, "host");
  }
  const at = "body/modifications";
  if (changes.body !== undefined && changes.body !== null) removeField(fields, "content-encoding");
  for (const [name, value] of Object.entries(changes.headers ?? {})) {
    setField(fields, ...writtenField(name, value, `${at}/headers`));
  }
  const body =
    changes.body === undefined || changes.body === null ? request.body : bodyBytes(changes.body, `${at}/body`);
  return { method, url, fields, body };
}

function authorityOf(url: string): string | undefined {
  return /^[a-z]+:\/\/([^/?#]*)/iu.exec(url)?.[1]?.toLowerCase();
}

/** Fills in all variables. Throws 400 for a URL without a valid target. */
export function prepared(request: ReplayRequest, variables: Variables): OutgoingRequest {
  const fill = filler(variables);
  const { method } = request;
  const url = fill(request.url);
  const target = parseTarget(url, method);
  if (typeof target === "string") {
    const open = VARIABLE.exec(url)?.[1];
    VARIABLE.lastIndex = 0;
    const message = open === undefined ? target : `uses the variable ${open}, which has no value`;
    throw validationError([{ path: "body/request/url", message }]);
  }
  const fields: RawFields = [];
  for (let at = 0; at + 1 < request.fields.length; at += 2) {
    const name = request.fields[at] ?? "";
    const value = request.fields[at + 1] ?? "";
    fields.push(
      ...(hasVariables(value) ? writtenField(name, filledValue(value, fill), "body/variables") : [name, value]),
    );
  }
  const { scheme, host, port, path } = target;
  return { scheme, host, port, method, path, fields, body: filledBody(request, fields, variables) };
}

/**
 * Stored field values are octets; they are decoded before variables are filled in, so that the result has one encoding.
 */
function filledValue(octets: string, fill: (text: string) => string): string {
  const reading = utf8Reading(octets);
  return reading === undefined ? wireText(fill(octets)) : utf8Octets(fill(reading));
}

const VARIABLE = /\{\{\s*(\$?[A-Za-z_][A-Za-z0-9_.-]{0,63})\s*\}\}/gu;

function filler(variables: Variables): (text: string) => string {
  return (text) =>
    hasVariables(text) ? text.replaceAll(VARIABLE, (match, name: string) => valueOf(name, variables) ?? match) : text;
}

/** Fills in variables as UTF-8; a compressed body has none. */
function filledBody(request: ReplayRequest, fields: RawFields, variables: Variables): Uint8Array | undefined {
  const { body } = request;
  if (body === undefined || fieldValue(fields, "content-encoding") !== undefined) return body;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  if (!bytes.includes("{{")) return body;
  let sizeBytes = bytes.length;
  const text = bytes.toString("latin1").replaceAll(VARIABLE, (match, name: string) => {
    const value = valueOf(name, variables);
    if (value === undefined) return match;
    const wire = Buffer.from(value, "utf8").toString("latin1");
    sizeBytes += wire.length;
    if (sizeBytes > 2 * MAX_BODY_BYTES) {
      throw new ApiError("PAYLOAD_TOO_LARGE", "The variables make the body larger than requests may be");
    }
    return wire;
  });
  return Buffer.from(text, "latin1");
}

function valueOf(name: string, { given, iteration, nowMs }: Variables): string | undefined {
  switch (name) {
    case "$uuid":
      return randomUUID();
    case "$timestamp":
      return String(Math.floor(nowMs / 1000));
    case "$timestamp_ms":
      return String(nowMs);
    case "$iso_timestamp":
      return new Date(nowMs).toISOString();
    case "$random_int":
      return String(randomInt(1_000_000_000));
    case "$iteration":
      return String(iteration);
    default:
      return Object.hasOwn(given, name) ? given[name] : undefined;
  }
}
