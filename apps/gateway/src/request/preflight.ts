import type { Route } from "@headworks/gateway-contract";
import { hasField, type RawFields } from "@headworks/http1";

/** What is looked at of a request and of the route that takes it; a `RequestContext` has it. */
interface PossiblePreflight {
  readonly method: string;
  readonly fields: Readonly<RawFields>;
  readonly route: { readonly document: Pick<Route, "cors"> } | undefined;
}

/**
 * Whether a request is a browser's question before a cross-origin one (CORS preflight: OPTIONS with Origin and
 * Access-Control-Request-Method) to a route that answers such questions itself. What such a request is exempt from must
 * not depend on the fields alone: anybody can send them, and on other routes they would reach the upstream.
 */
export function isPreflight(request: PossiblePreflight): boolean {
  return request.method === "OPTIONS" && request.route?.document.cors !== undefined && asksAhead(request);
}

/** Whether a request has the form of such a question, wherever it goes. */
export function asksAhead({ method, fields }: Pick<PossiblePreflight, "method" | "fields">): boolean {
  return method === "OPTIONS" && hasField(fields, "origin") && hasField(fields, "access-control-request-method");
}
