// Tested by ../../test/http2-hostile.test.ts
import { randomBytes } from "node:crypto";
import { withoutPseudoFields } from "@headworks/http-fields";
import { readHttp2Request } from "@headworks/http1";
import type { Http2RequestProblem } from "@headworks/http1";
import type { ReceivedHead } from "./exchange-client.ts";
import { MOST_FIELDS } from "./http2-limits.ts";
import type { PlannedHead } from "./request-plan.ts";

const WEBSOCKET_KEY_BYTES = 16;

/** A request over HTTP/2, as the rest of the data path knows requests. */
export interface Http2Head extends ReceivedHead, PlannedHead {
  readonly version: "2";
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
): Http2Head | Http2RequestProblem {
  const read = readHttp2Request(section, withoutPseudoFields(section), isWhole, MOST_FIELDS);
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
    framing,
    upgrade,
    keepAlive: true,
  };
}

/** What HTTP/1.1 says to begin a WebSocket, and what the server proves with that it understood (RFC 8441, 5). */
function addUpgrade(fields: string[], upgrade: string): void {
  const key = randomBytes(WEBSOCKET_KEY_BYTES).toString("base64");
  fields.push("connection", "upgrade", "upgrade", upgrade, "sec-websocket-key", key);
}
