import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { ConfigDocument } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { RequestContext } from "#request/context.ts";
import { quotas } from "#slices/quotas/quotas.slice.ts";
import type { CompileScope } from "#slice.ts";
import { openStateStore } from "#storage/open-state-store.ts";

/**
 * Asks the gate of a consumer with one request a day and three a month, every few milliseconds on the system's own
 * clock, and says on a line each time the answer changes: the time that the gate read, and `passes` or the refusal's
 * fields.
 */
const ignore = (): void => undefined;
const log = { error: ignore, warn: ignore, info: ignore } as unknown as Logger;
const clock = { now: () => Date.now(), monotonic: () => performance.now() };
const store = await openStateStore({ path: process.argv[2] ?? "", log, clock });
// The clock may be set between two readings: a line tells the one reading that the answer rests on.
let gateReadMs = 0;
const gateClock = { ...clock, now: () => (gateReadMs = clock.now()) };
const slice = quotas({ store, log, clock: gateClock, metrics: { dryRun: ignore, denied: ignore } });
const consumers = [{ name: "acme", quotas: { daily_requests: 1n, monthly_requests: 3n } }];
const document = { consumers } as unknown as ConfigDocument;
const compiled = slice.compile?.(document, {} as CompileScope);
compiled?.published?.();
const gate = compiled?.gateFor?.({} as never);
const request = { consumer: { name: "acme" } } as unknown as RequestContext;
let last = "";
for (;;) {
  const verdict = await gate?.check(request);
  const time = new Date(gateReadMs).toISOString();
  const said = verdict === undefined ? "passes" : `${verdict.fields?.[3] ?? ""} until ${verdict.fields?.[7] ?? ""}`;
  // Each day says it anew: whoever moves the clock waits for the words of that day, and may be late for a change.
  const saidOnDay = `${time.slice(0, 10)} ${said}`;
  if (said === "passes" || saidOnDay !== last) writeSync(1, `${time} ${said}\n`);
  last = saidOnDay;
  await delay(5);
}
