import type { HarExchangeTimings } from "./exchange.ts";
import type { HarTimings } from "./har.ts";

/** -1 for phases that did not occur, TLS inside `connect`, unknown mandatory phases as 0. */
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

/** Sum of all applicable phases; TLS counts once. */
export function totalMs(timings: HarTimings): number {
  const phases = [timings.blocked, timings.dns, timings.connect, timings.send, timings.wait, timings.receive];
  return phases.reduce((sum: number, ms) => sum + Math.max(0, ms ?? 0), 0);
}

/** Longer durations (30 years) come from an unknown start or end. */
const MAX_MS = 1e12;

/** Invalid durations count as unknown. */
export function knownMs(ms: unknown): number | undefined {
  return typeof ms === "number" && ms >= 0 && ms <= MAX_MS ? ms : undefined;
}

/** Inverse of `toHarTimings`, as far as possible. */
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

export function sameTimings(left: HarExchangeTimings, right: HarExchangeTimings): boolean {
  return PHASES.every((phase) => Object.is(left[phase], right[phase]));
}

/** Reads timings from untrusted JSON; invalid durations count as unknown. */
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
