import { hasField } from "@headworks/http1";
import type { RequestContext } from "./context.ts";

/**
 * Whether a request is a browser's question before a cross-origin one (CORS preflight: OPTIONS with Origin and
 * Access-Control-Request-Method) to a route that answers such questions itself. What such a request is exempt from must
 * not depend on the fields alone: anybody can send them, and on other routes they would reach the upstream.
 */
export function isPreflight(request: RequestContext): boolean {
  return (
    request.method === "OPTIONS" &&
    request.route?.document.cors !== undefined &&
    hasField(request.fields, "origin") &&
    hasField(request.fields, "access-control-request-method")
  );
}
