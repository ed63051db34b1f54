import { randomBytes } from "node:crypto";
import { withoutPseudoFields } from "@headworks/http-fields";
import { readHttp2Request } from "@headworks/http1";
import type { Http2RequestProblem } from "@headworks/http1";
import type { ReceivedHead } from "./exchange-client.ts";
import type { PlannedHead } from "./request-plan.ts";
import type { ConnectHead } from "./tunnel-client.ts";

const WEBSOCKET_KEY_BYTES = 16;

/** A request over HTTP/2, as the rest of the data path knows requests. */
export interface Http2Head extends ReceivedHead, PlannedHead {
  readonly version: "2";
  readonly target: string;
  readonly authority: string;
}

/**
 * Reads the field section of a request.
 * @param isWhole  no body follows
 * @param isProxied  the client asks the proxy itself: the target is absolute then
 */
export function readHttp2Head(
  section: readonly string[],
  isWhole: boolean,
  isProxied: boolean,
  maxFields: number,
): Http2Head | Http2RequestProblem {
  const read = readHttp2Request(section, withoutPseudoFields(section), isWhole, maxFields);
  if ("problem" in read) return read;
  const { method, scheme, authority, fields, framing, upgrade } = read;
  if (upgrade !== undefined) addUpgrade(fields, upgrade);
  const isAbsolute = isProxied && read.targetForm === "origin";
  return {
    method,
    target: isAbsolute ? `${scheme}://${authority}${read.target}` : read.target,
    targetForm: isAbsolute ? "absolute" : read.targetForm,
    version: "2",
    authority,
    fields,
    fieldLines: undefined,
    framing,
    upgrade,
    keepAlive: true,
  };
}

/** Whether a client wants a tunnel; a CONNECT with a protocol begins a WebSocket. */
export function isHttp2Connect(section: readonly string[]): boolean {
  return pseudoField(section, ":method") === "CONNECT" && pseudoField(section, ":protocol") === undefined;
}

/** Reads such a CONNECT, which names a place and nothing else (RFC 9113, 8.5). Its fields are judged as any request's. */
export function readHttp2Connect(section: readonly string[], maxFields: number): ConnectHead | Http2RequestProblem {
  if (pseudoField(section, ":scheme") !== undefined || pseudoField(section, ":path") !== undefined) {
    return { problem: "malformed", message: "CONNECT has neither :scheme nor :path" };
  }
  const authority = pseudoField(section, ":authority") ?? "";
  const asked = [":method", "GET", ":scheme", "http", ":path", "/", ":authority", authority];
  const read = readHttp2Request(asked, withoutPseudoFields(section), true, maxFields);
  return "problem" in read ? read : { target: read.authority, fields: read.fields };
}

function pseudoField(section: readonly string[], name: string): string | undefined {
  for (let at = 0; at < section.length; at += 2) if (section[at] === name) return section[at + 1];
  return undefined;
}

/** What HTTP/1.1 says to begin a WebSocket, and what the server proves with that it understood (RFC 8441, 5). */
function addUpgrade(fields: string[], upgrade: string): void {
  const key = randomBytes(WEBSOCKET_KEY_BYTES).toString("base64");
  fields.push("connection", "upgrade", "upgrade", upgrade, "sec-websocket-key", key);
}
