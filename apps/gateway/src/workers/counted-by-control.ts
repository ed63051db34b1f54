import type { CountedElsewhere } from "#slices.ts";
import type { ProcessLink } from "./process-link.ts";
import type { ControlCalls, WorkerCalls } from "./worker-calls.ts";

/**
 * What must be the same whichever worker a request comes to: rates, and nonces of signed requests. Without the control
 * process, which is the end of this one too, rates are counted here, and no signed request is let in.
 */
export function countedByControl(link: ProcessLink<ControlCalls, WorkerCalls>): CountedElsewhere {
  return {
    rates: { charge: async (charges) => await link.ask("rates", charges).catch(() => []) },
    nonces: {
      add: async (keyId, nonce, _nowMs, forMs) =>
        await link.ask("nonce", [keyId, nonce, forMs]).catch(() => "full" as const),
    },
  };
}
