import type { TrafficEntry } from "@headworks/capture-contract";
import { ApiError } from "#api/api-error.ts";
import type { Field, SnippetRequest } from "./snippet-request.ts";

/** Bodies above this are nothing for a command line or a clipboard. */
export const MAX_BODY_BYTES = 8_388_608;

const SCHEMES: Readonly<Record<string, "http" | "https">> = { http: "http", https: "https", ws: "http", wss: "https" };

/**
 * The request of an entry, ready to be written out. Throws 409 when it cannot be reproduced: tunnels have no request
 * of their own, and a command that sends another body than the original one would mislead whoever runs it.
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

/** Fields that HTTP/2 has other means for (RFC 9113, 8.2.2); a request that has one is malformed there. */
const OF_HTTP1_CONNECTIONS = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "http2-settings"]);

/**
 * The fields with those that HTTP/1.1 cannot do without, which messages of HTTP/2 say in other ways and imported ones leave
 * out: Host, and the length of a body.
 */
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

/** Whether the request only asked for a WebSocket: what is counted as its body are messages (RFC 6455, 4.1). */
export function isHandshake({ request }: Pick<TrafficEntry, "request">): boolean {
  return /^wss?:/u.test(request.url);
}

/** Throws 409 with the reason when the body of an entry's request is not there, or not whole. */
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

/** Entries of imported files may hold what no message can; what was said to the proxy alone is no part of the request. */
function isSendable([name, value]: Field): boolean {
  if (/^proxy-connection$/iu.test(name)) return false;
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/u.test(value);
}
