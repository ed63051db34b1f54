import { reasonPhrase } from "@headworks/http-fields";
import { fieldValue } from "@headworks/http1";
import { exchangeUrl, type RequestMessage } from "#exchange/exchange.ts";
import { withField, withoutField } from "./header-edit.ts";
import type { MessageEdit } from "./message-edit.ts";
import { changesUrl, moveRequest, type UrlTarget } from "./url-edit.ts";

/** A value for a trace, cut to a readable length. */
export function shown(value: string): string {
  return value.length <= 200 ? value : `${value.slice(0, 200)}…`;
}

/** Sends the request to another URL. `before` is the URL for the trace. */
export function moveTo(edit: MessageEdit, target: UrlTarget, before: string): void {
  if (!changesUrl(edit.request, target)) return edit.note("the URL is unchanged");
  moveRequest(edit.changeRequest(), target);
  edit.changed(`URL ${shown(before)} to ${shown(exchangeUrl(edit.request))}`);
}

/** Methods whose requests have a Content-Length even without a body (RFC 9110, 8.6). */
const ANNOUNCING = new Set(["POST", "PUT", "PATCH"]);

export function setMethod(edit: MessageEdit, method: string): void {
  const { request } = edit;
  if (request.method === method) return edit.note(`the method is ${method} already`);
  if (opensTunnel(request)) return edit.note("the method of a request that opens a tunnel is not changed");
  edit.changed(`method ${request.method} to ${method}`);
  const isSilent = !hasLength(request) && !edit.exchange.requestHasBody;
  const changed = edit.changeRequest();
  changed.method = method;
  if (ANNOUNCING.has(method) && isSilent) changed.fields = withField(changed.fields, "Content-Length", "0", false);
}

const opensTunnel = ({ method, scheme }: Readonly<RequestMessage>): boolean =>
  method === "CONNECT" || scheme === "ws" || scheme === "wss" || scheme === "tcp";

const hasLength = ({ fields }: Readonly<RequestMessage>): boolean =>
  fieldValue(fields, "content-length") !== undefined || fieldValue(fields, "transfer-encoding") !== undefined;

export function setStatus(edit: MessageEdit, code: number): void | Promise<unknown> {
  const { status } = edit.response;
  if (status === code) return edit.note(`the status is ${code} already`);
  const response = edit.changeResponse();
  response.status = code;
  response.reason = reasonPhrase(code);
  edit.changed(`status ${status} to ${code}`);
  // RFC 9110, 15.3.6: unlike after 204, clients would read a body.
  return code === 205 ? edit.replaceBody(Buffer.alloc(0)) : undefined;
}

/** A response to HEAD states the length of a body that rules would change to an unknown length. */
export function leaveBody(edit: MessageEdit, reason: string): void {
  edit.note(reason);
  if (edit.phase !== "response" || edit.request.method !== "HEAD") return;
  const { fields, count } = withoutField(edit.fields, "Content-Length");
  if (count === 0) return;
  edit.setFields(fields);
  edit.changed("removed Content-Length: rules change the body of GET");
}
