import type { Route } from "@headworks/gateway-contract";
import { hasField, type RawFields } from "@headworks/http1";

/** The parts of a `RequestContext` that matter here. */
interface PossiblePreflight {
  readonly method: string;
  readonly fields: Readonly<RawFields>;
  readonly route: { readonly document: Pick<Route, "cors"> } | undefined;
}

/**
 * Whether a request is a CORS preflight (OPTIONS with Origin and Access-Control-Request-Method) to a route that
 * responds to preflights itself. Exemptions must not depend on the fields alone: any client can send them, and on
 * other routes the request would reach the upstream.
 */
export function isPreflight(request: PossiblePreflight): boolean {
  return request.method === "OPTIONS" && request.route?.document.cors !== undefined && asksAhead(request);
}

/** Whether a request has the form of a preflight, whatever its route. */
export function asksAhead({ method, fields }: Pick<PossiblePreflight, "method" | "fields">): boolean {
  return method === "OPTIONS" && hasField(fields, "origin") && hasField(fields, "access-control-request-method");
}
