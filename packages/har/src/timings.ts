import type { HarExchangeTimings } from "./exchange.ts";
import type { HarTimings } from "./har.ts";

/** HAR's timings of an exchange: -1 for what did not happen, TLS inside `connect`, unknown obligatory phases as 0. */
export function toHarTimings(timings: HarExchangeTimings): HarTimings {
  const { connect, tls } = timings;
  return {
    blocked: timings.blocked ?? -1,
    dns: timings.dns ?? -1,
    connect: connect === undefined && tls === undefined ? -1 : (connect ?? 0) + (tls ?? 0),
    send: timings.send ?? 0,
    wait: timings.wait ?? 0,
    receive: timings.receive ?? 0,
    ssl: tls ?? -1,
  };
}

/** The total: every phase that applies, TLS counted once. */
export function totalMs(timings: HarTimings): number {
  const phases = [timings.blocked, timings.dns, timings.connect, timings.send, timings.wait, timings.receive];
  return phases.reduce((sum: number, ms) => sum + Math.max(0, ms ?? 0), 0);
}

/** Longer durations (30 years) are none: somebody computed with an unknown start or end. */
const MAX_MS = 1e12;

/** A duration from a file; what is none counts as unknown. */
export function knownMs(ms: unknown): number | undefined {
  return typeof ms === "number" && ms >= 0 && ms <= MAX_MS ? ms : undefined;
}

/** Reads HAR's timings back as far as they can tell. */
export function fromHarTimings(timings: HarTimings): HarExchangeTimings {
  const tls = knownMs(timings.ssl);
  const both = knownMs(timings.connect);
  return {
    blocked: knownMs(timings.blocked),
    dns: knownMs(timings.dns),
    connect: both === undefined ? undefined : Math.max(0, both - (tls ?? 0)),
    tls,
    send: knownMs(timings.send),
    wait: knownMs(timings.wait),
    receive: knownMs(timings.receive),
  };
}

const PHASES = ["blocked", "dns", "connect", "tls", "send", "wait", "receive"] as const;

/** Whether two sets of timings say the same. */
export function sameTimings(left: HarExchangeTimings, right: HarExchangeTimings): boolean {
  return PHASES.every((phase) => Object.is(left[phase], right[phase]));
}

/** Timings from JSON data of any origin; whatever is no duration counts as unknown. */
export function readTimings(value: unknown): HarExchangeTimings | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found = new Map(Object.entries<unknown>({ ...value }));
  const ms = (phase: string): number | undefined => knownMs(found.get(phase));
  return {
    blocked: ms("blocked"),
    dns: ms("dns"),
    connect: ms("connect"),
    tls: ms("tls"),
    send: ms("send"),
    wait: ms("wait"),
    receive: ms("receive"),
  };
}
