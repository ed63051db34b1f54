import { parseQuery } from "@headworks/query-language";
import { ApiFailure } from "../../../api.ts";

/**
 * Throws the service's error for an invalid query without a request: both use the same parser, and refetches during
 * traffic would repeat it.
 */
export function refuseUnreadable(q: string): void {
  const parsed = parseQuery(q);
  if (parsed.ok) return;
  const { message, start } = parsed.error;
  throw new ApiFailure(400, "VALIDATION_ERROR", `${message} (at character ${start + 1})`);
}
