export { BatchedWriter } from "./batched-writer.ts";
export { cutConnection, endAndLinger, LINGER_MS, type ByteSocket } from "./cut.ts";
export { DeskWriter } from "./desk-writer.ts";
export { noteGarbage } from "./buffer-garbage.ts";
export { DeadlineSweep, type Timed } from "./deadlines.ts";
export { Queue, type QueuePlace } from "./queue.ts";
export { keptBytes, lendReads, ownBytes, sharedReads } from "./shared-reads.ts";
export { NOWHERE, Roster, type Rostered } from "./roster.ts";
export { turnMs } from "./turn-clock.ts";
