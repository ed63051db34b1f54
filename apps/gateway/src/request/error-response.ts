import { ERRORS } from "@headworks/gateway-contract";
import type { Response, Refusal, Verdict } from "./phases.ts";

/** Whether a verdict is a refusal, whose body is created here, rather than a whole response. */
export function isRefusal(verdict: NonNullable<Verdict>): verdict is Refusal {
  return "code" in verdict;
}

/** The response for a refusal: status and message of its code, in the envelope of both planes. */
export function errorResponse(refusal: Refusal, requestId: string): Response {
  const { status, message } = ERRORS[refusal.code];
  const error = { code: refusal.code, message: refusal.message ?? message, request_id: requestId };
  return {
    status,
    fields: ["Content-Type", "application/json", ...(refusal.fields ?? [])],
    body: JSON.stringify({ error }),
  };
}
