import { turnMs } from "@headworks/sockets";
import type { Clock } from "./slice.ts";

export const systemClock: Clock = { now: () => Date.now(), monotonic: turnMs };
