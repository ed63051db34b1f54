export { BatchedWriter } from "./batched-writer.ts";
export { cutConnection, endAndLinger, LINGER_MS, type ByteSocket } from "./cut.ts";
export { noteRead } from "./read-garbage.ts";
export { DeadlineSweep, type Timed } from "./deadlines.ts";
export { Queue, type QueuePlace } from "./queue.ts";
export { NOWHERE, Roster, type Rostered } from "./roster.ts";
