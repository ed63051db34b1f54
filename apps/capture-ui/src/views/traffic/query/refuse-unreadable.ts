import { parseQuery } from "@headworks/query-language";
import { ApiFailure } from "../../../api.ts";

/**
 * Fails as the service would on a query that cannot be read, without asking it: both read with the same parser, and
 * while traffic flows the answer would be asked for again and again.
 */
export function refuseUnreadable(q: string): void {
  const parsed = parseQuery(q);
  if (parsed.ok) return;
  const { message, start } = parsed.error;
  throw new ApiFailure(400, "VALIDATION_ERROR", `${message} (at character ${start + 1})`);
}
