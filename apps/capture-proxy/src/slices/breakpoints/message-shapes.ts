import type { PausedRequest, PausedResponse } from "@headworks/capture-contract";
import { fieldValue } from "@headworks/http1";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import { fieldPairs, joinedFields } from "#exchange/shown-message.ts";
import type { EditableBody } from "./editable-body.ts";

/** How the body of a paused message is shown. */
export type ShownBody = Pick<PausedRequest, "body" | "body_encoding" | "body_size" | "body_state" | "charset">;

export function showRequest(request: Readonly<RequestMessage>, body: ShownBody): PausedRequest {
  return {
    method: request.method,
    url: exchangeUrl(request),
    host: request.host,
    path: request.path,
    headers: joinedFields(request.fields),
    headers_list: fieldPairs(request.fields),
    content_type: fieldValue(request.fields, "content-type") ?? null,
    http_version: request.version,
    ...body,
  };
}

export function showResponse(response: Readonly<ResponseMessage>, body: ShownBody): PausedResponse {
  return {
    status_code: response.status,
    status_message: response.reason,
    headers: joinedFields(response.fields),
    headers_list: fieldPairs(response.fields),
    content_type: fieldValue(response.fields, "content-type") ?? null,
    http_version: response.version,
    ...body,
  };
}

/** A body without its contents. */
export function bodyLeftOut(sizeBytes: number, state: ShownBody["body_state"]): ShownBody {
  return { body: null, body_encoding: null, body_size: sizeBytes, body_state: state, charset: null };
}

/** A whole body as it is edited; a text that looks like the mark of base64 is marked as base64 itself. */
export function showBody({ form, bytes, text }: EditableBody, sizeBytes: number): ShownBody {
  const body_state = form === "coded" ? "coded" : "complete";
  if (text !== undefined && !text.value.startsWith("base64:")) {
    return { body: text.value, body_encoding: "utf8", body_size: sizeBytes, body_state, charset: text.charset };
  }
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return { body: `base64:${base64}`, body_encoding: "base64", body_size: sizeBytes, body_state, charset: null };
}
