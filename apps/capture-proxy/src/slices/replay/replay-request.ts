import type { RequestData, TrafficEntry, WrittenRequest } from "@headworks/capture-contract";
import { hostPortText, parseHostPort } from "@headworks/host-patterns";
import { wireText } from "@headworks/http-fields";
import { hasField, type RawFields } from "@headworks/http1";
import { ApiError, validationError } from "#api/api-error.ts";
import { shownRequest } from "#exchange/shown-message.ts";
import type { CaptureStore } from "#storage/capture-store.ts";

const URL_PARTS = /^(https?):\/\/([^/?#]*)([^#]*)/iu;

/** Larger bodies are not stored for replays. */
export const MAX_BODY_BYTES = 16_777_216;

/** A stored request. URL, field values and body may contain `{{variables}}`. */
export interface ReplayRequest {
  readonly method: string;
  readonly url: string;
  /** One character per byte. */
  readonly fields: RawFields;
  /** Content-coded as the fields say. */
  readonly body: Uint8Array | undefined;
}

/** Reads a request of the API. Throws 400 naming the invalid part. */
export function requestOf(written: WrittenRequest, at = "body/request"): ReplayRequest {
  const pairs = written.headers_list ?? Object.entries(written.headers ?? {});
  const pointer = written.headers_list === undefined ? `${at}/headers` : `${at}/headers_list`;
  const fields = pairs.flatMap(([name = "", value = ""]) => writtenField(name, value, pointer));
  const type = written.content_type;
  if (type !== undefined && type !== null && !hasField(fields, "content-type")) {
    fields.push(...writtenField("Content-Type", type, `${at}/content_type`));
  }
  const url = written.url.trim();
  if (!hasVariables(url)) {
    const target = parseTarget(url, written.method ?? "GET");
    if (typeof target === "string") throw validationError([{ path: `${at}/url`, message: target }]);
  }
  return { method: written.method ?? "GET", url, fields, body: bodyBytes(written.body, `${at}/body`) };
}

/** A field in wire form. Throws 400 for an invalid name or a line break, which would inject a field. */
export function writtenField(name: string, value: string, at: string): [string, string] {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u.test(name)) {
    throw validationError([{ path: at, message: `${JSON.stringify(name)} is not the name of a header field` }]);
  }
  if (/[\r\n\0]/u.test(value)) {
    throw validationError([
      { path: at, message: `the value of ${name} contains a line break, which no field can have` },
    ]);
  }
  return [name, wireText(value.trim())];
}

/** The bytes of a body text of the API; the prefix `base64:` marks binary. Throws 400 for invalid base64. */
export function bodyBytes(text: string | null | undefined, at: string): Uint8Array | undefined {
  if (text === null || text === undefined || text === "") return undefined;
  if (!text.startsWith("base64:")) return Buffer.from(text, "utf8");
  const base64 = text.slice(7);
  if (!/^[A-Za-z0-9+/]*={0,2}$/u.test(base64) || base64.length % 4 === 1) {
    throw validationError([{ path: at, message: "is not valid base64 after `base64:`" }]);
  }
  const bytes = Buffer.from(base64, "base64");
  return bytes.length === 0 ? undefined : bytes;
}

export function hasVariables(text: string): boolean {
  return text.includes("{{");
}

export function showRequest(request: ReplayRequest, bytes: Uint8Array | undefined, sizeBytes: number): RequestData {
  const { method, url, fields } = request;
  const target = parseTarget(url, method);
  const { scheme, host, port, path } =
    typeof target === "string" ? ({ scheme: "http", host: "", port: 80, path: "/" } as const) : target;
  const message = { method, scheme, host, port, path, version: "HTTP/1.1", fields, trailers: undefined } as const;
  const state = sizeBytes === 0 ? "none" : "complete";
  return { ...shownRequest(message, { bytes, sizeBytes, storedBytes: sizeBytes, state }), url };
}

interface TargetUrl {
  readonly scheme: "http" | "https";
  /** Lower-case name, or address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query, at least `/`; `*` for OPTIONS of a URL without a path. */
  readonly path: string;
  /** Host with the port, unless it is the scheme's default; IPv6 in brackets. */
  readonly authority: string;
}

/**
 * Splits a URL without normalizing its path: captured requests are sent unchanged. Only characters invalid in a request
 * line (spaces, non-ASCII) are percent-encoded. Returns an error message for an invalid target.
 */
export function parseTarget(url: string, method: string): TargetUrl | string {
  const parts = URL_PARTS.exec(url);
  if (parts === null) return "must be an absolute http or https URL";
  const scheme = (parts[1] ?? "").toLowerCase() as "http" | "https";
  const authority = parts[2] ?? "";
  if (authority.includes("@")) return "must not contain credentials: use the Authorization header";
  const address = parseHostPort(asciiHost(authority));
  if ("issue" in address) return `has an invalid host: ${address.issue}`;
  const own = scheme === "https" ? 443 : 80;
  const port = address.port ?? own;
  return {
    scheme,
    host: address.host,
    port,
    path: pathOf(parts[3] ?? "", method),
    authority: hostPortText(address.host, port, own),
  };
}

/** Converts international names to Punycode. */
function asciiHost(authority: string): string {
  if (/^[\0-\x7f]*$/u.test(authority)) return authority;
  return URL.canParse(`http://${authority}`) ? new URL(`http://${authority}`).host : authority;
}

function pathOf(written: string, method: string): string {
  if (written === "") return method === "OPTIONS" ? "*" : "/";
  const path = written.startsWith("/") ? written : `/${written}`;
  return path.replaceAll(/[^\x21-\x7e]+/gu, (text) => encodeURIComponent(text.toWellFormed()));
}

/** Hop-by-hop fields, and fields for the proxy itself. */
const NOT_REPLAYED = new Set(["proxy-connection", "proxy-authorization", "upgrade", "http2-settings"]);

/**
 * The complete request of a captured entry; undefined for an unknown id. Throws 409 for tunnels, WebSocket and bodies
 * that were not stored completely, 413 for bodies beyond 16 MiB.
 */
export async function capturedRequest(store: CaptureStore, id: string): Promise<ReplayRequest | undefined> {
  const entry = await store.getEntry(id, { includeBodies: false, decompressed: false });
  if (entry === undefined) return undefined;
  const { request } = entry;
  refuseUnrepeatable(entry);
  const fields: RawFields = request.headers_list
    .filter(([name, value]) => isSendable(name, value) && !NOT_REPLAYED.has(name.toLowerCase()))
    .flat();
  const isServerWide = request.path === "*";
  const url = isServerWide ? request.url.replace(/\/\*$/u, "") : request.url;
  return { method: request.method, url, fields, body: await bodyOf(store, entry) };
}

function refuseUnrepeatable({ is_passthrough: isTunnel, request, state }: TrafficEntry): void {
  const scheme = /^[a-z]+/u.exec(request.url)?.[0];
  if (isTunnel || request.method === "CONNECT" || scheme === "tcp") {
    throw new ApiError("CONFLICT", "This is a tunnel: its content was not captured");
  }
  if (scheme !== "http" && scheme !== "https") {
    throw new ApiError("CONFLICT", "This is a WebSocket connection, which one request cannot repeat");
  }
  const { body_state: bodyState, body_size: size, body_stored_size: stored } = request;
  if (bodyState === "truncated") {
    throw new ApiError("CONFLICT", `Only the first ${stored} of ${size} bytes of the request's body were stored`);
  }
  if (bodyState === "not_stored") {
    const reason = state === "pending" ? "The request is still running" : "The request's body was not stored";
    throw new ApiError("CONFLICT", `${reason}: it cannot be sent again`);
  }
  if (size > MAX_BODY_BYTES) {
    throw new ApiError("PAYLOAD_TOO_LARGE", `The request's body has ${size} bytes, more than can be sent again`);
  }
}

async function bodyOf(store: CaptureStore, { id, request }: TrafficEntry): Promise<Uint8Array | undefined> {
  if (request.body_state === "none") return undefined;
  const range = { decoded: false, utf8: false, start: 0, end: MAX_BODY_BYTES };
  const part = await store.readBody(id, "request", range);
  if (part?.bytes.length !== request.body_stored_size) {
    throw new ApiError("CONFLICT", "The request's body is no longer stored");
  }
  return part.bytes;
}

/** Entries of imported files may have fields that no message can carry. */
function isSendable(name: string, value: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/u.test(value);
}
