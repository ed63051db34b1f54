import type { TrafficEntry } from "@headworks/capture-contract";
import type { RawFields } from "@headworks/http1";
import { ApiError } from "#api/api-error.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { MAX_BODY_BYTES } from "./replay-request.ts";
import type { ReplayRequest } from "./replay-request.ts";

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
