import { ERRORS } from "@headworks/gateway-contract";
import type { Response, Refusal, Verdict } from "./phases.ts";

/** Whether a verdict is a refusal, whose body is made here, and not a whole answer. */
export function isRefusal(verdict: NonNullable<Verdict>): verdict is Refusal {
  return "code" in verdict;
}

/** The answer for a refusal: status and sentence of its code, in the envelope both planes use. */
export function errorResponse(refusal: Refusal, requestId: string): Response {
  const { status, message } = ERRORS[refusal.code];
  const error = { code: refusal.code, message: refusal.message ?? message, request_id: requestId };
  return {
    status,
    fields: ["Content-Type", "application/json", ...(refusal.fields ?? [])],
    body: JSON.stringify({ error }),
  };
}
