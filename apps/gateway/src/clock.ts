import { turnMs } from "@headworks/sockets";
import type { Clock } from "./slice.ts";

/** The machine's clocks. */
export const systemClock: Clock = { now: () => Date.now(), monotonic: turnMs };
