import type { PostResult } from "#egress/post.ts";

/** A decision; `error` for none or an invalid response. `why` is for the log. */
export type CalloutDecision =
  | { readonly kind: "allow" }
  | { readonly kind: "deny" }
  | { readonly kind: "error"; readonly why: string };

const ALLOW: CalloutDecision = { kind: "allow" };
const DENY: CalloutDecision = { kind: "deny" };

/** Parses the response of Open Policy Agent's data API or of a generic decision point. */
export function readDecision(type: "opa" | "http", result: PostResult): CalloutDecision {
  if (result.kind === "failure") return { kind: "error", why: result.error.code };
  return type === "opa" ? opaDecision(result.status, result.body) : statusDecision(result.status);
}

function statusDecision(status: number): CalloutDecision {
  if (status >= 200 && status < 300) return ALLOW;
  return status === 401 || status === 403 ? DENY : { kind: "error", why: `status_${status}` };
}

function opaDecision(status: number, body: Buffer): CalloutDecision {
  if (status !== 200) return { kind: "error", why: `status_${status}` };
  let document: unknown;
  try {
    document = JSON.parse(body.toString());
  } catch {
    return { kind: "error", why: "not_json" };
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    return { kind: "error", why: "unexpected_result" };
  }
  // An undefined result means that the policy grants nothing.
  if (!("result" in document)) return DENY;
  const { result } = document;
  const allow = typeof result === "object" && result !== null && "allow" in result ? result.allow : result;
  if (typeof allow !== "boolean") return { kind: "error", why: "unexpected_result" };
  return allow ? ALLOW : DENY;
}
