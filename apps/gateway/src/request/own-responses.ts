import { namedMethods } from "@headworks/gateway-contract";
import { isLastRecipient, tracedRequest, type RawFields } from "@headworks/http1";
import type { RequestContext } from "./context.ts";
import type { Response } from "./phases.ts";

/** To `OPTIONS *`, which asks the server whether it is there and no upstream for anything (RFC 9110, 9.3.7). */
export const WHOLE_SERVER: Response = { status: 200, fields: [], body: "" };

/** What the gateway says in place of the upstream that a request may not reach any more; undefined: it may. */
export function lastRecipientsResponse(request: RequestContext): Response | undefined {
  const { method, fields } = request;
  if (!isLastRecipient(method, fields)) return undefined;
  return method === "TRACE" ? reflection(request) : { status: 200, fields: allowed(request), body: "" };
}

/** What may be used here is known only where the route says it; anything else is the upstream's to say. */
function allowed({ route }: RequestContext): RawFields {
  const list = namedMethods(route?.document.methods) ?? namedMethods(route?.document.match.methods);
  return list === undefined ? [] : ["Allow", list.join(", ")];
}

function reflection({ method, sentTarget, version, fields, credentialFields }: RequestContext): Response {
  const received = { method, target: sentTarget, version, fields };
  const body = tracedRequest(
    received,
    (name) => name.startsWith("x-consumer-") || credentialFields?.has(name) === true,
  );
  return { status: 200, fields: ["Content-Type", "message/http"], body };
}
