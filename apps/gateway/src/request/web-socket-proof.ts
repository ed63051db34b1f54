import { createHash } from "node:crypto";
import { fieldValue, type RawFields } from "@headworks/http1";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Whether an answer proves that its server read the request as a WebSocket's (RFC 6455, 4.2.2). */
export function provesWebSocket(request: Readonly<RawFields>, response: Readonly<RawFields>): boolean {
  const key = fieldValue(request, "sec-websocket-key") ?? "";
  const proof = createHash("sha1").update(`${key}${MAGIC}`).digest("base64");
  return fieldValue(response, "sec-websocket-accept") === proof;
}
