import type { TrafficEntry } from "@headworks/capture-contract";
import { ApiError } from "#api/api-error.ts";
import type { Field, SnippetRequest } from "./snippet-request.ts";

/** Larger bodies do not fit a command line or a clipboard. */
export const MAX_BODY_BYTES = 8_388_608;

const SCHEMES: Readonly<Record<string, "http" | "https">> = { http: "http", https: "https", ws: "http", wss: "https" };

/**
 * The request of an entry, ready to be written out. Throws 409 if it cannot be reproduced: tunnels have no request of
 * their own, and a command must not send another body than the original.
 */
export function reproducibleRequest(entry: TrafficEntry, body: Uint8Array): SnippetRequest {
  const { request } = entry;
  const url = /^([a-z]+):\/\/([^/?#]+)/u.exec(request.url);
  const scheme = SCHEMES[url?.[1] ?? ""];
  if (entry.is_passthrough || request.method === "CONNECT" || scheme === undefined) {
    throw new ApiError("CONFLICT", "This is a tunnel: what went through it was counted, not read");
  }
  const authority = url?.[2] ?? "";
  const version = versionOf(request.http_version);
  return {
    method: request.method,
    scheme,
    authority,
    target: request.path,
    version,
    fields: framedFields(request.headers_list.filter(isSendable), { authority, version, bodyBytes: body.length }),
    body,
  };
}

/** Fields that are forbidden in HTTP/2 (RFC 9113 section 8.2.2). */
const OF_HTTP1_CONNECTIONS = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "http2-settings"]);

/** Adds the fields that HTTP/1.1 requires but HTTP/2 and imported messages may lack: Host and the body's length. */
function framedFields(
  fields: readonly Field[],
  request: { readonly authority: string; readonly version: SnippetRequest["version"]; readonly bodyBytes: number },
): Field[] {
  const { authority, version, bodyBytes } = request;
  const framed =
    version === "HTTP/2" ? fields.filter(([name]) => !OF_HTTP1_CONNECTIONS.has(name.toLowerCase())) : [...fields];
  const has = (lowerName: string): boolean => framed.some(([name]) => name.toLowerCase() === lowerName);
  if (version !== "HTTP/1.0" && !has("host")) framed.unshift(["Host", authority]);
  if (bodyBytes > 0 && !has("content-length") && !has("transfer-encoding")) {
    framed.push(["Content-Length", String(bodyBytes)]);
  }
  return framed;
}

/** True for WebSocket handshakes; the bytes counted as their body are messages (RFC 6455 section 4.1). */
export function isHandshake({ request }: Pick<TrafficEntry, "request">): boolean {
  return /^wss?:/u.test(request.url);
}

/** Throws 409 if the body of an entry's request is missing or incomplete. */
export function checkBody({ request, state }: Pick<TrafficEntry, "request" | "state">): void {
  const { body_state: bodyState, body_size: size, body_stored_size: stored } = request;
  if (bodyState === "truncated") {
    throw new ApiError("CONFLICT", `Only the first ${stored} of ${size} bytes of the request's body were stored`);
  }
  if (bodyState === "not_stored") {
    const reason = state === "pending" ? "The request is still running" : "The request's body was not stored";
    throw new ApiError("CONFLICT", `${reason}: it cannot be reproduced`);
  }
  if (stored > MAX_BODY_BYTES) {
    throw new ApiError(
      "CONFLICT",
      `The request's body has ${stored} bytes, too many for a command: fetch it by itself and send it from a file`,
    );
  }
}

function versionOf(version: string | null): SnippetRequest["version"] {
  return version === "HTTP/1.0" || version === "HTTP/2" ? version : "HTTP/1.1";
}

/** Imported entries may hold invalid fields; fields for the proxy alone are not part of the request. */
function isSendable([name, value]: Field): boolean {
  if (/^proxy-connection$/iu.test(name)) return false;
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/u.test(value);
}
