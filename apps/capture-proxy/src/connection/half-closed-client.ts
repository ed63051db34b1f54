import { reasonPhrase } from "@headworks/http-fields";
import type { Http1Response } from "./http1-response.ts";

/**
 * A client that ended its sending side may still read, or may be gone: TCP does not tell until something is written.
 * After this time without a byte from the origin it counts as gone.
 */
export const HALF_CLOSED_MS = 5000;
/** Long enough for an answer from this machine, and for one from far away. */
const ASK_AGAIN_MS: readonly number[] = [50, 500];

/**
 * While rules decide nothing is written that a client which is gone would refuse. An interim answer is, and one that
 * only ended its sending side passes over it (RFC 9110, 15.2). The refusal of one shows when the next is written.
 */
export function askWhetherGone(
  response: Http1Response,
  isDeciding: () => boolean,
  [delayMs, ...later]: readonly number[] = ASK_AGAIN_MS,
): void {
  if (!isDeciding() || !response.informational(102, reasonPhrase(102), [])) return;
  response.flush();
  if (delayMs !== undefined) setTimeout(() => askWhetherGone(response, isDeciding, later), delayMs).unref();
}
