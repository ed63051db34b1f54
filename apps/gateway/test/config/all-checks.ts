import { FakeClock } from "@headworks/testkit";
import { pino } from "pino";
import type { DocumentCheck } from "#config/check-document.ts";
import { checkRoutes } from "#routing/check-routes.ts";
import { createSlices } from "#slices.ts";

/** The checks of a document that a gateway without a state store makes. */
export function allChecks(): {
  readonly checks: readonly DocumentCheck[];
  readonly clock: FakeClock;
  readonly stop: () => Promise<void>;
} {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const slices = createSlices({ log: pino({ level: "silent" }), clock, store: undefined, environment: {} });
  const ofSlices = slices.all.map(
    (slice): DocumentCheck =>
      (document, report, scope) =>
        slice.check?.(document, report, scope),
  );
  return {
    checks: [checkRoutes, ...ofSlices],
    clock,
    stop: async () => {
      for (const slice of slices.all) await slice.stop?.();
    },
  };
}
