import type { RequestData, ResponseData } from "@headworks/capture-contract";
import { fieldValue, type RawFields } from "@headworks/http1";
import type { BodyState } from "./body.ts";
import { exchangeUrl, type RequestMessage, type ResponseMessage } from "./exchange.ts";

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text if it is UTF-8; otherwise base64. Text that looks like the base64 marker is encoded too. */
export function bodyText(bytes: Uint8Array | undefined): Pick<RequestData, "body" | "body_encoding"> {
  if (bytes === undefined) return { body: null, body_encoding: null };
  try {
    const text = UTF8.decode(bytes);
    if (!text.startsWith("base64:")) return { body: text, body_encoding: "utf8" };
  } catch {
    // Not UTF-8: base64 below.
  }
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return { body: `base64:${base64}`, body_encoding: "base64" };
}

/** Name and value pairs in wire order, duplicates kept. */
export function fieldPairs(fields: Readonly<RawFields>): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) pairs.push([fields[index] ?? "", fields[index + 1] ?? ""]);
  return pairs;
}

/** Duplicates joined (RFC 9110, 5.3); Set-Cookie, which must not be joined, is separated by line ends. */
export function joinedFields(fields: Readonly<RawFields>): Record<string, string> {
  const names = new Map<string, string>();
  const joined = new Map<string, string>();
  for (const [name, value] of fieldPairs(fields)) {
    const lower = name.toLowerCase();
    const first = names.get(lower) ?? name;
    names.set(lower, first);
    const before = joined.get(first);
    joined.set(first, before === undefined ? value : `${before}${lower === "set-cookie" ? "\n" : ", "}${value}`);
  }
  return Object.fromEntries(joined);
}

/** A body's shown bytes and its sizes. */
export interface BodyFacts {
  readonly bytes: Uint8Array | undefined;
  readonly sizeBytes: number;
  readonly storedBytes: number;
  readonly state: BodyState;
}

/** The members of a message that describe its body. */
export function bodyMembers({ bytes, sizeBytes, storedBytes, state }: BodyFacts) {
  return {
    ...bodyText(bytes),
    body_size: sizeBytes,
    body_stored_size: storedBytes,
    body_state: state,
    truncated: state === "truncated",
  };
}

export function shownRequest(message: Readonly<RequestMessage>, body: BodyFacts): RequestData {
  const { method, host, path, fields, trailers, version } = message;
  return {
    method,
    url: exchangeUrl(message),
    host,
    path,
    headers: joinedFields(fields),
    headers_list: fieldPairs(fields),
    ...(trailers !== undefined && { trailers_list: fieldPairs(trailers) }),
    ...bodyMembers(body),
    content_type: fieldValue(fields, "content-type") ?? null,
    http_version: version,
  };
}

export function shownResponse(message: Readonly<ResponseMessage>, body: BodyFacts, durationMs: number): ResponseData {
  const { status, reason, fields, trailers, version } = message;
  return {
    status_code: status,
    status_message: reason,
    headers: joinedFields(fields),
    headers_list: fieldPairs(fields),
    ...(trailers !== undefined && { trailers_list: fieldPairs(trailers) }),
    ...bodyMembers(body),
    content_type: fieldValue(fields, "content-type") ?? null,
    duration_ms: durationMs,
    http_version: version,
  };
}
