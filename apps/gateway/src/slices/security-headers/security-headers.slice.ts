import type { ConfigDocument, Route, SecurityHeaders } from "@headworks/gateway-contract";
import { setField } from "@headworks/http1";
import type { Decorator } from "#request/context.ts";
import type { GatewaySlice, IssueReport } from "#slice.ts";

/**
 * Sets browser security headers on every response of a route, refusals included, replacing upstream values.
 * `Strict-Transport-Security` is also sent over plain HTTP, where browsers ignore it: TLS may terminate in front of the
 * gateway.
 */
export const securityHeaders: GatewaySlice = {
  name: "security-headers",
  check: checkSecurityHeaders,
  compile: () => ({ decoratorFor }),
};

function decoratorFor(route: Route): Decorator | undefined {
  if (route.security_headers === undefined) return undefined;
  const fields = fieldsOf(route.security_headers);
  if (fields.length === 0) return undefined;
  return {
    on: "every-route-response",
    decorate: (_request, head) => {
      for (const [name, value] of fields) setField(head.fields, name, value);
    },
  };
}

function fieldsOf(block: SecurityHeaders): readonly (readonly [name: string, value: string])[] {
  const fields: [string, string][] = [];
  if (block.hsts_max_age_secs !== undefined) {
    const subdomains = block.hsts_include_subdomains === true ? "; includeSubDomains" : "";
    const preload = block.hsts_preload === true ? "; preload" : "";
    fields.push(["Strict-Transport-Security", `max-age=${block.hsts_max_age_secs}${subdomains}${preload}`]);
  }
  if (block.nosniff === true) fields.push(["X-Content-Type-Options", "nosniff"]);
  if (block.content_security_policy !== undefined) {
    fields.push(["Content-Security-Policy", block.content_security_policy]);
  }
  if (block.frame_options !== undefined) fields.push(["X-Frame-Options", block.frame_options.toUpperCase()]);
  return fields;
}

/** Characters of a policy: visible ASCII and inner spaces. */
const POLICY = /^[!-~]([ -~]*[!-~])?$/;

function checkSecurityHeaders(document: ConfigDocument, report: IssueReport): void {
  for (const [index, { security_headers: block }] of document.routes.entries()) {
    if (block === undefined) continue;
    const fieldPath = ["routes", index, "security_headers"];
    if (block.hsts_include_subdomains === true && block.hsts_max_age_secs === undefined) {
      report.error("required", [...fieldPath, "hsts_max_age_secs"], "hsts_include_subdomains needs hsts_max_age_secs");
    }
    if (block.hsts_preload === true && block.hsts_include_subdomains !== true) {
      report.error(
        "required",
        [...fieldPath, "hsts_include_subdomains"],
        "hsts_preload needs hsts_include_subdomains: lists of browsers take whole domains only",
      );
    }
    const policy = block.content_security_policy;
    if (policy !== undefined && !POLICY.test(policy)) {
      const message = "content_security_policy must be visible ASCII on one line, without space at its ends";
      report.error("bad_header", [...fieldPath, "content_security_policy"], message);
    }
  }
}
