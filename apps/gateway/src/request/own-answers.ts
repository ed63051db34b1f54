// Tested by ../../test/own-answers.test.ts
import { fieldValue, type RawFields } from "@headworks/http1";
import type { RequestContext } from "./context.ts";
import type { Answer } from "./phases.ts";

/** The field that says how many intermediaries a request may still pass, which binds for two methods only (RFC 9110, 7.6.2). */
const MAX_FORWARDS = "max-forwards";
const COUNTER = /^[0-9]+$/;
/** Further than any chain goes; a counter beyond it need not be exact. */
const MOST_FORWARDS = 2 ** 31 - 1;

/** To `OPTIONS *`, which asks the server whether it is there and no upstream for anything (RFC 9110, 9.3.7). */
export const WHOLE_SERVER: Answer = { status: 200, fields: [], body: "" };

const isCounted = (method: string): boolean => method === "OPTIONS" || method === "TRACE";

/** The counter as it goes on; what is no counter, or counts for a method that knows none, goes on as it came. */
export function countedDown(method: string, value: string): string {
  if (!isCounted(method) || !COUNTER.test(value)) return value;
  return String(Math.max(0, Math.min(Number(value) - 1, MOST_FORWARDS)));
}

/** What the gateway says in place of the upstream that a request may not reach any more; undefined: it may. */
export function lastRecipientsAnswer(request: RequestContext): Answer | undefined {
  const { method } = request;
  if (!isCounted(method)) return undefined;
  const value = fieldValue(request.fields, MAX_FORWARDS) ?? "";
  if (!COUNTER.test(value) || Number(value) > 0) return undefined;
  return method === "TRACE" ? reflection(request) : { status: 200, fields: allowed(request), body: "" };
}

/** What may be used here is known only where the route says it; anything else is the upstream's to say. */
function allowed({ route }: RequestContext): RawFields {
  const list = route?.document.methods ?? route?.document.match.methods;
  return list === undefined ? [] : ["Allow", list.map((method) => method.toUpperCase()).join(", ")];
}

/** Shows who passed the request on. Other fields may be secrets, of the client or of a proxy in between (RFC 9110, 9.3.8). */
function reflection({ method, target, version, authority, fields }: RequestContext): Answer {
  const shown = [["Host", authority ?? ""]];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (["via", MAX_FORWARDS].includes(name.toLowerCase())) shown.push([name, fields[at + 1] ?? ""]);
  }
  const lines = shown.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const body = Buffer.from(`${method} ${target} HTTP/${version}\r\n${lines}\r\n`, "latin1");
  return { status: 200, fields: ["Content-Type", "message/http"], body };
}
