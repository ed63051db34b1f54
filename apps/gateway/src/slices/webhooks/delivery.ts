import { fieldValue } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { post, type PostResult } from "#egress/post.ts";
import type { Timer } from "#egress/timer.ts";
import type { SerialisedEvent } from "#events/recipient.ts";
import type { Clock } from "#slice.ts";
import type { DeliveryTarget } from "./delivery-target.ts";
import { nextStep, type AttemptResult } from "./retry-rule.ts";
import { signatureFields } from "./signature.ts";

/** How a delivery ended. `reason` is for people and the log. */
export interface DeliveryReport {
  readonly outcome: "delivered" | "failed" | "interrupted";
  readonly attempts: number;
  /** Of the last answer; undefined when the last attempt got none. */
  readonly status: number | undefined;
  readonly reason: string;
}

/** What a delivery works with. */
export interface DeliveryTools {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly timer: Timer;
}

/**
 * Sends one event to one target until it is taken, refused, or the time or the attempts are spent (delivery rules 1 to
 * 5). Never rejects. `stop` ends it as `interrupted`.
 */
export async function deliver(
  target: DeliveryTarget,
  event: SerialisedEvent,
  tools: DeliveryTools,
  stop: AbortSignal,
): Promise<DeliveryReport> {
  const endMs = tools.clock.monotonic() + target.timeoutMs;
  const over = new AbortController();
  const onStop = (): void => over.abort();
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) over.abort();
  const cancel = tools.timer(target.timeoutMs, () => over.abort());
  let status: number | undefined;
  let failure = "";
  try {
    for (let attempt = 1; ; attempt += 1) {
      const result = await attemptOnce(target, event, tools, over.signal);
      status = result.kind === "answer" ? result.status : undefined;
      failure = result.kind === "failure" ? result.error.code : "";
      if (stop.aborted) return { outcome: "interrupted", attempts: attempt, status, reason: "stopped" };
      const leftMs = over.signal.aborted ? 0 : endMs - tools.clock.monotonic();
      const next = nextStep(asAttempt(result), attempt, target.retry, leftMs);
      if (next.step === "delivered") return { outcome: "delivered", attempts: attempt, status, reason: "" };
      if (next.step === "failed") {
        return { outcome: "failed", attempts: attempt, status, reason: failure === "" ? next.reason : failure };
      }
      await pause(next.waitMs, tools.timer, over.signal);
      if (stop.aborted) return { outcome: "interrupted", attempts: attempt, status, reason: "stopped" };
    }
  } finally {
    cancel();
    stop.removeEventListener("abort", onStop);
  }
}

async function attemptOnce(
  target: DeliveryTarget,
  event: SerialisedEvent,
  tools: DeliveryTools,
  signal: AbortSignal,
): Promise<PostResult> {
  const { signingKey } = target;
  const signature =
    signingKey === undefined ? [] : signatureFields(signingKey, event.id, event.envelope, tools.clock.now());
  const request = {
    url: target.url,
    purpose: "webhook",
    fields: [...target.fields, ...signature],
    body: event.envelope,
    maxBodyBytes: 0,
    needsBody: false,
    isLenient: true,
  } as const;
  return await post(tools.dialer, request, signal);
}

function asAttempt(result: PostResult): AttemptResult {
  if (result.kind === "failure") return { kind: "no-answer", isFinal: result.error.isFinal };
  return { kind: "answer", status: result.status, retryAfter: fieldValue(result.fields, "retry-after") };
}

/** Waits, but not beyond the end of the delivery. */
async function pause(waitMs: number, timer: Timer, signal: AbortSignal): Promise<void> {
  if (waitMs <= 0 || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const done = (): void => resolve(undefined);
  const cancel = timer(waitMs, done);
  signal.addEventListener("abort", done, { once: true });
  await promise;
  cancel();
  signal.removeEventListener("abort", done);
}
